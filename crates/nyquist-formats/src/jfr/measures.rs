//! The measures of a JFR recording: which of its events are read, and the amount of each.

use nyquist_profile::{Measure, Unit};
use rustc_hash::FxHashMap;

use crate::error::ReadError;

/// The amount that an event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventAmount {
    /// One sample of the profiler that recorded it.
    Sample,
    /// The number of wall-clock samples in this field.
    WallSamples(&'static str),
    /// The CPU time in this field.
    CpuTime(&'static str),
    /// The bytes in this field.
    Bytes(&'static str),
    /// The duration of the event.
    Duration,
}

/// A value that can be read from a recording.
pub(super) struct MeasuredValue {
    pub(super) name: &'static str,
    /// Its short name.
    short: &'static str,
    pub(super) events: &'static [(&'static str, EventAmount)],
}

/// All values. By default, the first one that a recording has is read.
pub(super) static VALUES: [MeasuredValue; 11] = [
    value("jdk.CPUTimeSample", "cpu", &[("jdk.CPUTimeSample", EventAmount::CpuTime("samplingPeriod"))]),
    value("jdk.ExecutionSample", "cpu", &[("jdk.ExecutionSample", EventAmount::Sample)]),
    value("wall time", "wall", &[("profiler.WallClockSample", EventAmount::WallSamples("samples"))]),
    value("jdk.NativeMethodSample", "native", &[("jdk.NativeMethodSample", EventAmount::Sample)]),
    value(
        "jdk.ObjectAllocationSample",
        "alloc",
        &[("jdk.ObjectAllocationSample", EventAmount::Bytes("weight"))],
    ),
    value(
        "TLAB allocations",
        "alloc",
        &[
            ("jdk.ObjectAllocationInNewTLAB", EventAmount::Bytes("tlabSize")),
            ("jdk.ObjectAllocationOutsideTLAB", EventAmount::Bytes("allocationSize")),
        ],
    ),
    value("profiler.LiveObject", "live", &[("profiler.LiveObject", EventAmount::Bytes("allocationSize"))]),
    value("jdk.JavaMonitorEnter", "lock", &[("jdk.JavaMonitorEnter", EventAmount::Duration)]),
    value("jdk.JavaMonitorWait", "wait", &[("jdk.JavaMonitorWait", EventAmount::Duration)]),
    value("jdk.ThreadPark", "park", &[("jdk.ThreadPark", EventAmount::Duration)]),
    value("jdk.ThreadSleep", "sleep", &[("jdk.ThreadSleep", EventAmount::Duration)]),
];

const fn value(
    name: &'static str,
    short: &'static str,
    events: &'static [(&'static str, EventAmount)],
) -> MeasuredValue {
    MeasuredValue { name, short, events }
}

impl MeasuredValue {
    /// Whether its events are waits, which also become markers.
    pub(super) fn is_wait(&self) -> bool {
        self.events.iter().any(|&(_, amount)| amount == EventAmount::Duration)
    }

    /// The amount of an event with this name, for this value.
    pub(super) fn amount(&self, event: &str) -> Option<EventAmount> {
        self.events.iter().find(|&&(name, _)| name == event).map(|&(_, amount)| amount)
    }

    /// The number of events, given the counts by name.
    pub(super) fn count(&self, counts: &FxHashMap<String, u64>) -> u64 {
        self.events.iter().filter_map(|(name, _)| counts.get(*name)).sum()
    }

    /// The name for `--event` that needs no quotes.
    pub(super) fn event_argument(&self) -> &'static str {
        if self.name.contains(' ') { self.short } else { self.name }
    }

    fn is_called(&self, name: &str) -> bool {
        let is_event = |event: &str| event == name || event.rsplit('.').next() == Some(name);
        self.name == name || self.short == name || self.events.iter().any(|&(event, _)| is_event(event))
    }
}

/// Chooses the value with this name, or by default the first one that exists.
pub(super) fn choose(
    counts: &FxHashMap<String, u64>,
    requested: Option<&str>,
) -> Result<&'static MeasuredValue, ReadError> {
    let mut there = VALUES.iter().filter(|value| value.count(counts) > 0);
    let names = || there.clone().map(|value| value.name).collect::<Vec<_>>().join(", ");
    let problem = match requested {
        None => "it is a JFR recording without samples of execution, allocations or waits: \
                 start it with settings=profile"
            .to_owned(),
        Some(name) => format!("the recording has no events `{name}`, but {}", names()),
    };
    let found = there.find(|value| requested.is_none_or(|name| value.is_called(name)));
    found.ok_or(ReadError::Unsupported(problem))
}

