//! Reads a trace: samples of threads, and allocations.

use nyquist_profile::{FrameId, LibId, Measure, StackId, ThreadIndex, Unit};
use rustc_hash::FxHashMap;

use super::blocks::{TraceObject, TracePart, TraceParts, stacks};
use super::events::{BlockEvents, EventMeaning, TraceEvent};
use super::methods::{Method, Methods};
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::le_cursor::LeCursor;
use crate::values::{SampleValueKind, choose};

const FORMAT: &str = "a trace of .NET (.nettrace)";

/// The innermost frame of a thread that did not run code of .NET when it was sampled: it waited, or ran native code.
const UNMANAGED: &str = "[unmanaged code]";

/// The type of a sample in code of .NET.
const MANAGED: u32 = 2;

/// Reads the samples of .NET's sample profiler, or else the sampled allocations. A sample stands for the time until the
/// thread's next one, as `dotnet-trace convert` shows it. The profiler samples threads whether they run or wait, so
/// that this is wall time.
///
/// # Errors
/// If it does not begin as a trace, is of a version that is not read, or has neither.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let Some(mut parts) = TraceParts::of(bytes) else {
        return Err(unknown_version(bytes));
    };
    let mut trace = Trace::default();
    for part in parts.by_ref() {
        trace.take(part);
    }
    trace.end_segment();
    let Some(about) = trace.about else {
        return Err(ReadError::Malformed { format: FORMAT, problem: "its first object is missing".into() });
    };
    let values = trace.values();
    if values.is_empty() {
        let text = "the trace has no samples: collect it with the profile dotnet-sampled-thread-time, \
            formerly cpu-sampling";
        return Err(ReadError::Unsupported(text.into()));
    }
    let value = &values[choose(&values, requested, 0)?];
    let mut importer = trace.import(about, value);
    if !parts.is_whole {
        importer.note(Note::Cut { place: "its end".into() });
    }
    Ok(importer.finish(None))
}

fn unknown_version(bytes: &[u8]) -> ReadError {
    let mut cursor = LeCursor::new(bytes.get(super::MAGIC.len()..).unwrap_or_default());
    if let (Some(0), Some(version)) = (cursor.u32(), cursor.u32()) {
        let advice = "give it to PerfView, or convert it with `dotnet-trace convert`";
        return ReadError::Unsupported(format!(
            "it is {FORMAT} of version {version}, and 4 and 5 are read: {advice}"
        ));
    }
    ReadError::Malformed { format: FORMAT, problem: "its header is damaged".into() }
}

/// A thread with a stack at a time.
struct StackEvent {
    thread: u64,
    /// In ticks.
    time: u64,
    /// The number in the segment, then the index of the stack in the whole trace.
    stack: usize,
    what: Observed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Observed {
    Sample { is_managed: bool },
    Allocation { bytes: u64 },
}

#[derive(Default)]
struct Trace<'a> {
    about: Option<TraceObject>,
    meanings: FxHashMap<u32, EventMeaning>,
    methods: Methods,
    command_line: String,
    events: Vec<StackEvent>,
    /// How many events are of whole segments.
    complete: usize,
    /// The addresses of each stack; the first one is empty.
    stacks: Vec<&'a [u8]>,
    /// The stacks of this segment by their numbers.
    segment: FxHashMap<u32, usize>,
}

impl<'a> Trace<'a> {
    fn take(&mut self, part: TracePart<'a>) {
        match part {
            TracePart::Trace(about) => self.about = Some(about),
            TracePart::Metadata(body) => {
                let described = BlockEvents::of(body).filter_map(|it| EventMeaning::of_metadata(it.payload));
                self.meanings.extend(described.filter_map(|(id, meaning)| Some((id, meaning?))));
            }
            TracePart::Stacks(body) => {
                for (number, addresses) in stacks(body) {
                    self.stacks.push(addresses);
                    self.segment.insert(number, self.stacks.len());
                }
            }
            TracePart::Events(body) => BlockEvents::of(body).for_each(|event| self.event(&event)),
            TracePart::SequencePoint => self.end_segment(),
            TracePart::Other => {}
        }
    }

    /// Gives the events since the last sequence point their stacks.
    fn end_segment(&mut self) {
        for event in self.events.iter_mut().skip(self.complete) {
            let number = u32::try_from(event.stack).unwrap_or(0);
            event.stack = self.segment.get(&number).copied().unwrap_or(0);
        }
        self.complete = self.events.len();
        self.segment.clear();
    }

