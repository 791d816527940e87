//! Writes a recording as a perf.data file, which perf itself can read.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};

use super::features::{Features, FileBuildId, feature};
use super::header::{FileHeader, PerfSection};
use super::tool::tool_record;
use crate::{EventAttr, Header};

/// An event to write: its attributes, its name, and the ids of the opened events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenEvent {
    /// Its configuration.
    pub attr: EventAttr,
    /// Its name.
    pub name: String,
    /// The ids of the opened events, and the CPU on which each counts, if there is one.
    pub ids: Vec<(u64, Option<u32>)>,
}

/// Writes a recording: first its events, then its records in sequence, then its features.
///
/// Numbers are little-endian. The header of an unfinished file does not contain the size of its records,
/// so it is read up to its end.
#[derive(Debug)]
pub struct FileWriter<W> {
    out: W,
    events: Vec<WrittenEvent>,
    attrs: PerfSection,
    data: PerfSection,
    /// Sections of features in binary form.
    more: Vec<(u32, Vec<u8>)>,
}

impl<W: Write + Seek> FileWriter<W> {
    /// Writes the data before the records.
    pub fn new(mut out: W, events: Vec<WrittenEvent>) -> io::Result<Self> {
        out.seek(SeekFrom::Start(0))?;
        let ids_at = FileHeader::FILE_LEN as u64;
        let mut ids = Vec::new();
        let mut attrs = Vec::new();
        for event in &events {
            let section = PerfSection { offset: ids_at + ids.len() as u64, size: 8 * event.ids.len() as u64 };
            ids.extend(event.ids.iter().flat_map(|(id, _)| id.to_le_bytes()));
            attrs.extend(event.attr.to_bytes());
            attrs.extend(section_bytes(section));
        }
        let attrs_at = ids_at + ids.len() as u64;
        let attrs_section = PerfSection { offset: attrs_at, size: attrs.len() as u64 };
        let data = PerfSection { offset: attrs_section.end(), size: 0 };
        let mut writer = Self { out, events, attrs: attrs_section, data, more: Vec::new() };
        writer.write_header(&[])?;
        writer.out.write_all(&ids)?;
        writer.out.write_all(&attrs)?;
        writer.write_cpus()?;
        Ok(writer)
    }

