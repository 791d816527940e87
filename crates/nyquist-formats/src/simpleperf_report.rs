//! simpleperf's report as protobuf, from `simpleperf report-sample --protobuf`, and what Android Studio keeps.
//!
//! The messages are described in `cmd_report_sample.proto` of Android's `platform/system/extras`.

use nyquist_profile::{FrameId, FuncKind, LibId, StackId, StringId, ThreadIndex, Unit};
use prost::Message;
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::le_cursor::LeCursor;
use crate::values::{SampleValueKind, choose};

const FORMAT: &str = "a report of simpleperf";

/// The first bytes of a file, before its version.
const MAGIC: &[u8] = b"SIMPLEPERF";

/// Whether a file begins like a report. Its version is a small number.
pub(crate) fn is_report(start: &[u8]) -> bool {
    start.strip_prefix(MAGIC).is_some_and(|rest| rest.get(1) == Some(&0))
}

/// `Record`.
#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(message, optional, tag = "1")]
    sample: Option<ReportSample>,
    #[prost(message, optional, tag = "2")]
    lost: Option<LostSituation>,
    #[prost(message, optional, tag = "3")]
    file: Option<ReportFile>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ReportThread>,
    #[prost(message, optional, tag = "5")]
    meta: Option<MetaInfo>,
}

/// `Sample`.
#[derive(Clone, PartialEq, Message)]
struct ReportSample {
    #[prost(uint64, tag = "1")]
    time: u64,
    #[prost(int32, tag = "2")]
    thread_id: i32,
    #[prost(message, repeated, tag = "3")]
    callchain: Vec<CallChainEntry>,
    #[prost(uint64, tag = "4")]
    event_count: u64,
    #[prost(uint32, tag = "5")]
    event_type_id: u32,
}

/// `Sample.CallChainEntry`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
struct CallChainEntry {
    #[prost(uint64, tag = "1")]
    vaddr_in_file: u64,
    #[prost(uint32, tag = "2")]
    file_id: u32,
    #[prost(int32, tag = "3")]
    symbol_id: i32,
    /// 0 for native code, 1 for interpreted and 2 for just-in-time compiled Java, 3 for Android's runtime.
    #[prost(int32, tag = "4")]
    execution_type: i32,
}

/// `LostSituation`.
#[derive(Clone, PartialEq, Message)]
struct LostSituation {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(uint64, tag = "2")]
    lost_count: u64,
}

/// `File`.
#[derive(Clone, PartialEq, Message)]
struct ReportFile {
    #[prost(uint32, tag = "1")]
    id: u32,
    #[prost(string, tag = "2")]
    path: String,
    #[prost(string, repeated, tag = "3")]
    symbols: Vec<String>,
}

/// `Thread`.
#[derive(Clone, PartialEq, Message)]
struct ReportThread {
    #[prost(uint32, tag = "1")]
    thread_id: u32,
    #[prost(uint32, tag = "2")]
    process_id: u32,
    #[prost(string, tag = "3")]
    thread_name: String,
}

/// `MetaInfo`.
#[derive(Clone, PartialEq, Message)]
struct MetaInfo {
    #[prost(string, repeated, tag = "1")]
    event_types: Vec<String>,
    #[prost(string, tag = "2")]
    app_package_name: String,
}

/// Reads the samples of an event: the `requested` one, or else the one of the most samples. The weight of a sample is
/// its count of events, in nanoseconds for the clocks.
///
/// # Errors
/// If it does not begin as a report, has no samples, or none of the requested event.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let mut report = Report::default();
    let is_whole = report.read(bytes).ok_or_else(|| malformed("it has no records"))?;
    if report.samples.is_empty() {
        return Err(malformed("it has no samples"));
    }
    let values = report.values();
    let event = choose(&values, requested, report.most_sampled())?;
    let mut importer = report.import(event, &values[event]);
    if !is_whole {
        importer.note(Note::Cut { place: "its end".into() });
    }
    importer.note_left_out(report.lost, "samples that simpleperf lost");
    Ok(importer.finish(None))
}

fn malformed(problem: &str) -> ReadError {
    ReadError::Malformed { format: FORMAT, problem: problem.into() }
}

#[derive(Default)]
struct Report {
    samples: Vec<ReportSample>,
    files: FxHashMap<u32, ReportFile>,
    threads: FxHashMap<u32, ReportThread>,
    meta: MetaInfo,
    lost: u64,
}

impl Report {
    /// Reads all records. Returns whether the last one was there, and `None` if the file does not begin as a report.
    fn read(&mut self, bytes: &[u8]) -> Option<bool> {
        let mut cursor = LeCursor::new(bytes);
        if cursor.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let _version = cursor.u16()?;
        loop {
            match cursor.length() {
                Some(0) => return Some(true),
                Some(length) => match cursor.take(length).map(Record::decode) {
                    Some(Ok(record)) => self.take(record),
                    _ => return Some(false),
                },
                None => return Some(false),
            }
        }
    }