    fn event(&mut self, event: &TraceEvent<'a>) {
        let Some(&meaning) = self.meanings.get(&event.metadata) else { return };
        let mut payload = LeCursor::new(event.payload);
        let what = match meaning {
            EventMeaning::Sample => Observed::Sample { is_managed: payload.u32() == Some(MANAGED) },
            EventMeaning::Allocation => match allocated(payload) {
                Some(bytes) => Observed::Allocation { bytes },
                None => return,
            },
            EventMeaning::Method => {
                if let Some(method) = Method::of(event.payload) {
                    self.methods.add(method);
                }
                return;
            }
            EventMeaning::Module => {
                self.methods.add_module(event.payload);
                return;
            }
            EventMeaning::ProcessInfo => {
                self.command_line = payload.utf16();
                return;
            }
        };
        let TraceEvent { thread, time, stack, .. } = *event;
        self.events.push(StackEvent { thread, time, stack: stack as usize, what });
    }

    /// The values that it has.
    fn values(&self) -> Vec<SampleValueKind> {
        let has = |is: fn(&Observed) -> bool| self.events.iter().any(|event| is(&event.what));
        let time = has(|what| matches!(what, Observed::Sample { .. }));
        let bytes = has(|what| matches!(what, Observed::Allocation { .. }));
        let time = time.then(|| SampleValueKind::new("wall time", Unit::Time));
        time.into_iter().chain(bytes.then(|| SampleValueKind::new("allocated", Unit::Bytes))).collect()
    }

    fn import(mut self, about: TraceObject, value: &SampleValueKind) -> Importer {
        self.methods.sort();
        self.events.sort_by_key(|event| event.time);
        let mut importer = Importer::new(program(&self.command_line), FORMAT);
        let meta = importer.meta_mut();
        meta.measure = Measure { name: value.name.clone(), unit: value.unit };
        meta.start_time = about.start_ms.saturating_mul(1000);
        meta.logical_cpus = Some(about.processors).filter(|&count| count > 0);
        let process = self.process_name().to_owned();
        let mut stacks = TraceStacks::new(&self, about.pointer_size);
        let is_time = value.unit == Unit::Time;
        let mut indexes = FxHashMap::default();
        let mut threads: FxHashMap<ThreadIndex, SampledThread> = FxHashMap::default();
        for event in &self.events {
            let index = *indexes
                .entry(event.thread)
                .or_insert_with(|| thread(&mut importer, about.pid, event.thread, &process));
            let thread = threads.entry(index).or_insert(SampledThread { index, last: None, step: 0 });
            let time = nanoseconds(event.time.saturating_sub(about.start_ticks), about.ticks_per_second);
            match event.what {
                Observed::Sample { is_managed } if is_time => {
                    thread.end_last(&mut importer, time);
                    let stack = stacks.stack(
                        &mut importer,
                        event.stack,
                        if is_managed { Innermost::Runs } else { Innermost::Calls },
                    );
                    thread.last = Some((time, stack));
                }
                Observed::Allocation { bytes } if !is_time => {
                    let stack = stacks.stack(&mut importer, event.stack, Innermost::Allocates);
                    importer.sample(thread.index, time, stack, bytes);
                }
                _ => {}
            }
        }
        for thread in threads.values_mut() {
            // The last sample lasts as long as the one before.
            let step = if thread.step == 0 { MILLISECOND } else { thread.step };
            let end = thread.last.map_or(0, |(time, _)| time.saturating_add(step));
            thread.end_last(&mut importer, end);
        }
        importer
    }

    fn process_name(&self) -> &str {
        program(&self.command_line)
    }
}

/// The samples of a thread.
struct SampledThread {
    index: ThreadIndex,
    last: Option<(u64, Option<StackId>)>,
    /// How long the sample before the last one lasted.
    step: u64,
}

impl SampledThread {
    fn end_last(&mut self, importer: &mut Importer, end: u64) {
        if let Some((time, stack)) = self.last.take() {
            self.step = end.saturating_sub(time);
            importer.span(self.index, time, (stack, false), self.step);
        }
    }
}

