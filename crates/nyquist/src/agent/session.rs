//! A recording of the agent: the thread that receives it, and the profile of each window.

use super::service_labels::Origins;
use super::window::Window;
use crate::args::AgentArgs;
use crate::delegates;
use crate::failure::Failure;
use crate::memory;
use crate::record::drive::{ChunkSink, drive};
use crate::record::linux::options::with_stacks;
use crate::record::linux::{
    functions_of_waits, launch_failure, open_failure, recorded_events, requested_names,
};
use bytes::Bytes;
use nyquist_convert::event::{Event, EventKind, Timestamp};
use nyquist_convert::{Converter, LibSource, Options, Shape};
use nyquist_profile::{LibId, Meta, Profile};
use nyquist_record::linux::allocations::{AllocationReader, AllocationSummary};
use nyquist_record::linux::backend::{Backend, BackendChoice, Recording, RecordingOutcome};
use nyquist_record::linux::launch::{RunningChild, SuspendedChild};
use nyquist_record::linux::wait_stacks::WaitStacks;
use nyquist_record::linux::{self, Companion as _, RecordingTarget, StopHandle, now};
use std::collections::HashSet;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The most blocks that are followed until they are freed, and the most stacks that are held for later allocations.
const MAX_BLOCKS: usize = 1 << 18;

/// How often samples are received.
const HAND_OVER_EVERY: Duration = Duration::from_secs(1);

/// A running recording.
pub(super) struct Session {
    pub(super) outcome: RecordingOutcome,
    growing: Arc<Mutex<Growing>>,
    stop: StopHandle,
    thread: JoinHandle<()>,
}

/// The profile of a window, without names.
pub(super) struct WindowProfile {
    /// Its zero is the window's beginning, at a time of the system's clock that is not known here.
    pub(super) profile: Profile,
    pub(super) sources: Vec<(LibId, LibSource)>,
    /// The events whose occurrences are markers of it.
    pub(super) events: Arc<[String]>,
    pub(super) window: Window,
    /// What is missing meanwhile.
    pub(super) lost: Losses,
}

/// Records that are in no profile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// Those that the kernel dropped.
    pub(super) records: u64,
    /// Those of events that the kernel dropped, or that were too many for a profile.
    pub(super) events: u64,
    /// Blocks that were too many to be followed until they are freed.
    pub(super) blocks: u64,
}

impl Losses {
    fn so_far(converter: &Converter) -> Self {
        let occurrences = converter.occurrences();
        let events = occurrences.lost + occurrences.left_out();
        Self { records: converter.statistics().lost, events, blocks: converter.left_out_blocks() }
    }

