//! A recording before it begins: the target, how the machine allows it to be recorded, and its start.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use nyquist_convert::ProcessFilter;
use nyquist_convert::event::Timestamp;
use nyquist_convert::perf::{AdditionalEvents, CounterMeaning, PerfDecoder, Period, Successors};

use super::active_outer_stacks::{ActiveOuterStacks, Program};
use super::attr::{Reach, Trigger, period_ns};
use super::drain::{DrainParameters, Drainer, FilledBuffer};
use super::drain_scheduler::{DrainScheduler, handed_over_at_most};
use super::event_opener::OpenEvents;
use super::event_pace::EventPace;
use super::event_parameters::EventParameters;
use super::event_pause::EventPause;
use super::events::Role;
use super::inherited_events::InheritedEventFilter;
use super::jitter::Jitter;
use super::live_totals::LiveTotals;
use super::look_pace::LookPace;
use super::open_error::{OpenError, system_error};
use super::outcome::{Coverage, Notice, PerfOutcome};
use super::outer_stacks::{MemoryReading, OuterStacks as _};
use super::reader::{ReaderEnd, RingReader, Watched};
use super::recording::{Heartbeat, InitialState, PerfRecording};
use super::refusals::open_error;
use super::scope::RecordedScope;
use super::sideband_throttle::SidebandThrottle;
use super::target_opener::{OpenTarget, RecordedGroup, TargetOpener, requested_cpus};
use super::totals::{CountedThreads, ThreadTotals};
use crate::linux::cgroup::{self};
use crate::linux::options::{CallGraph, Options, RecordingTarget};
use crate::linux::recorded_event::RecordedEvent;
use crate::linux::stop::StopHandle;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::limits::page_size;
use crate::linux::sys::poll;
use crate::linux::sys::process::Preference;
use crate::linux::sys::users;
use crate::linux::{arch, initial_state, kernel, limits, proc};
use crate::pool::buffers_for;

/// Beyond this rate, the clock's interrupts alone (some 12 µs each on a virtual machine) starve the target.
const MAX_RATE_HZ: u32 = 20_000;

/// Opened events with their rings, ready to record.
#[derive(Debug)]
pub struct Perf {
    target: RecordingTarget,
    options: Options,
    outcome: PerfOutcome,
    opened: OpenEvents,
    /// The program in the kernel that copies the outer parts of stacks.
    stack_program: Option<Program>,
    filter: ProcessFilter,
    group: Option<RecordedGroup>,
    /// Hundreds of busy threads would leave this one little time to attach to them, and their work until then
    /// would not be recorded.
    preference: Option<Preference>,
}

impl Perf {
    /// Opens the events and maps their rings.
    ///
    /// A machine that allows less yields a reduced recording, and [`PerfOutcome::notices`] lists what is missing.
    /// Fails only if no event can be opened, no ring can be mapped, or the target does not exist.
    pub fn open(target: RecordingTarget, options: &Options) -> Result<Self, OpenError> {
        limits::raise_descriptor_limit();
        let preference = matches!(target, RecordingTarget::Attach(_)).then(Preference::of_this_thread);
        let mut options = options.clone();
        if !limits::tracepoints_are_permitted() {
            options.events.retain(|event| !event.is_optional());
        }
        let mut notices = Vec::new();
        let rate_hz = allowed_rate(options.rate_hz, &mut notices);
        let machine = TargetOpener::new(&options, rate_hz)?;
        let OpenTarget { opened, filter, group, coverage } = machine.open(&target, &mut notices)?;
        machine.notice_rings(opened.plan, &mut notices);
        let (features, plan) = (opened.common.features, opened.plan);
        let sampling: Vec<_> = opened.events.of_role(Role::Sampling).collect();
        let is_wanted = options.call_graph == CallGraph::Auto;
        let stack_program =
            is_wanted.then(|| ActiveOuterStacks::attach(&sampling, plan.stack_bytes)).flatten();
        if features.kernel && kernel::addresses_are_hidden() {
            notices.push(Notice::KernelAddressesHidden {
                kptr_restrict: limits::kernel_setting("kptr_restrict"),
            });
        }
        if !features.kernel {
            notices.push(Notice::KernelNotPermitted {
                paranoid: limits::kernel_setting("perf_event_paranoid"),
                is_root: users::is_root(),
            });
        }
        let outcome = PerfOutcome {
            coverage,
            attached: opened.attached,
            trigger: features.trigger,
            rate_hz,
            kernel: features.kernel,
            call_graph: options.call_graph,
            stack_bytes: plan.stack_bytes,
            cpus: machine.cpus.len(),
            sample_ring_bytes: plan.sample_pages * page_size(),
            sideband_ring_bytes: plan.sideband_pages.map(|pages| pages * page_size()),
            switch_stacks: has_switch_stacks(&options, &opened),
            copies_outer_stacks: stack_program.is_some(),
            notices,
        };
        Ok(Self { target, options, outcome, opened, stack_program, filter, group, preference })
    }

