//! How each event of a recording is used.

use nyquist_perf::file::FileEvent;
use nyquist_perf::{AttrFlags, EventAttr};
use nyquist_profile::{Measure, Unit};

use super::error::ImportError;
use crate::decode::perf::{PerfDecoder, Period};

/// Perf's name for time of waiting (`perf record --off-cpu`).
pub(super) const OFF_CPU_EVENT: &str = "offcpu-time";

/// The interval of our own recordings whose event has no unit of time.
const UNKNOWN_INTERVAL_NS: u64 = 1_000_000;

/// An event of a recording, and its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUse {
    /// The name by which the user requested it.
    pub name: String,
    /// Whether its samples are in the profile.
    pub used: bool,
    /// How many samples of it the recording has.
    pub samples: u64,
}

/// The meaning of an event's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Threads were observed.
    Samples,
    /// Threads left the CPU (`sched:sched_switch`).
    OffCpuIntervals,
    /// Threads were off the CPU, and the period is the length (`perf record --off-cpu`).
    OffCpu,
    /// Any other tracepoint, which becomes a marker or a counter's value.
    Marks,
}

/// An event, what it counts, and whether it is requested.
#[derive(Debug)]
pub(crate) struct ImportedEvent {
    name: String,
    attr: EventAttr,
    used: Option<Meaning>,
    counts: Counts,
    pub(crate) samples: u64,
    /// How its records are read.
    pub(crate) layout: Option<PerfDecoder>,
}

impl ImportedEvent {
    pub(crate) fn is_used(&self) -> bool {
        self.used.is_some()
    }

    /// The meaning of its samples, if they are requested.
    pub(crate) fn meaning(&self) -> Option<Meaning> {
        self.used
    }

    /// The unit of a period.
    pub(crate) fn period(&self) -> Period {
        match self.counts {
            Counts::Time => Period::Provided,
            Counts::Cycles if self.has_frequency() => Period::Cycles,
            // Without a frequency, a record need not repeat the period.
            Counts::Events if self.has_frequency() => Period::Provided,
            Counts::Cycles | Counts::Events => Period::Each(self.interval()),
        }
    }

    /// What a sample of weight 1 stands for: the requested interval in ns, or a number of events.
    pub(crate) fn interval(&self) -> u64 {
        let period = self.attr.sample_period.max(1);
        match (self.counts, self.has_frequency()) {
            (Counts::Time | Counts::Cycles, true) => (1_000_000_000 / period).max(1),
            (Counts::Events, true) => 1,
            (Counts::Time | Counts::Events, false) => period,
            (Counts::Cycles, false) => UNKNOWN_INTERVAL_NS,
        }
    }

    /// The unit of its samples.
    pub(crate) fn measure(&self) -> Measure {
        match self.counts {
            Counts::Time | Counts::Cycles => Measure::default(),
            Counts::Events => Measure { name: self.name.clone(), unit: Unit::Count },
        }
    }

    fn has_frequency(&self) -> bool {
        self.attr.flags.contains(AttrFlags::FREQ)
    }

    /// Whether its periods are CPU time.
    pub(crate) fn is_clock(&self) -> bool {
        is_clock(&self.attr)
    }

    /// The attributes by which the event was opened.
    pub(crate) fn attr(&self) -> &EventAttr {
        &self.attr
    }

    /// The name by which the user requested it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_use(self) -> EventUse {
        EventUse { name: self.name, used: self.used.is_some(), samples: self.samples }
    }
}

/// The unit of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Nanoseconds.
    Time,
    /// Cycles that are sampled at a frequency. Each sample stands for the CPU time of its cycles.
    Cycles,
    /// Another unit, which its periods count.
    Events,
}

/// The properties of a whole recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorder {
    /// Whether it is our own recorder.
    pub(crate) is_nyquist: bool,
    /// Whether the recording is of some threads only. Then `sched:sched_switch` does not report when they
    /// come to a CPU, because it is an event of the thread that leaves.
    pub(crate) is_of_threads: bool,
}

/// Decides the use of each event. Without names, the first clock or cycle counter is used, and all events of
/// the same unit, because each kind of core has its own cycle counter. If the recording has no such event,
/// the first event is used. Events of waiting are also used. Other tracepoints become markers.
///
/// In our own recordings, the events that take over from the main event, and copy more of each stack, are
/// used too.
///
/// # Errors
/// No event has a requested name, or the requested events have different units.
pub(crate) fn choose(
    events: &[FileEvent],
    requested: &[String],
    recorder: Recorder,
) -> Result<Vec<ImportedEvent>, ImportError> {
    for name in requested {
        if !events.iter().any(|event| is_named(event, name)) {
            let there =
                events.iter().filter(|event| !is_dummy(event)).map(|event| event.name.clone()).collect();
            return Err(ImportError::NoSuchEvent { requested: name.clone(), there });
        }
    }
    let uses = Uses::of(events, requested, recorder);
    let imported = |event: &FileEvent| ImportedEvent {
        name: event.name.clone(),
        attr: event.attr,
        used: uses.of_event(event),
        counts: counts(event, recorder),
        samples: 0,
        layout: None,
    };
    let imported: Vec<ImportedEvent> = events.iter().map(imported).collect();
    check_measures(&imported)?;
    Ok(imported)
}

