//! What each event of a recording is used for.

use nyquist_perf::file::FileEvent;
use nyquist_perf::{AttrFlags, EventAttr};

use super::error::ImportError;
use crate::decode::perf::{PerfEvents, Period};

/// How perf calls time of waiting (`perf record --off-cpu`).
pub(super) const OFF_CPU_EVENT: &str = "offcpu-time";

/// The interval that a sample stands for where nothing says how much time it is.
const UNKNOWN_INTERVAL_NS: u64 = 1_000_000;

/// An event of a recording, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUse {
    /// The name under which it was asked for.
    pub name: String,
    /// Whether its samples are in the profile.
    pub used: bool,
    /// How many samples of it there are in the recording.
    pub samples: u64,
}

/// What an event's samples mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Threads were observed.
    Samples,
    /// Threads left the CPU (`sched:sched_switch`).
    OffCpuIntervals,
    /// Threads were off the CPU, for as long as the period says (`perf record --off-cpu`).
    OffCpu,
    /// Something happened that is worth a marker, or changed a counter: any other tracepoint.
    Marks,
}

/// An event, what it counts, and whether it is wanted.
#[derive(Debug)]
pub(crate) struct Chosen {
    name: String,
    attr: EventAttr,
    used: Option<Meaning>,
    pub(crate) samples: u64,
    /// How its records are read.
    pub(crate) layout: Option<PerfEvents>,
}

impl Chosen {
    pub(crate) fn is_used(&self) -> bool {
        self.used.is_some()
    }

    /// What its samples mean, if they are wanted.
    pub(crate) fn meaning(&self) -> Option<Meaning> {
        self.used
    }

    /// What a period counts.
    pub(crate) fn period(&self) -> Period {
        let is_time = is_clock(&self.attr) || self.used == Some(Meaning::OffCpu);
        if is_time { Period::Nanoseconds } else { Period::Each(self.interval_ns()) }
    }

    /// The time from one sample to the next, as it was asked for.
    pub(crate) fn interval_ns(&self) -> u64 {
        let period = self.attr.sample_period.max(1);
        if self.attr.flags.contains(AttrFlags::FREQ) {
            (1_000_000_000 / period).max(1)
        } else if is_clock(&self.attr) {
            period
        } else {
            UNKNOWN_INTERVAL_NS
        }
    }

    /// Whether its periods are CPU time.
    pub(crate) fn is_clock(&self) -> bool {
        is_clock(&self.attr)
    }

    /// What was asked for.
    pub(crate) fn attr(&self) -> &EventAttr {
        &self.attr
    }

    /// The name under which it was asked for.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_use(self) -> EventUse {
        EventUse { name: self.name, used: self.used.is_some(), samples: self.samples }
    }
}

/// Decides what each event is used for. Without names, those that count what the first clock or cycle counter counts (the
/// kinds of cores of a machine have a cycle counter each), or, where there is none, the first event; and where threads wait.
/// Other tracepoints become markers.
///
/// Where a recording is by us (`by_us`), what takes over from the main event because it copies more of each stack is used with it.
pub(crate) fn choose(
    events: &[FileEvent],
    wanted: &[String],
    by_us: bool,
) -> Result<Vec<Chosen>, ImportError> {
    let sampling = |event: &&FileEvent| !is_dummy(event) && !is_off_cpu(event);
    for name in wanted {
        if !events.iter().any(|event| is_named(event, name)) {
            let there =
                events.iter().filter(|event| !is_dummy(event)).map(|event| event.name.clone()).collect();
            return Err(ImportError::NoSuchEvent { wanted: name.clone(), there });
        }
    }
    let main = events.iter().filter(sampling);
    let main = main.clone().find(|event| measures_time(event)).or_else(|| main.clone().next());
    let is_main = |event: &FileEvent| {
        main.is_some_and(|main| {
            std::ptr::eq(main, event)
                || is_same_measure(main, event)
                || (by_us && takes_over(&main.attr, &event.attr))
        })
    };
    let used = |event: &FileEvent| {
        let is_wanted = wanted.iter().any(|name| is_named(event, name));
        if is_switch(event) {
            (wanted.is_empty() || is_wanted).then_some(Meaning::OffCpuIntervals)
        } else if is_off_cpu(event) {
            (wanted.is_empty() || is_wanted).then_some(Meaning::OffCpu)
        } else if is_wanted || (wanted.is_empty() && is_main(event)) {
            Some(Meaning::Samples)
        } else {
            (wanted.is_empty() && event.attr.kind == TRACEPOINT).then_some(Meaning::Marks)
        }
    };
    let chosen = |event: &FileEvent| Chosen {
        name: event.name.clone(),
        attr: event.attr,
        used: used(event),
        samples: 0,
        layout: None,
    };
    Ok(events.iter().map(chosen).collect())
}

/// Whether an event has that name, which may leave out the modifiers behind a colon (`cycles:u`).
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

/// `perf record --off-cpu` writes its samples under a name of its own, as those of `bpf-output`.
fn is_off_cpu(event: &FileEvent) -> bool {
    const BPF_OUTPUT: u64 = 10;
    event.attr.kind == SOFTWARE && event.attr.config == BPF_OUTPUT && event.name == OFF_CPU_EVENT
}

fn is_cycles(event: &FileEvent) -> bool {
    event.attr.generic_name() == Some("cycles") || event.name.contains("cycles")
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