    /// What the machine allowed.
    pub fn outcome(&self) -> &PerfOutcome {
        &self.outcome
    }

    /// Selects the samples of the target; to be passed to the converter.
    pub fn filter(&self) -> ProcessFilter {
        self.filter.clone()
    }

    /// Starts recording: running processes at once, a child when it calls exec.
    pub fn record(mut self) -> Result<PerfRecording, OpenError> {
        let common = self.opened.common;
        let format = self.perf_decoder();
        let (watched, jitter) = (self.watched(), self.jitter());
        let totals = ThreadTotals::new(&self.counted_threads(), are_all_cpus(&self.options.cpus)?);
        let totals = Arc::new(totals);
        if common.starts_paused {
            totals.pause();
        }
        let live_totals = LiveTotals::new(Arc::clone(&totals));
        let stop = Arc::new(poll::event_counter().map_err(system_error("no event counter can be made"))?);
        let (scheduler, chunks, outer_stacks) = self.drain_scheduler(&format)?;
        let settled = scheduler.settled();
        let Options { hand_over_every, hand_over_lazily, .. } = self.options;
        let pairs = mem::take(&mut self.opened.sidebands);
        let spares = self.options.spares_cpu_time;
        let sideband_throttle = (!pairs.is_empty()).then(|| SidebandThrottle::new(pairs, spares));
        let events = Arc::new(self.opened.events);
        let event_pace = EventPace::new(events.paced(), monotonic_ns());
        let pause = EventPause::new(&events, &totals);
        let reader = start_thread(RingReader {
            events: Arc::clone(&events),
            scheduler,
            stop: Arc::clone(&stop),
            watched,
            duration: self.options.duration,
            look_pace: hand_over_every.map(|every| LookPace::new(every, hand_over_lazily)),
            totals,
            jitter,
            sideband_throttle,
            event_pace,
        })?;
        // The rings are drained before anything is written to them. What `/proc` contains is older than every
        // sample, but it is read when nothing can be missed any more.
        let time = Timestamp(monotonic_ns());
        let from_exec = matches!(common.reach, Reach::Thread { from_exec: true });
        let enabled = match (from_exec, common.starts_paused) {
            (true, _) => Ok(()),
            (false, true) => events.enable_sidebands(),
            (false, false) => events.enable(),
        };
        drop(self.preference);
        let processes = initial_state::describe(&running_processes(&self.target, self.group.as_ref()));
        let recording = PerfRecording {
            initial: Some(InitialState { time, processes, kernel: common.features.kernel }),
            chunks,
            format,
            reader: Some(reader),
            end: None,
            stop: StopHandle { counter: stop },
            events,
            pause,
            counts_time: self.outcome.coverage != Coverage::Cpus,
            leaf: self.group.and_then(RecordedGroup::leaf),
            outer_stacks: Some(outer_stacks),
            live_totals,
            received: VecDeque::new(),
            held: None,
            announced: Timestamp(0),
            heartbeat: hand_over_every.map(|every| Heartbeat::new(every, hand_over_lazily, settled)),
            parameters: EventParameters { common, outcome: self.outcome },
        };
        enabled.map_err(|source| open_error(source, RecordedScope::Everyone))?;
        Ok(recording)
    }

    /// The format of the records, and the meaning of the events.
    fn perf_decoder(&self) -> PerfDecoder {
        let common = self.opened.common;
        PerfDecoder {
            format: common.format(),
            architecture: arch::perf::ARCHITECTURE,
            kernel: common.features.kernel,
            period: match common.features.trigger {
                Trigger::CpuClock => Period::Provided,
                Trigger::Cycles => Period::Cycles,
            },
            cpus: self.opened.events.cpus(),
            counters: CounterMeaning::CpuTime,
            successors: Successors::default(),
            additional_events: self.described_additional_events(),
        }
    }

    /// Takes the rings. Returns their scheduler for the reader, the receiver of their records, and the
    /// mechanism that completes their stacks.
    fn drain_scheduler(
        &mut self,
        events: &PerfDecoder,
    ) -> Result<(DrainScheduler, Receiver<Vec<FilledBuffer>>, ActiveOuterStacks), OpenError> {
        let inherited_events = self.inherited_events()?;
        let rings = mem::take(&mut self.opened.rings);
        let buffers = buffers_for(self.outcome.cpus);
        let (out, chunks) = sync_channel(handed_over_at_most(buffers));
        let reading = memory_reading(&self.options, &self.outcome);
        let (samples, program) = ((&rings[..], &events.format), self.stack_program.take());
        let (outer_stacks, observer) = ActiveOuterStacks::start(samples, program, reading)
            .map_err(system_error("no thread can be started"))?;
        let (format, additional_events) = (events.format, events.additional_events.clone());
        let counts_threads = matches!(self.counted_threads(), CountedThreads::Families(_));
        let draining = DrainParameters { format, additional_events, counts_threads, buffers, out, observer };
        let scheduler = DrainScheduler::new(Drainer::new(rings, draining, inherited_events));
        Ok((scheduler, chunks, outer_stacks))
    }