    fn take(&mut self, record: Record) {
        self.samples.extend(record.sample);
        self.files.extend(record.file.map(|file| (file.id, file)));
        self.threads.extend(record.thread.map(|thread| (thread.thread_id, thread)));
        // Each one states the counts so far.
        self.lost = record.lost.map_or(self.lost, |lost| self.lost.max(lost.lost_count));
        if let Some(meta) = record.meta {
            self.meta = meta;
        }
    }

    /// The events that samples may be of.
    fn values(&self) -> Vec<SampleValueKind> {
        let last = self.samples.iter().map(|sample| sample.event_type_id).max().unwrap_or(0);
        // An id beyond the list is damaged: its samples are those of no event.
        let count = self.meta.event_types.len().max(usize::from(last == 0));
        let name = |at: usize| self.meta.event_types.get(at).map_or("samples", String::as_str);
        (0..count).map(|at| SampleValueKind::new(name(at), unit(name(at)))).collect()
    }

    fn most_sampled(&self) -> usize {
        let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
        for sample in &self.samples {
            *counts.entry(sample.event_type_id).or_default() += 1;
        }
        let known = counts.into_iter().filter(|&(id, _)| (id as usize) < self.meta.event_types.len());
        known.max_by_key(|&(id, count)| (count, std::cmp::Reverse(id))).map_or(0, |(id, _)| id as usize)
    }

    fn import(&self, event: usize, value: &SampleValueKind) -> Importer {
        let package = &*self.meta.app_package_name;
        let mut importer =
            Importer::new(if package.is_empty() { "simpleperf" } else { package }, "simpleperf");
        if value.unit != Unit::Time {
            importer.meta_mut().measure = value.measure();
        }
        let mut code = ReportCode::new(&self.files);
        let mut threads: FxHashMap<i32, ThreadIndex> = FxHashMap::default();
        let mut others = 0;
        for sample in &self.samples {
            if sample.event_type_id as usize != event {
                others += 1;
                continue;
            }
            let thread = *threads
                .entry(sample.thread_id)
                .or_insert_with(|| self.thread(&mut importer, sample.thread_id));
            let stack = code.stack(&mut importer, &sample.callchain);
            importer.sample(thread, sample.time, stack, sample.event_count);
        }
        importer.note_left_out(others, "samples of other events");
        importer
    }

    fn thread(&self, importer: &mut Importer, tid: i32) -> ThreadIndex {
        let name_of = |id: u32| self.threads.get(&id).map_or("", |thread| thread.thread_name.as_str());
        let id = tid.cast_unsigned();
        let pid = self.threads.get(&id).map(|thread| thread.process_id).filter(|&pid| pid != 0).unwrap_or(id);
        let (pid_text, tid_text) = (pid.to_string(), tid.to_string());
        let package = &*self.meta.app_package_name;
        let process = Some(name_of(pid)).filter(|name| !name.is_empty()).unwrap_or(package);
        importer.thread(ThreadName { pid: &pid_text, process, tid: &tid_text, thread: name_of(id) })
    }
}

/// The unit of an event: clocks count nanoseconds.
fn unit(event: &str) -> Unit {
    let event = event.split(':').next().unwrap_or(event);
    if matches!(event, "cpu-clock" | "task-clock") { Unit::Time } else { Unit::Count }
}

/// The frames of a report.
struct ReportCode<'a> {
    files: &'a FxHashMap<u32, ReportFile>,
    libs: FxHashMap<u32, LibId>,
    /// The names of symbols, by file and number: many addresses have the same, perhaps long, name.
    names: FxHashMap<(u32, i32), StringId>,
    frames: FxHashMap<CallChainEntry, FrameId>,
}

impl<'a> ReportCode<'a> {
    fn new(files: &'a FxHashMap<u32, ReportFile>) -> Self {
        let (libs, names, frames) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        Self { files, libs, names, frames }
    }

    /// The stack of a call chain, whose innermost entry is the first one.
    fn stack(&mut self, importer: &mut Importer, callchain: &[CallChainEntry]) -> Option<StackId> {
        callchain.iter().rev().fold(None, |prefix, entry| {
            let frame = match self.frames.get(entry) {
                Some(&frame) => frame,
                None => {
                    let frame = self.frame(importer, entry);
                    self.frames.insert(*entry, frame);
                    frame
                }
            };
            Some(importer.stack(prefix, frame))
        })
    }