    fn since(self, before: Self) -> Self {
        Self {
            records: self.records.saturating_sub(before.records),
            events: self.events.saturating_sub(before.events),
            blocks: self.blocks.saturating_sub(before.blocks),
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.records += more.records;
        self.events += more.events;
        self.blocks += more.blocks;
    }
}

/// What was recorded and not yet taken.
struct Growing {
    converter: Converter,
    zero: Timestamp,
    window: Window,
    waits: Option<WaitStacks>,
    allocations: Option<AllocationReader>,
    /// The names of the events that were asked for.
    events: Arc<[String]>,
    /// The processes with a sample in this window.
    sampled: HashSet<u32>,
    origins: Origins,
    /// All that was lost when the last window was taken.
    lost: Losses,
}

/// What a recording leaves when it ends.
pub(super) struct Remainder {
    /// The profiles of what was not taken: of the windows that are over, and of the one that the end cuts short.
    pub(super) taken: Vec<WindowProfile>,
    /// The reader of allocations, for the next recording of the same command.
    pub(super) allocations: Option<AllocationReader>,
    /// What is missing of allocations, if none are recorded any more.
    pub(super) summary: Option<AllocationSummary>,
}

impl Session {
    /// Opens the events of a target, and begins to record. The command starts with it. `ended` gets a message when
    /// there is nothing more to record.
    pub(super) fn start<M: Send + 'static>(
        args: &AgentArgs,
        rate: u32,
        target: RecordingTarget,
        (child, allocations): (Option<SuspendedChild>, Option<AllocationReader>),
        (origins, ended): (Origins, (Sender<M>, M)),
    ) -> Result<(Self, Option<RunningChild>), Failure> {
        if let Some(child) = &child {
            // It may be over before it is sampled.
            origins.notice(child.pid().0);
        }
        let loses_privileges = child.as_ref().and_then(SuspendedChild::loses_privileges);
        let options = options(args, rate)?;
        let backend = Backend::open(BackendChoice::Auto, target, &options, loses_privileges);
        let backend = backend.map_err(|error| open_failure(&error))?;
        let outcome = backend.outcome();
        let zero = now();
        let window = Window::first(zero, std::time::SystemTime::now(), args.every);
        let waits = (args.off_cpu && matches!(outcome, RecordingOutcome::Perf(_))).then(WaitStacks::start);
        let waits = waits.transpose();
        let growing = Growing {
            converter: Converter::new(Options {
                filter: backend.filter(),
                ..converter_options(args, &outcome, zero)
            }),
            zero,
            window,
            allocations,
            waits: waits.map_err(|error| Failure::because("cannot record where threads wait", &error))?,
            events: requested_names(&options.events).collect(),
            sampled: HashSet::new(),
            origins,
            lost: Losses::default(),
        };
        let growing = Arc::new(Mutex::new(growing));
        let recording = backend.record().map_err(|error| open_failure(&error))?;
        let running = child.map(SuspendedChild::start).transpose().map_err(|error| launch_failure(&error))?;
        let stop = recording.stop_handle();
        let shared = Arc::clone(&growing);
        let thread = thread::Builder::new().name("agent-recorder".to_owned()).spawn(move || {
            receive(recording, &shared);
            let (sender, message) = ended;
            // Nobody listens at the end.
            let _ = sender.send(message);
        });
        let thread = thread.map_err(|error| Failure::because("no thread can be started", &error))?;
        Ok((Self { outcome, growing, stop, thread }, running))
    }

    /// Whether allocations are recorded.
    pub(super) fn records_allocations(&self) -> bool {
        self.lock().allocations.is_some()
    }

    /// How long it takes until the current window is complete.
    pub(super) fn left(&self) -> Duration {
        self.lock().window.left(now())
    }

    /// The profile of the window that is complete. The next one begins.
    pub(super) fn take(&self, every: Duration) -> WindowProfile {
        self.lock().take(Some(every))
    }

    /// Ends the recording. `is_last`: whether no other follows that records allocations.
    pub(super) fn finish(self, every: Duration, is_last: bool) -> Remainder {
        self.stop.stop();
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
        let mut growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let allocations = growing.allocations.take();
        let (allocations, summary) = match allocations {
            Some(reader) if is_last => (None, Some(growing.finish_allocations(reader))),
            allocations => (allocations, None),
        };
        let end = now();
        let mut taken = Vec::new();
        while growing.window.end < end {
            taken.push(growing.take(Some(every)));
        }
        growing.window.end = end;
        taken.push(growing.take(None));
        Remainder { taken, allocations, summary }
    }

    fn lock(&self) -> MutexGuard<'_, Growing> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn receive(mut recording: Recording, growing: &Arc<Mutex<Growing>>) {
    drive(&mut recording, &mut &**growing);
    drop(recording.finish());
}

fn options(args: &AgentArgs, rate_hz: u32) -> Result<linux::Options, Failure> {
    let events = recorded_events(&args.events, &args.symbols, args.rate, args.off_cpu)?;
    let options = linux::Options {
        rate_hz,
        hand_over_every: Some(HAND_OVER_EVERY),
        spares_cpu_time: true,
        context_switches: args.off_cpu,
        wait_reasons: args.off_cpu,
        events,
        ..linux::Options::default()
    };
    with_stacks(args.stacks, options)
}

