//! Reads a trace: the time that each thread spent in each method.

use nyquist_profile::{FrameId, Measure, Unit};
use rustc_hash::FxHashMap;

use super::header::{BinaryHeader, Sections};
use super::records::{self, TraceRecord};
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::spans::Spans;
use crate::values::{SampleValueKind, choose};

const FORMAT: &str = "a method trace of Android";

/// The versions whose records are known.
const VERSIONS: std::ops::RangeInclusive<u16> = 1..=3;

const WALL: &str = "wall time";
const CPU: &str = "CPU time";

/// Reads the calls of methods, by the wall clock, or by the threads' CPU clocks if they are requested or alone. A
/// method that was left without being entered was entered before the trace.
///
/// # Errors
/// If it is no trace, has an unknown version, no records, or not the requested clock.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let (mut sections, rest) = match BinaryHeader::of(bytes) {
        Some(_) => (Sections::default(), bytes),
        None => Sections::split(bytes).ok_or_else(|| malformed("its list of methods has no end"))?,
    };
    let header = BinaryHeader::of(rest).ok_or_else(|| malformed("its records do not begin"))?;
    if !VERSIONS.contains(&header.version) {
        let text = format!("it is {FORMAT} of version {}, and versions 1 to 3 are known", header.version);
        return Err(ReadError::Unsupported(text));
    }
    let mut calls = Vec::new();
    let body = rest.get(header.length..).unwrap_or_default();
    let is_whole = records::read(header, body, &mut sections, &mut calls);
    let values = values(&calls);
    if values.is_empty() {
        return Err(malformed("it has no records"));
    }
    let value = &values[choose(&values, requested, 0)?];
    let mut importer = import(&sections, &calls, value);
    if !is_whole {
        importer.note(Note::Cut { place: "its last record".into() });
    }
    Ok(importer.finish(None))
}

fn values(calls: &[TraceRecord]) -> Vec<SampleValueKind> {
    let (has_wall, has_cpu) =
        (calls.iter().any(|it| it.wall.is_some()), calls.iter().any(|it| it.cpu.is_some()));
    let wall = has_wall.then_some(WALL);
    wall.into_iter()
        .chain(has_cpu.then_some(CPU))
        .map(|name| SampleValueKind::new(name, Unit::Time))
        .collect()
}

/// A thread's open methods, and its last time.
struct TracedThread {
    spans: Spans,
    open: Vec<u32>,
    /// How often each method is open, so that the end of one that is not needs no search.
    counts: FxHashMap<u32, u32>,
    time: u64,
}

impl TracedThread {
    fn new(spans: Spans) -> Self {
        Self { spans, open: Vec::new(), counts: FxHashMap::default(), time: 0 }
    }

    /// Leaves a method, and with it what an exception skipped. Returns whether it was open.
    fn leave(&mut self, importer: &mut Importer, time: u64, method: u32) -> bool {
        if self.counts.get(&method).is_none_or(|&count| count == 0) {
            return false;
        }
        while let Some(left) = self.open.pop() {
            self.spans.close(importer, time);
            self.counts.entry(left).and_modify(|count| *count -= 1);
            if left == method {
                break;
            }
        }
        true
    }
}

fn import(sections: &Sections, calls: &[TraceRecord], value: &SampleValueKind) -> Importer {
    let pid = sections.pid.unwrap_or(0).to_string();
    let main = sections.pid.and_then(|pid| sections.threads.get(&u16::try_from(pid).ok()?));
    let process = main.map_or("Android", String::as_str).to_owned();
    let mut importer = Importer::new(&process, FORMAT);
    if value.name == WALL {
        importer.meta_mut().measure = Measure { name: WALL.into(), unit: Unit::Time };
    }
    let mut frames: FxHashMap<u32, FrameId> = FxHashMap::default();
    let mut threads: FxHashMap<u16, TracedThread> = FxHashMap::default();
    let (mut order, mut unentered) = (Vec::new(), 0);
    for call in calls {
        let Some(time) = (if value.name == WALL { call.wall } else { call.cpu }) else { continue };
        let time = time.saturating_mul(1000);
        let thread = threads.entry(call.thread).or_insert_with(|| {
            order.push(call.thread);
            let tid = call.thread.to_string();
            let name = sections.threads.get(&call.thread).map_or(tid.as_str(), String::as_str);
            let name = ThreadName { pid: &pid, process: &process, tid: &tid, thread: name };
            TracedThread::new(Spans::new(importer.thread(name)))
        });
        thread.time = thread.time.max(time);
        if call.enters {
            let frame =
                *frames.entry(call.method).or_insert_with(|| frame(&mut importer, sections, call.method));
            thread.spans.open(&mut importer, time, frame, false);
            thread.open.push(call.method);
            *thread.counts.entry(call.method).or_default() += 1;
        } else {
            unentered += u64::from(!thread.leave(&mut importer, time, call.method));
        }
    }
    for thread in order {
        if let Some(TracedThread { spans, time, .. }) = threads.remove(&thread) {
            spans.end(&mut importer, time);
        }
    }
    importer.note_left_out(unentered, "ends of methods that began before the trace");
    importer
}

fn frame(importer: &mut Importer, sections: &Sections, method: u32) -> FrameId {
    let known = sections.methods.get(&method);
    let unknown = format!("{method:#x}");
    importer.frame(&CodePosition {
        name: known.map_or(&unknown, |method| &method.name),
        file: known.map(|method| method.file.as_str()),
        ..CodePosition::default()
    })
}