    fn frame(&mut self, importer: &mut Importer, entry: &CallChainEntry) -> FrameId {
        let file = self.files.get(&entry.file_id);
        let symbol = usize::try_from(entry.symbol_id).ok().and_then(|at| file?.symbols.get(at));
        let lib = file.map(|file| match self.libs.get(&entry.file_id) {
            Some(&lib) => lib,
            None => *self.libs.entry(entry.file_id).or_insert_with(|| importer.lib(&file.path, None)),
        });
        let name = match symbol.filter(|name| !name.is_empty()) {
            Some(name) => {
                let key = (entry.file_id, entry.symbol_id);
                *self.names.entry(key).or_insert_with(|| importer.builder().intern_string(name))
            }
            None => importer.builder().intern_string(&format!("{:#x}", entry.vaddr_in_file)),
        };
        let code = CodePosition {
            lib,
            address: u32::try_from(entry.vaddr_in_file).ok(),
            is_kernel: file.is_some_and(|file| file.path.starts_with("[kernel")),
            is_jit: entry.execution_type == 2,
            kind: FuncKind::Native,
            ..CodePosition::default()
        };
        importer.frame_of(Some(name), None, &code)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_profile::stacks_of;
    use crate::{Format, detect};

    fn entry(file_id: u32, symbol_id: i32) -> CallChainEntry {
        CallChainEntry { vaddr_in_file: 0x1000, file_id, symbol_id, execution_type: 0 }
    }

    fn sample(time: u64, thread_id: i32, event_type_id: u32, callchain: &[CallChainEntry]) -> Record {
        let sample = ReportSample {
            time,
            thread_id,
            callchain: callchain.to_vec(),
            event_count: 250_000,
            event_type_id,
        };
        Record { sample: Some(sample), ..Record::default() }
    }

    /// Two threads of an app, of two events. Files and threads follow the samples.
    pub(crate) fn report() -> Vec<u8> {
        let file = |id, path: &str, symbols: &[&str]| {
            let symbols = symbols.iter().map(|&symbol| symbol.to_owned()).collect();
            Record { file: Some(ReportFile { id, path: path.into(), symbols }), ..Record::default() }
        };
        let thread = |thread_id, name: &str| {
            let thread = ReportThread { thread_id, process_id: 7, thread_name: name.into() };
            Record { thread: Some(thread), ..Record::default() }
        };
        let meta = MetaInfo {
            event_types: vec!["cpu-clock:u".into(), "page-faults".into()],
            app_package_name: "org.example.app".into(),
        };
        let records = [
            Record { meta: Some(meta), ..Record::default() },
            sample(1_000_000, 7, 0, &[entry(1, -1), entry(0, 1), entry(0, 0)]),
            sample(1_250_000, 7, 0, &[entry(0, 1), entry(0, 0)]),
            sample(1_300_000, 9, 1, &[entry(0, 1)]),
            sample(1_400_000, 9, 0, &[entry(0, 1)]),
            file(0, "/data/app/base.odex", &["main", "work"]),
            file(1, "/system/lib64/libc.so", &[]),
            thread(7, "org.example.app"),
            thread(9, "pool-1"),
        ];
        let mut out = [MAGIC, &[1, 0]].concat();
        for record in records {
            let bytes = record.encode_to_vec();
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
        out.extend([0; 4]);
        out
    }

    #[test]
    fn samples_of_clocks_are_cpu_time() {
        let bytes = report();
        assert_eq!(detect(&bytes, "x"), Some(Format::SimpleperfReport));
        let read = read_value(&bytes, None).unwrap();
        assert_eq!(stacks_of(&read.profile), ["main;work 1", "main;work;0x1000 1", "work 1"]);
        assert_eq!(
            (read.profile.meta().interval, read.profile.meta().measure.is_cpu_time()),
            (250_000, true)
        );
        assert_eq!(read.notes, [Note::LeftOut { count: 1, what: "samples of other events".into() }]);
        let names: Vec<_> = read.profile.threads().iter().map(|thread| &*thread.name).collect();
        assert_eq!(
            (names, &*read.profile.processes()[0].name),
            (vec!["org.example.app", "pool-1"], "org.example.app")
        );
        let faults = read_value(&bytes, Some("page-faults")).unwrap().profile;
        assert_eq!(
            (stacks_of(&faults), &*faults.meta().measure.name),
            (vec!["work 1".to_owned()], "page-faults")
        );
        assert_eq!(faults.meta().interval, 250_000);
    }

    /// A name is processed once. If it were for each of its addresses, this would take hours.
    #[test]
    fn a_long_name_at_many_addresses_costs_once() {
        let name = "x".repeat(1 << 19);
        let files = FxHashMap::from_iter([(0, ReportFile { id: 0, path: "/a".into(), symbols: vec![name] })]);
        let mut importer = Importer::new("x", "y");
        let mut code = ReportCode::new(&files);
        for vaddr_in_file in 0..100_000 {
            code.frame(&mut importer, &CallChainEntry { vaddr_in_file, ..entry(0, 0) });
        }
        assert_eq!(importer.builder().profile().funcs().len(), 1);
    }

    #[test]
    fn a_report_that_is_cut_off_says_so() {
        let bytes = report();
        let cut = Note::Cut { place: "its end".into() };
        for end in 0..bytes.len() {
            if let Ok(read) = read_value(&bytes[..end], None) {
                assert!(read.notes.contains(&cut), "{end}");
            }
        }
        assert!(read_value(b"SIMPLEPERF\x01\0\0\0\0\0", None).is_err());
    }
}