fn thread(importer: &mut Importer, pid: u32, tid: u64, process: &str) -> ThreadIndex {
    let (pid, tid) = (pid.to_string(), tid.to_string());
    let name = format!("Thread {tid}");
    importer.thread(ThreadName { pid: &pid, process, tid: &tid, thread: &name })
}

/// The bytes of an `AllocationTick`: a number of 32 bits and, since its version 2, one of 64.
fn allocated(mut payload: LeCursor<'_>) -> Option<u64> {
    let bytes = payload.u32()?;
    let (_kind, _runtime) = (payload.u32(), payload.u16());
    Some(payload.u64().filter(|&wide| wide >= u64::from(bytes)).unwrap_or(u64::from(bytes)))
}

fn nanoseconds(ticks: u64, per_second: u64) -> u64 {
    let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(per_second.max(1));
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

/// The name of the program of a command line.
fn program(command_line: &str) -> &str {
    let line = command_line.trim();
    let path = match line.strip_prefix('"') {
        Some(rest) => rest.split('"').next().unwrap_or_default(),
        None => line.split_ascii_whitespace().next().unwrap_or_default(),
    };
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    if name.is_empty() { ".NET" } else { name }
}

/// What the innermost method of a stack does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Innermost {
    Runs,
    /// It has called native code, which is not on the stack.
    Calls,
    /// It has called the runtime, whose own work is not shown.
    Allocates,
}

/// The stacks of the profile, by those of the trace.
struct TraceStacks<'t, 'a> {
    trace: &'t Trace<'a>,
    pointer_size: usize,
    stacks: FxHashMap<(usize, Innermost), Option<StackId>>,
    /// By address, and for methods by their numbers: many addresses have the same, perhaps long, name.
    frames: FxHashMap<u64, FrameId>,
    methods: FxHashMap<usize, FrameId>,
    libs: FxHashMap<u64, LibId>,
}

impl<'t, 'a> TraceStacks<'t, 'a> {
    fn new(trace: &'t Trace<'a>, pointer_size: usize) -> Self {
        let (stacks, frames) = (FxHashMap::default(), FxHashMap::default());
        let (methods, libs) = (FxHashMap::default(), FxHashMap::default());
        Self { trace, pointer_size, stacks, frames, methods, libs }
    }

    /// The stack with this number, from 1 on.
    fn stack(&mut self, importer: &mut Importer, number: usize, innermost: Innermost) -> Option<StackId> {
        if let Some(&stack) = self.stacks.get(&(number, innermost)) {
            return stack;
        }
        let addresses =
            number.checked_sub(1).and_then(|at| self.trace.stacks.get(at)).copied().unwrap_or_default();
        let mut stack = None;
        let count = addresses.len() / self.pointer_size;
        for (place, address) in addresses.chunks_exact(self.pointer_size).enumerate().rev() {
            let address = address.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            // A return address is behind its call. That of the innermost method is one, too, where it has called
            // native code.
            let is_return = place > 0 || innermost != Innermost::Runs;
            let frame = self.frame(importer, address.saturating_sub(u64::from(is_return)));
            stack = Some(importer.stack(stack, frame));
        }
        if innermost == Innermost::Calls || count == 0 {
            let frame = importer.frame(&CodePosition { name: UNMANAGED, ..CodePosition::default() });
            stack = Some(importer.stack(stack, frame));
        }
        self.stacks.insert((number, innermost), stack);
        stack
    }

    fn frame(&mut self, importer: &mut Importer, address: u64) -> FrameId {
        if let Some(&frame) = self.frames.get(&address) {
            return frame;
        }
        let frame = match self.trace.methods.find(address) {
            Some(number) => self.method(importer, number),
            None => {
                importer.frame(&CodePosition { name: &format!("{address:#x}"), ..CodePosition::default() })
            }
        };
        self.frames.insert(address, frame);
        frame
    }

    fn method(&mut self, importer: &mut Importer, number: usize) -> FrameId {
        if let Some(&frame) = self.methods.get(&number) {
            return frame;
        }
        let code = self.trace.methods.get(number).map(|(method, path)| CodePosition {
            name: &method.name,
            lib: path.map(|path| *self.libs.entry(method.module).or_insert_with(|| importer.lib(path, None))),
            is_jit: method.is_jit,
            ..CodePosition::default()
        });
        let frame = importer.frame(&code.unwrap_or_default());
        self.methods.insert(number, frame);
        frame
    }
}
