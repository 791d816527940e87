//! Descriptions of the recording and the machine: the feature sections after the records, or the same data
//! in records.
//!
//! Source: Linux's `tools/perf/Documentation/perf.data-file-format.txt`, `HEADER_*`, and
//! `tools/perf/util/header.c`.

use super::simpleperf::{self, SimplePerf};
use crate::cursor::RecordCursor;
use crate::{ByteOrder, EventAttr, RecordError};

/// The numbers of the supported features (`enum` in `tools/perf/util/header.h`).
pub mod feature {
    #![allow(missing_docs, reason = "the names are perf's own, and its documentation explains them")]
    pub const TRACING_DATA: u32 = 1;
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OSRELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const NRCPUS: u32 = 7;
    pub const CPUDESC: u32 = 8;
    pub const TOTAL_MEM: u32 = 10;
    pub const CMDLINE: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const AUXTRACE: u32 = 18;
    pub const SAMPLE_TIME: u32 = 21;
    pub const CLOCKID: u32 = 23;
    pub const COMPRESSED: u32 = 27;
    pub const CLOCK_DATA: u32 = 29;
    /// An extension: the filter of requested samples. perf skips unknown features.
    pub const NYQUIST_REQUESTED: u32 = 255;
}

/// Descriptions of the recording and the machine. Missing ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The machine's name.
    pub hostname: Option<String>,
    /// The kernel's release (`uname -r`).
    pub os_release: Option<String>,
    /// The recorder's version.
    pub version: Option<String>,
    /// The machine's architecture (`uname -m`).
    pub arch: Option<String>,
    /// The number of CPUs, and the number of online CPUs.
    pub cpus: Option<(u32, u32)>,
    /// The CPU's name.
    pub cpu_name: Option<String>,
    /// The memory in kB.
    pub memory_kb: Option<u64>,
    /// The recorder's command line, a word each.
    pub command_line: Vec<String>,
    /// The times of the first and the last sample, in nanoseconds.
    pub sample_time: Option<(u64, u64)>,
    /// A moment on two clocks.
    pub clock: Option<ClockMoment>,
    /// The build ids of files.
    pub build_ids: Vec<FileBuildId>,
    /// The names of events and their ids.
    pub events: Vec<EventDescription>,
    /// The formats of tracepoints, as they are in the file (`TRACING_DATA`).
    pub tracing: Vec<u8>,
    /// The filter of requested samples, as words of the recorder. Empty if all are requested, or if another
    /// recorder wrote the file.
    pub requested: Vec<String>,
    /// Descriptions from Android's simpleperf, if it made the recording.
    pub simpleperf: Option<Box<SimplePerf>>,
}

/// `CLOCK_DATA`: one moment on the clock of the records and on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMoment {
    /// The number of the clock (clock_gettime(2)).
    pub clock: u32,
    /// Nanoseconds since 1970-01-01 UTC.
    pub wall_ns: u64,
    /// Nanoseconds of the clock.
    pub clock_ns: u64,
}

/// `BUILD_ID`: the build id of a file with samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBuildId {
    /// The bits of its record, which give the CPU mode of the file's code, as for a mapping.
    pub misc: u16,
    /// -1 for the machine itself, or the pid of a virtual machine.
    pub pid: i32,
    /// The build id.
    pub build_id: Vec<u8>,
    /// The path, or a name such as `[kernel.kallsyms]`.
    pub path: String,
}

/// `EVENT_DESC`: an event's attributes, name and ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDescription {
    /// The attributes.
    pub attr: EventAttr,
    /// The requested name.
    pub name: String,
    /// The kernel's ids of the opened events.
    pub ids: Vec<u64>,
}

impl Features {
    /// Reads the section of a feature. Unknown ones are skipped. If a section is truncated, its complete
    /// items are kept.
    pub fn add(&mut self, number: u32, bytes: &[u8], order: ByteOrder) {
        let mut cursor = RecordCursor::new(bytes, order);
        // Damage only causes missing data in this feature.
        let _ = self.parse(number, &mut cursor);
    }