/// The settings of sampling in a recording that are used.
#[derive(Clone, Debug, Default)]
pub(super) struct SamplingSettings {
    /// The event by which async-profiler samples. Other recorders do not state it.
    pub(super) event: Option<String>,
    /// Its interval: ns for a clock, otherwise a number of events.
    pub(super) interval: Option<u64>,
    /// The interval of its samples of the wall clock in ns.
    pub(super) wall: Option<u64>,
}

/// async-profiler's default intervals, in ns.
const CPU_INTERVAL: u64 = 10_000_000;
const WALL_INTERVAL: u64 = 50_000_000;

/// The measure, and the amount of one sample.
pub(super) fn measure(value: &MeasuredValue, settings: &SamplingSettings) -> (Measure, u64) {
    let named = |name: &str, unit| Measure { name: name.to_owned(), unit };
    let declared =
        |interval: Option<u64>, default| interval.filter(|&interval| interval > 0).unwrap_or(default);
    match value.events[0].1 {
        EventAmount::CpuTime(_) => (Measure::default(), 1),
        EventAmount::Bytes(_) => (named(value.name, Unit::Bytes), 1),
        EventAmount::Duration => (named(value.name, Unit::Time), 1),
        EventAmount::WallSamples(_) => {
            (named(value.name, Unit::Time), declared(settings.wall, WALL_INTERVAL))
        }
        EventAmount::Sample => match settings.event.as_deref().filter(|_| value.short == "cpu") {
            Some("cpu" | "cpu-clock" | "ctimer" | "itimer") => {
                (Measure::default(), declared(settings.interval, CPU_INTERVAL))
            }
            Some("wall") => (named("wall time", Unit::Time), declared(settings.interval, WALL_INTERVAL)),
            Some(event) => (named(event, Unit::Count), declared(settings.interval, 1)),
            // The JDK samples only a few of the threads that run Java code, at varying times. This is not CPU
            // time.
            None => (named(value.name, Unit::Count), 1),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(events: &[&str]) -> FxHashMap<String, u64> {
        events.iter().map(|event| ((*event).to_owned(), 1)).collect()
    }

    #[test]
    fn a_value_is_chosen_by_any_of_its_names() {
        let all = counts(&["jdk.ExecutionSample", "jdk.ObjectAllocationOutsideTLAB", "jdk.ThreadPark"]);
        let check = |requested, expected: &str| {
            assert_eq!(choose(&all, requested).map(|value| value.name).unwrap(), expected, "{requested:?}");
        };
        check(None, "jdk.ExecutionSample");
        check(Some("cpu"), "jdk.ExecutionSample");
        check(Some("alloc"), "TLAB allocations");
        check(Some("ObjectAllocationInNewTLAB"), "TLAB allocations");
        check(Some("jdk.ThreadPark"), "jdk.ThreadPark");
        let error = choose(&all, Some("wall")).err().unwrap().to_string();
        assert!(error.contains("jdk.ExecutionSample, TLAB allocations, jdk.ThreadPark"), "{error}");
        assert!(choose(&counts(&["jdk.CPULoad"]), None).is_err());
    }

    #[test]
    fn only_samples_of_a_cpu_clock_are_cpu_time() {
        let execution = choose(&counts(&["jdk.ExecutionSample"]), None).unwrap();
        let check = |event: Option<&str>, interval, expected| {
            let settings = SamplingSettings { event: event.map(str::to_owned), interval, wall: None };
            assert_eq!(measure(execution, &settings), expected, "{event:?}");
        };
        let named = |name: &str, unit| Measure { name: name.into(), unit };
        check(None, None, (named("jdk.ExecutionSample", Unit::Count), 1));
        check(Some("cpu"), Some(1_000_000), (Measure::default(), 1_000_000));
        check(Some("itimer"), Some(0), (Measure::default(), 10_000_000));
        check(Some("wall"), Some(5), (named("wall time", Unit::Time), 5));
        check(Some("cache-misses"), Some(1000), (named("cache-misses", Unit::Count), 1000));
    }
}