    /// What ends the recording by its end.
    fn watched(&self) -> Watched {
        match &self.target {
            RecordingTarget::Child(pid) => Watched::Processes(vec![pid.0]),
            RecordingTarget::Attach(pids) => Watched::Processes(pids.iter().map(|pid| pid.0).collect()),
            RecordingTarget::Thread { tid, .. } => Watched::Thread(tid.0),
            RecordingTarget::System | RecordingTarget::Cgroup(_) => Watched::Processes(Vec::new()),
        }
    }

    /// The threads whose CPU time is counted one by one.
    fn counted_threads(&self) -> CountedThreads {
        match (&self.target, self.outcome.coverage) {
            (RecordingTarget::Child(pid), Coverage::Threads) => CountedThreads::Families(vec![*pid]),
            (RecordingTarget::Attach(pids), Coverage::Threads) => CountedThreads::Families(pids.clone()),
            (RecordingTarget::Thread { pid, tid }, _) => CountedThreads::One(*pid, *tid),
            _ => CountedThreads::None,
        }
    }

    /// The contents of the samples of additional events, by the kernel's ids of these events.
    fn described_additional_events(&self) -> AdditionalEvents {
        let events = &self.options.events;
        let counts = self.opened.common.has_additional_event_counts();
        let described: Vec<_> =
            events.iter().map(|event| Arc::new(event.described(events.len(), counts))).collect();
        let opened = self.opened.events.additional().iter();
        opened.filter_map(|opened| Some((opened.id, Arc::clone(described.get(opened.event)?)))).collect()
    }

    fn inherited_events(&self) -> Result<Option<InheritedEventFilter>, OpenError> {
        if !self.opened.late_threads {
            return Ok(None);
        }
        let sampled = self.opened.events.sampled_threads();
        sampled
            .map(|sampled| Some(InheritedEventFilter::new(sampled)))
            .map_err(system_error("the events have no numbers"))
    }

    /// A clock that ticks on whole CPUs would sample a program that works in the same rhythm always or never.
    fn jitter(&self) -> Option<Jitter> {
        let ticks = self.outcome.trigger == Trigger::CpuClock && self.outcome.coverage == Coverage::Cpus;
        ticks.then(|| Jitter::new(period_ns(self.outcome.rate_hz), monotonic_ns()))
    }
}

fn start_thread(reader: RingReader) -> Result<JoinHandle<ReaderEnd>, OpenError> {
    let thread = thread::Builder::new().name("nyquist-reader".into());
    thread.spawn(move || reader.run()).map_err(system_error("no thread can be started"))
}

/// The processes that run before the first record.
fn running_processes(target: &RecordingTarget, group: Option<&RecordedGroup>) -> Vec<u32> {
    match (target, group) {
        (RecordingTarget::Child(_), _) => Vec::new(),
        (RecordingTarget::Attach(pids), _) => proc::families(pids),
        (RecordingTarget::Thread { pid, .. }, _) => vec![pid.0],
        (_, Some(RecordedGroup::Named(folder))) => cgroup::processes(folder),
        _ => proc::all_processes().collect(),
    }
}

/// How much is read of living processes.
fn memory_reading(options: &Options, outcome: &PerfOutcome) -> MemoryReading {
    if options.call_graph != CallGraph::Auto {
        return MemoryReading::None;
    }
    if !options.spares_cpu_time {
        return MemoryReading::Full;
    }
    let cpus = u32::try_from(outcome.cpus).unwrap_or(u32::MAX);
    MemoryReading::Sparing { samples: outcome.rate_hz.saturating_mul(cpus) }
}

/// Whether the context switches of waiting threads are recorded.
fn has_switch_stacks(options: &Options, opened: &OpenEvents) -> bool {
    let of = |event: usize| options.events.get(event).is_some_and(RecordedEvent::is_optional);
    opened.events.additional().iter().any(|additional| of(additional.event))
}

/// Whether all online CPUs are included.
fn are_all_cpus(requested: &[u32]) -> Result<bool, OpenError> {
    let chosen = requested_cpus(requested)?;
    Ok(requested_cpus(&[])?.iter().all(|cpu| chosen.contains(cpu)))
}

/// The rate, limited to what the kernel allows.
fn allowed_rate(requested_hz: u32, notices: &mut Vec<Notice>) -> u32 {
    let kernels =
        limits::kernel_setting("perf_event_max_sample_rate").and_then(|most| u32::try_from(most).ok());
    let kernels = kernels.filter(|most| *most > 0);
    let allowed_hz = kernels.unwrap_or(MAX_RATE_HZ).min(MAX_RATE_HZ);
    if requested_hz > allowed_hz {
        let by_kernel = kernels == Some(allowed_hz);
        notices.push(Notice::RateLowered { requested_hz, allowed_hz, by_kernel });
    }
    requested_hz.clamp(1, allowed_hz)
}