/// The facts that determine the use of each event.
struct Uses<'a> {
    requested: &'a [String],
    recorder: Recorder,
    main: Option<&'a FileEvent>,
    /// Whether `sched:sched_switch` reports when threads come to a CPU.
    knows_arrivals: bool,
    /// Whether waiting can be shown beside the main event.
    is_time: bool,
}

impl<'a> Uses<'a> {
    fn of(events: &'a [FileEvent], requested: &'a [String], recorder: Recorder) -> Self {
        let switches = events.iter().any(|event| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH));
        let knows_arrivals = switches || !recorder.is_of_threads;
        let is_sampling = |event: &&FileEvent| !is_dummy(event) && !is_off_cpu(event);
        let named =
            |event: &&FileEvent| requested.is_empty() || requested.iter().any(|name| is_named(event, name));
        let sampling = events.iter().filter(is_sampling).filter(named);
        let main = sampling.clone().find(|event| measures_time(event)).or_else(|| sampling.clone().next());
        let is_time = |event: &FileEvent| is_switch(event) || counts(event, recorder) != Counts::Events;
        Self { requested, recorder, main, knows_arrivals, is_time: main.is_none_or(is_time) }
    }

    fn of_event(&self, event: &FileEvent) -> Option<Meaning> {
        let is_requested = self.requested.iter().any(|name| is_named(event, name));
        let is_default = self.requested.is_empty();
        if is_switch(event) && self.knows_arrivals {
            (is_default && self.is_time || is_requested).then_some(Meaning::OffCpuIntervals)
        } else if is_off_cpu(event) {
            (is_default && self.is_time || is_requested).then_some(Meaning::OffCpu)
        } else if is_requested || (is_default && self.is_main(event)) {
            Some(Meaning::Samples)
        } else {
            (is_default && event.attr.kind == TRACEPOINT).then_some(Meaning::Marks)
        }
    }

    fn is_main(&self, event: &FileEvent) -> bool {
        self.main.is_some_and(|main| {
            std::ptr::eq(main, event)
                || is_same_measure(main, event)
                || (self.recorder.is_nyquist && takes_over(&main.attr, &event.attr))
        })
    }
}

/// Fails if samples of different units would be added up.
fn check_measures(events: &[ImportedEvent]) -> Result<(), ImportError> {
    let counting = |event: &&ImportedEvent| event.used.is_some_and(|used| used != Meaning::Marks);
    let mut counting = events.iter().filter(counting);
    let Some(first) = counting.next() else { return Ok(()) };
    let measure = |event: &ImportedEvent| match event.used {
        Some(Meaning::Samples) => event.measure(),
        _ => Measure::default(),
    };
    match counting.find(|other| measure(other) != measure(first)) {
        Some(other) => {
            Err(ImportError::DifferentMeasures { first: first.name.clone(), other: other.name.clone() })
        }
        None => Ok(()),
    }
}

/// What an event counts. Cycles without a frequency count as events, because their time is not known.
/// Nyquist's own recorder is an exception, because its period of cycles lasts one interval.
fn counts(event: &FileEvent, recorder: Recorder) -> Counts {
    if is_clock(&event.attr) || is_off_cpu(event) {
        Counts::Time
    } else if is_cycles(event) && (recorder.is_nyquist || event.attr.flags.contains(AttrFlags::FREQ)) {
        Counts::Cycles
    } else {
        Counts::Events
    }
}

/// Whether an event has this name. The name may omit the modifiers behind a colon (`cycles:u`).
fn is_named(event: &FileEvent, name: &str) -> bool {
    let bare = event.name.split_once(':').filter(|_| event.attr.kind != TRACEPOINT).map(|(bare, _)| bare);
    event.name == name || bare == Some(name)
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];
const SW_DUMMY: u64 = 9;

fn is_clock(attr: &EventAttr) -> bool {
    attr.kind == SOFTWARE && CLOCKS.contains(&attr.config)
}

fn is_dummy(event: &FileEvent) -> bool {
    event.attr.kind == SOFTWARE && event.attr.config == SW_DUMMY
}

fn is_switch(event: &FileEvent) -> bool {
    event.attr.kind == TRACEPOINT && event.name == "sched:sched_switch"
}

/// Whether it is the event of `perf record --off-cpu`, which is a `bpf-output` event with its own name.
fn is_off_cpu(event: &FileEvent) -> bool {
    const BPF_OUTPUT: u64 = 10;
    event.attr.kind == SOFTWARE && event.attr.config == BPF_OUTPUT && event.name == OFF_CPU_EVENT
}

/// A software event of this name is not cycles. It comes from a profile that was written as a recording, and
/// is the profile's unit.
fn is_cycles(event: &FileEvent) -> bool {
    event.attr.kind != SOFTWARE
        && (event.attr.generic_name() == Some("cycles") || event.name.contains("cycles"))
}

fn measures_time(event: &FileEvent) -> bool {
    is_clock(&event.attr) || is_cycles(event)
}

/// Whether one of our events takes over from another: it is the same, but copies more of each stack.
pub(crate) fn takes_over(from: &EventAttr, event: &EventAttr) -> bool {
    (from.kind, from.config, from.sample_period) == (event.kind, event.config, event.sample_period)
        && from.sample_stack_user < event.sample_stack_user
}

fn is_same_measure(main: &FileEvent, event: &FileEvent) -> bool {
    let hybrid =
        main.attr.kind == HARDWARE && event.attr.kind == HARDWARE && main.attr.config != event.attr.config;
    hybrid && is_cycles(main) && is_cycles(event)
}