    fn parse(&mut self, number: u32, cursor: &mut RecordCursor<'_>) -> Result<(), RecordError> {
        match number {
            feature::HOSTNAME => self.hostname = Some(string(cursor)?),
            feature::OSRELEASE => self.os_release = Some(string(cursor)?),
            feature::VERSION => self.version = Some(string(cursor)?),
            feature::ARCH => self.arch = Some(string(cursor)?),
            feature::CPUDESC => self.cpu_name = Some(string(cursor)?),
            feature::NRCPUS => self.cpus = Some((cursor.u32("CPUs")?, cursor.u32("CPUs")?)),
            feature::TOTAL_MEM => self.memory_kb = Some(cursor.u64("memory")?),
            feature::SAMPLE_TIME => self.sample_time = Some((cursor.u64("time")?, cursor.u64("time")?)),
            feature::TRACING_DATA => self.tracing = cursor.rest().to_vec(),
            feature::CMDLINE => parse_strings(cursor, &mut self.command_line)?,
            feature::NYQUIST_REQUESTED => parse_strings(cursor, &mut self.requested)?,
            feature::CLOCK_DATA => self.parse_clock(cursor)?,
            feature::BUILD_ID => while self.parse_build_id(cursor)? {},
            feature::EVENT_DESC => self.parse_events(cursor)?,
            simpleperf::feature::FILE | simpleperf::feature::META_INFO | simpleperf::feature::FILE2 => {
                self.simpleperf.get_or_insert_default().add(number, cursor)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn parse_clock(&mut self, cursor: &mut RecordCursor<'_>) -> Result<(), RecordError> {
        let (_version, clock) = (cursor.u32("clock")?, cursor.u32("clock")?);
        self.clock =
            Some(ClockMoment { clock, wall_ns: cursor.u64("clock")?, clock_ns: cursor.u64("clock")? });
        Ok(())
    }

    /// Reads one record of the section; returns false at its end.
    fn parse_build_id(&mut self, cursor: &mut RecordCursor<'_>) -> Result<bool, RecordError> {
        if cursor.remaining() == 0 {
            return Ok(false);
        }
        let (_kind, misc, size) = (cursor.u32("header")?, cursor.u16("header")?, cursor.u16("header")?);
        let body = cursor.bytes(usize::from(size).saturating_sub(8), "build id")?;
        self.add_build_id(misc, body, cursor.order());
        Ok(true)
    }

    /// Adds a build id from a section or a record (`PERF_RECORD_HEADER_BUILD_ID`), given the data after
    /// its header.
    pub(crate) fn add_build_id(&mut self, misc: u16, body: &[u8], order: ByteOrder) {
        /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the record contains the size of the id.
        const HAS_SIZE: u16 = 1 << 15;
        let parse = || -> Result<FileBuildId, RecordError> {
            let mut cursor = RecordCursor::new(body, order);
            let pid = cursor.u32("process")?.cast_signed();
            let id = cursor.bytes(24, "build id")?;
            let len = if misc & HAS_SIZE == 0 { 20 } else { usize::from(id[20]).min(20) };
            let path = String::from_utf8_lossy(cursor.text()).into_owned();
            Ok(FileBuildId { misc, pid, build_id: id[..len].to_vec(), path })
        };
        self.build_ids.extend(parse().ok());
    }

    fn parse_events(&mut self, cursor: &mut RecordCursor<'_>) -> Result<(), RecordError> {
        let (count, attr_len) = (cursor.u32("events")?, cursor.u32("attributes")?);
        for _ in 0..count {
            let attr = EventAttr::parse(cursor.bytes(attr_len as usize, "attributes")?, cursor.order())?;
            let ids = cursor.u32("ids")?;
            let name = string(cursor)?;
            let order = cursor.order();
            let ids = cursor.counted(u64::from(ids), 8, "ids")?.as_chunks::<8>().0;
            let ids = ids.iter().map(|id| order.u64(*id)).collect();
            self.events.push(EventDescription { attr, name, ids });
        }
        Ok(())
    }
}

/// Reads texts after their number, up to where they are truncated.
fn parse_strings(cursor: &mut RecordCursor<'_>, texts: &mut Vec<String>) -> Result<(), RecordError> {
    for _ in 0..cursor.u32("texts")? {
        texts.push(string(cursor)?);
    }
    Ok(())
}

/// Reads a text in perf's format: its length with the padding, then the bytes with a terminating zero.
fn string(cursor: &mut RecordCursor<'_>) -> Result<String, RecordError> {
    let len = cursor.u32("text")?;
    let bytes = cursor.bytes(len as usize, "text")?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}