fn converter_options(args: &AgentArgs, outcome: &RecordingOutcome, zero: Timestamp) -> Options {
    // With ptrace, samples themselves record how long their threads have waited.
    let waits = args.off_cpu && matches!(outcome, RecordingOutcome::Perf(_));
    let interval = 1_000_000_000 / u64::from(outcome.rate_hz().max(1));
    let meta = Meta { interval, has_cpu_deltas: true, ..Meta::default() };
    let options = Options {
        kernel_permitted: outcome.samples_all_cpu_time(),
        shape: Shape { reuse_threads: true, waits, ..Shape::default() },
        process_memory: memory::of_processes(args.symbols.max_memory),
        side_files: memory::side_files(args.symbols.max_memory),
        kernel_symbols: functions_of_waits(outcome),
        targets: delegates::targets().clone(),
        max_blocks: Some(MAX_BLOCKS),
        ..Options::new(zero, meta)
    };
    if outcome.counts_cycles() { options.of_cycles() } else { options }
}

impl Growing {
    fn push(&mut self, events: &mut Vec<Event>, complete_before: Timestamp) {
        for event in events.drain(..) {
            if let Some(waits) = &mut self.waits {
                waits.notice(&event);
            }
            if let EventKind::Sample(sample) = &event.kind
                && self.sampled.insert(sample.pid.0)
            {
                self.origins.notice(sample.pid.0);
            }
            self.converter.push(event);
        }
        self.collect();
        // What is later belongs to the next window.
        self.converter.advance(complete_before.min(self.window.end));
    }

    /// Adds what is recorded besides.
    fn collect(&mut self) {
        let mut events = Vec::new();
        if let Some(waits) = &mut self.waits {
            waits.collect(&mut events);
        }
        if let Some(allocations) = &mut self.allocations {
            allocations.collect(&mut events);
        }
        self.push_all(events);
    }

    fn push_all(&mut self, events: Vec<Event>) {
        for event in events {
            self.converter.push(event);
        }
    }

    /// Adds the last allocations, and what is left.
    fn finish_allocations(&mut self, reader: AllocationReader) -> AllocationSummary {
        let mut events = Vec::new();
        let summary = reader.finish(&mut events);
        self.push_all(events);
        summary
    }

    fn take(&mut self, every: Option<Duration>) -> WindowProfile {
        let window = self.window;
        self.collect();
        self.converter.advance(window.end);
        let (profile, sources) = (self.converter.snapshot(), self.converter.lib_sources());
        self.converter.evict(window.end);
        if let Some(allocations) = &self.allocations {
            let mut events = Vec::new();
            allocations.contents_after_losses(&mut events);
            self.push_all(events);
        }
        self.sampled.clear();
        let lost = Losses::so_far(&self.converter);
        let lost_before = std::mem::replace(&mut self.lost, lost);
        if let Some(every) = every {
            self.window = window.next(now(), std::time::SystemTime::now(), every);
        }
        // Times of the profile count from the beginning of the recording.
        let window = Window {
            start: Timestamp(window.start.0.saturating_sub(self.zero.0)),
            end: Timestamp(window.end.0.saturating_sub(self.zero.0)),
        };
        let absolute = self.zero.0 + window.start.0;
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let start = (wall.as_nanos() as u64).saturating_sub(now().0.saturating_sub(absolute));
        // In µs, to a millisecond: the two clocks are read one after the other.
        let start_time = (start + 500_000) / 1_000_000 * 1000;
        let duration = window.end.0.saturating_sub(window.start.0);
        let profile = profile.beginning_at(window.start.0, start_time, duration);
        let (events, lost) = (Arc::clone(&self.events), lost.since(lost_before));
        WindowProfile { profile, sources, events, window, lost }
    }
}

impl ChunkSink for &Mutex<Growing> {
    fn take(&mut self, events: &mut Vec<Event>, _records: Option<Bytes>, complete_before: Timestamp) {
        self.lock().unwrap_or_else(PoisonError::into_inner).push(events, complete_before);
    }

    fn with_converter(&mut self, call: impl FnOnce(&mut Converter)) {
        call(&mut self.lock().unwrap_or_else(PoisonError::into_inner).converter);
    }
}