    /// Writes complete records in the kernel's layout.
    pub fn write_records(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.data.size += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Ends a round: all records older than the latest one at the previous call have been written.
    pub fn finish_round(&mut self) -> io::Result<()> {
        self.write_records(&record(tool_record::FINISHED_ROUND, 0, &[]))
    }

    /// Adds the section of a feature for which [`Features`] has no field. It replaces one with the same
    /// number.
    pub fn add_feature(&mut self, number: u32, section: Vec<u8>) {
        self.more.push((number, section));
    }

    /// Writes the recording's features and its header, and returns the file.
    pub fn finish(mut self, features: &Features) -> io::Result<W> {
        let sections = self.feature_sections(features);
        let mut list = Vec::new();
        let mut at = self.data.end() + 16 * sections.len() as u64;
        for (_, bytes) in &sections {
            list.extend(section_bytes(PerfSection { offset: at, size: bytes.len() as u64 }));
            at += bytes.len() as u64;
        }
        self.out.write_all(&list)?;
        for (_, bytes) in &sections {
            self.out.write_all(bytes)?;
        }
        let numbers: Vec<u32> = sections.iter().map(|(number, _)| *number).collect();
        self.out.seek(SeekFrom::Start(0))?;
        self.write_header(&numbers)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_header(&mut self, features: &[u32]) -> io::Result<()> {
        let attr_len = EventAttr::LEN as u64 + 16;
        let mut bits = [0_u64; 4];
        for number in features {
            bits[(number / 64) as usize] |= 1 << (number % 64);
        }
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend((FileHeader::FILE_LEN as u64).to_le_bytes());
        bytes.extend(attr_len.to_le_bytes());
        for section in [self.attrs, self.data, PerfSection::default()] {
            bytes.extend(section_bytes(section));
        }
        bytes.extend(bits.iter().flat_map(|word| word.to_le_bytes()));
        self.out.write_all(&bytes)
    }

    /// Writes the CPU on which each event counts: `ID_INDEX`, with as many entries per record as fit.
    fn write_cpus(&mut self) -> io::Result<()> {
        const MAX_ENTRIES: usize = 2000;
        let ids: Vec<_> = self.events.iter().flat_map(|event| event.ids.iter().copied()).collect();
        for ids in ids.chunks(MAX_ENTRIES) {
            let mut body = (ids.len() as u64).to_le_bytes().to_vec();
            for (place, (id, cpu)) in ids.iter().enumerate() {
                let cpu = cpu.map_or(u64::MAX, u64::from);
                body.extend([*id, place as u64, cpu, u64::MAX].into_iter().flat_map(u64::to_le_bytes));
            }
            self.write_records(&record(tool_record::ID_INDEX, 0, &body))?;
        }
        Ok(())
    }

    /// The sections of the features, sorted by number.
    fn feature_sections(&self, features: &Features) -> Vec<(u32, Vec<u8>)> {
        let text = |text: &Option<String>| text.as_deref().map(string);
        let pair = |(first, second): (u64, u64)| [first.to_le_bytes(), second.to_le_bytes()].concat();
        let build_ids: Vec<u8> = features.build_ids.iter().flat_map(build_id).collect();
        let clock = features.clock.map(|clock| {
            let version_and_clock = [1_u32.to_le_bytes(), clock.clock.to_le_bytes()].concat();
            [version_and_clock, pair((clock.wall_ns, clock.clock_ns))].concat()
        });
        let sections = [
            (feature::BUILD_ID, (!build_ids.is_empty()).then_some(build_ids)),
            (feature::HOSTNAME, text(&features.hostname)),
            (feature::OSRELEASE, text(&features.os_release)),
            (feature::VERSION, text(&features.version)),
            (feature::ARCH, text(&features.arch)),
            (
                feature::NRCPUS,
                features.cpus.map(|(all, online)| [all, online].map(u32::to_le_bytes).concat()),
            ),
            (feature::CPUDESC, text(&features.cpu_name)),
            (feature::TOTAL_MEM, features.memory_kb.map(|memory| memory.to_le_bytes().to_vec())),
            (feature::CMDLINE, Some(strings(&features.command_line))),
            (feature::EVENT_DESC, Some(self.descriptions())),
            (feature::SAMPLE_TIME, features.sample_time.map(pair)),
            (feature::CLOCKID, features.clock.map(|_| 1_u64.to_le_bytes().to_vec())),
            (feature::CLOCK_DATA, clock),
            (
                feature::NYQUIST_REQUESTED,
                (!features.requested.is_empty()).then(|| strings(&features.requested)),
            ),
        ];
        let sections = sections.into_iter().filter_map(|(number, bytes)| Some((number, bytes?)));
        // Sections are in the order of their numbers.
        let by_number: BTreeMap<_, _> = sections.chain(self.more.iter().cloned()).collect();
        by_number.into_iter().collect()
    }

    fn descriptions(&self) -> Vec<u8> {
        let mut bytes = (self.events.len() as u32).to_le_bytes().to_vec();
        bytes.extend((EventAttr::LEN as u32).to_le_bytes());
        for event in &self.events {
            bytes.extend(event.attr.to_bytes());
            bytes.extend((event.ids.len() as u32).to_le_bytes());
            bytes.extend(string(&event.name));
            bytes.extend(event.ids.iter().flat_map(|(id, _)| id.to_le_bytes()));
        }
        bytes
    }
}

/// A record: its header and its body. A body that exceeds the maximum size of a record is cut.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let body = &body[..body.len().min(usize::from(u16::MAX) - Header::LEN)];
    let size = (Header::LEN + body.len()) as u16;
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes().into_iter().chain(size.to_le_bytes()));
    bytes.extend(body);
    bytes
}

fn section_bytes(section: PerfSection) -> Vec<u8> {
    [section.offset, section.size].into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A text in perf's format: its length with the padding, then the bytes with a terminating zero.
fn string(text: &str) -> Vec<u8> {
    let len = (text.len() + 1).next_multiple_of(64);
    let mut bytes = (len as u32).to_le_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes.resize(4 + len, 0);
    bytes
}

fn strings(texts: &[String]) -> Vec<u8> {
    let mut bytes = (texts.len() as u32).to_le_bytes().to_vec();
    bytes.extend(texts.iter().flat_map(|text| string(text)));
    bytes
}

fn build_id(file: &FileBuildId) -> Vec<u8> {
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the record contains the size of the id.
    const HAS_SIZE: u16 = 1 << 15;
    let len = file.build_id.len().min(20);
    let mut body = file.pid.to_le_bytes().to_vec();
    body.extend(&file.build_id[..len]);
    body.resize(4 + 20, 0);
    body.extend([len as u8, 0, 0, 0]);
    body.extend(file.path.bytes());
    body.resize((body.len() + 1).next_multiple_of(8), 0);
    record(tool_record::HEADER_BUILD_ID, file.misc | HAS_SIZE, &body)
}
