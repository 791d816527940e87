//! Writes a live recording as a perf.data file: the kernel's unchanged records, and synthesized records for
//! facts that have none.

use std::io::{self, Seek, Write};

use nyquist_object::BuildId;
use nyquist_perf::abi::misc;
use nyquist_perf::file::{Features, FileBuildId, FileWriter, WrittenEvent};
use nyquist_perf::{ByteOrder, MappedIdentity, Mmap, RecordFormat, RecordId};
use rustc_hash::FxHashMap;

use super::live::LiveStackRecords;
use crate::event::{Event, EventKind, MappedFile, Mapping, Timestamp};
use crate::selection::process_filter::ProcessFilter;

/// Writes the records of a live recording. Importing the file gives the same profile as the live conversion.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    file: FileWriter<W>,
    format: RecordFormat,
    /// The id of the event that counts on each CPU.
    counters: FxHashMap<u32, u64>,
    /// The latest time that was written, and the latest time at the last round.
    latest: u64,
    marked: u64,
    samples: Option<(u64, u64)>,
    build_ids: Vec<FileBuildId>,
    live_stacks: LiveStackRecords,
    filter: ProcessFilter,
}

impl<W: Write + Seek> RecordingWriter<W> {
    /// Begins a file. All events have the same layout of records. `counters` are the ids of the events that
    /// count CPU time, and their CPUs.
    pub fn new(
        out: W,
        events: Vec<WrittenEvent>,
        counters: impl IntoIterator<Item = (u64, u32)>,
    ) -> io::Result<Self> {
        let format = events.first().map(|event| event.attr.record_format(ByteOrder::Little));
        Ok(Self {
            file: FileWriter::new(out, events)?,
            format: format.unwrap_or_default(),
            counters: counters.into_iter().map(|(id, cpu)| (cpu, id)).collect(),
            latest: 0,
            marked: 0,
            samples: None,
            build_ids: Vec::new(),
            live_stacks: LiveStackRecords::default(),
            filter: ProcessFilter::All,
        })
    }

    /// Writes into the file which of the samples are requested. All samples are written.
    #[must_use]
    pub fn keeping_only(self, filter: ProcessFilter) -> Self {
        Self { filter, ..self }
    }

    /// Writes records of the kernel. All records older than `complete_before` have been written. `events` are
    /// the events of these records.
    pub fn write_records(
        &mut self,
        records: &[u8],
        events: &[Event],
        complete_before: Timestamp,
    ) -> io::Result<()> {
        self.note(events);
        self.latest = self.latest.max(self.format.latest_time(records).unwrap_or_default());
        self.file.write_records(records)?;
        // The end of a round states that all records up to the latest time of the previous round have been
        // written.
        if complete_before.0 > self.marked {
            self.marked = self.latest;
            self.file.finish_round()?;
        }
        Ok(())
    }

    /// Writes records for events without a kernel record: the state before the first record, and the totals
    /// at the end.
    pub fn write_events(&mut self, events: &[Event]) -> io::Result<()> {
        self.note(events);
        for event in events {
            let record = match &event.kind {
                EventKind::LiveStack(live) => self.live_stacks.encode(live, event.time, &self.format),
                _ => self.record_of(event),
            };
            self.file.write_records(&record)?;
        }
        Ok(())
    }

    /// Notes the build ids of files, by their paths, because the kernel's records do not have them.
    pub fn note_build_ids(&mut self, files: impl IntoIterator<Item = (String, BuildId)>) {
        for (path, id) in files {
            let build_id = id.as_bytes().to_vec();
            self.build_ids.push(FileBuildId { misc: misc::USER, pid: -1, build_id, path });
        }
    }

    /// Finishes the file.
    pub fn finish(self, mut features: Features) -> io::Result<W> {
        features.sample_time = self.samples;
        features.build_ids = self.build_ids;
        features.requested = self.filter.to_words();
        self.file.finish(&features)
    }

    fn note(&mut self, events: &[Event]) {
        for event in events {
            self.latest = self.latest.max(event.time.0);
            match &event.kind {
                EventKind::Sample(_) => {
                    let (first, last) = self.samples.unwrap_or((event.time.0, event.time.0));
                    self.samples = Some((first.min(event.time.0), last.max(event.time.0)));
                }
                EventKind::Map(mapping) => self.note_build_id(mapping),
                _ => {}
            }
        }
    }

    fn note_build_id(&mut self, mapping: &Mapping) {
        let MappedFile::BuildId(id) = &mapping.identity else { return };
        if self.build_ids.iter().all(|known| known.path != mapping.path || known.build_id != id.as_bytes()) {
            self.build_ids.push(FileBuildId {
                misc: mode(mapping),
                pid: -1,
                build_id: id.as_bytes().to_vec(),
                path: mapping.path.clone(),
            });
        }
    }

    /// The record of an event. It is empty for events that always have a kernel record in a live recording.
    fn record_of(&self, event: &Event) -> Vec<u8> {
        let at = RecordId { time: Some(event.time.0), cpu: event.cpu, ..RecordId::default() };
        match &event.kind {
            EventKind::Map(mapping) => {
                let pid = mapping.pid.map_or(u32::MAX, |pid| pid.0);
                let id = RecordId { task: Some((pid, pid)), ..at };
                self.format.encode_mmap(&mmap(mapping, pid), mode(mapping), &id)
            }
            EventKind::Name { pid, tid, name, exec } => {
                let id = RecordId { task: Some((pid.0, tid.0)), ..at };
                self.format.encode_comm((pid.0, tid.0), name.as_bytes(), *exec, &id)
            }
            EventKind::Total { pid, tid, cpu_time_ns } => {
                let number = event.cpu.and_then(|cpu| self.counters.get(&cpu).copied());
                let id = RecordId { task: Some((pid.0, tid.0)), id: number, ..at };
                self.format.encode_read((pid.0, tid.0), *cpu_time_ns, &id)
            }
            // The record has no thread and no time, so perf ignores it.
            EventKind::TotalInAll { cpu_time_ns } => {
                self.format.encode_read((u32::MAX, u32::MAX), *cpu_time_ns, &RecordId::default())
            }
            EventKind::Lost { records } => self.format.encode_lost_samples(*records, &at),
            _ => Vec::new(),
        }
    }
}

/// The bits of a mapping's record for its owner: the kernel or a program.
fn mode(mapping: &Mapping) -> u16 {
    if mapping.pid.is_none() { misc::KERNEL } else { misc::USER }
}

fn mmap(mapping: &Mapping, pid: u32) -> Mmap<'_> {
    /// `PROT_READ | PROT_EXEC` and `MAP_PRIVATE` of mmap(2).
    const CODE: (u32, u32) = (1 | 4, 2);
    Mmap {
        pid,
        tid: pid,
        address: mapping.start.0,
        len: mapping.len,
        page_offset: mapping.offset.0,
        identity: match &mapping.identity {
            MappedFile::BuildId(id) => MappedIdentity::BuildId(id.as_bytes()),
            &MappedFile::Inode { major, minor, inode, generation } => {
                MappedIdentity::Inode { major, minor, inode, generation }
            }
            MappedFile::Unknown | MappedFile::Pe(_) | MappedFile::Provided(_) | MappedFile::MachO(_) => {
                MappedIdentity::None
            }
        },
        protection: Some(CODE.0),
        flags: Some(CODE.1),
        path: mapping.path.as_bytes(),
        data: false,
    }
}
