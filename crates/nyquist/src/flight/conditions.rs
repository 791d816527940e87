//! When a trigger's condition is met.

use crate::args::{Condition, Trigger};
use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};
use nyquist_profile::{Marker, MarkerTiming, MarkerValue, Profile, well_known};
use nyquist_record::linux::counters::{CPU_COUNTER, MEMORY_COUNTER};
use std::collections::HashMap;
use std::time::Duration;

/// The shortest time over which the use of CPUs is measured.
const MIN_SLICE_NS: u64 = 500_000_000;

/// The most processes whose use is added up one by one.
const MAX_PROCESSES: usize = 4096;

/// The conditions of a recording, and what they look at.
#[derive(Debug)]
pub(super) struct Conditions {
    triggers: Vec<WatchedTrigger>,
    usage: Usage,
    /// How many markers of each row were looked at.
    looked_at: Vec<usize>,
    /// What was met and could not be saved yet.
    pending: Option<Met>,
}

/// A condition that is met.
#[derive(Clone, Debug)]
pub(super) struct Met {
    trigger: Trigger,
    /// Waits that had ended by this time of the profile were saved before.
    saved_until: u64,
}

#[derive(Debug)]
struct WatchedTrigger {
    trigger: Trigger,
    holding: Holding,
}

/// How long something has been so.
#[derive(Debug, Default)]
struct Holding {
    /// Since when it is so.
    since: Option<Timestamp>,
    /// Whether it has been met since then.
    was_met: bool,
}

/// What the recorded processes use.
#[derive(Debug, Default)]
struct Usage {
    cpu_ms: HashMap<Pid, f64>,
    ended_cpu_ms: f64,
    memory: HashMap<Pid, f64>,
    /// When the CPU time was last read.
    read_at: Timestamp,
    /// The beginning of the current slice, and the CPU time by then.
    slice: Option<(Timestamp, f64)>,
}

impl Met {
    /// The condition, as it was typed.
    pub(super) fn text(&self) -> &str {
        &self.trigger.text
    }

    /// The same for a profile whose waits before a time were saved before.
    pub(super) fn after(self, saved_until: u64) -> Self {
        Self { saved_until, ..self }
    }

    /// Whether it is known only by the names of functions.
    pub(super) fn needs_names(&self) -> bool {
        self.trigger.condition.needs_waits()
    }

    /// Whether a profile with names confirms it.
    pub(super) fn is_confirmed(&self, profile: &Profile) -> bool {
        let Condition::Wait { reason, longer_than } = &self.trigger.condition else { return true };
        let markers = profile.threads().iter().flat_map(|thread| &thread.markers);
        markers.into_iter().any(|marker| {
            wait_reason(profile, marker).is_some_and(|of_wait| match reason {
                Some(reason) => reason == of_wait,
                None => of_wait != "sleep" && well_known::idle_runtime(of_wait).is_none(),
            }) && is_longer(marker, *longer_than)
                && ends_after(marker, self.saved_until)
        })
    }
}

/// The reason of a wait, if the marker is one.
fn wait_reason<'a>(profile: &'a Profile, marker: &Marker) -> Option<&'a str> {
    let schema = profile.marker_schemas().get(marker.schema?.index())?;
    match marker.values.first() {
        Some(MarkerValue::String(reason)) if schema.name == well_known::WAIT_SCHEMA => {
            Some(profile.string(*reason))
        }
        _ => None,
    }
}

fn is_longer(marker: &Marker, than: Duration) -> bool {
    matches!(marker.timing, MarkerTiming::Interval(start, end) if end.saturating_sub(start) > than.as_nanos() as u64)
}

fn ends_after(marker: &Marker, time: u64) -> bool {
    matches!(marker.timing, MarkerTiming::Interval(_, end) if end >= time)
}

impl Conditions {
    pub(super) fn new(triggers: &[Trigger]) -> Self {
        let watched =
            |trigger: &Trigger| WatchedTrigger { trigger: trigger.clone(), holding: Holding::default() };
        Self {
            triggers: triggers.iter().map(watched).collect(),
            usage: Usage::default(),
            looked_at: Vec::new(),
            pending: None,
        }
    }

    /// Notes what the processes use.
    pub(super) fn notice(&mut self, event: &Event) {
        if self.triggers.iter().any(|it| it.trigger.condition.needs_counters()) {
            self.usage.notice(event);
        }
    }

    /// The condition that is met now and was not before.
    pub(super) fn look(&mut self, tables: &Profile) -> Option<Met> {
        let cpu = self.usage.take_slice();
        let memory = self.usage.memory.values().sum::<f64>();
        let mut met = self.pending.take();
        for WatchedTrigger { trigger, holding } in &mut self.triggers {
            let is_met = match &trigger.condition {
                Condition::Cpu { above_percent, lasting } => cpu.is_some_and(|(start, end, share)| {
                    holding.begins((start, end), share * 100.0 > *above_percent, *lasting)
                }),
                Condition::Rss { above_bytes } => {
                    let now = self.usage.read_at;
                    holding.begins((now, now), memory > *above_bytes as f64, Duration::ZERO)
                }
                Condition::Wait { .. } | Condition::Marker { .. } => new_markers(tables, &self.looked_at)
                    .any(|marker| trigger.condition.may_be(tables, marker)),
            };
            if is_met {
                met.get_or_insert_with(|| Met { trigger: trigger.clone(), saved_until: 0 });
            }
        }
        self.forget_places(tables);
        met
    }

    /// A condition that is met is kept for the next look.
    pub(super) fn look_again(&mut self, met: Met) {
        self.pending = Some(met);
    }

    /// What is in the tables was looked at.
    pub(super) fn forget_places(&mut self, tables: &Profile) {
        self.looked_at.clear();
        self.looked_at.extend(tables.threads().iter().map(|thread| thread.markers.len()));
    }
}

/// The markers of each row that have come since the last look.
fn new_markers<'a>(tables: &'a Profile, looked_at: &'a [usize]) -> impl Iterator<Item = &'a Marker> {
    tables.threads().iter().enumerate().flat_map(|(row, thread)| {
        let from = looked_at.get(row).copied().unwrap_or_default();
        thread.markers.get(from..).unwrap_or_default()
    })
}

impl Condition {
    /// Whether a marker without names may be what a condition names. Only names tell a lock from an idle worker.
    fn may_be(&self, tables: &Profile, marker: &Marker) -> bool {
        match self {
            Self::Wait { longer_than, .. } => {
                is_longer(marker, *longer_than) && wait_reason(tables, marker).is_some()
            }
            Self::Marker { name, longer_than } => {
                is_longer(marker, *longer_than) && tables.string(marker.name) == name
            }
            Self::Cpu { .. } | Self::Rss { .. } => false,
        }
    }
}

impl Holding {
    /// Whether something begins to have been so for this long.
    fn begins(&mut self, (start, end): (Timestamp, Timestamp), is_so: bool, lasting: Duration) -> bool {
        if !is_so {
            (self.since, self.was_met) = (None, false);
            return false;
        }
        let since = *self.since.get_or_insert(start);
        let holds = end.0.saturating_sub(since.0) >= lasting.as_nanos() as u64;
        holds && !std::mem::replace(&mut self.was_met, holds)
    }
}

impl Usage {
    fn notice(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Counter(counter) if counter.kind.name == CPU_COUNTER => {
                self.read_at = self.read_at.max(event.time);
                insert(&mut self.cpu_ms, counter.pid, counter.value);
            }
            EventKind::Counter(counter) if counter.kind.name == MEMORY_COUNTER => {
                insert(&mut self.memory, counter.pid, counter.value);
            }
            EventKind::Exit { pid, tid } if pid.0 == tid.0 => {
                self.memory.remove(pid);
                self.ended_cpu_ms += self.cpu_ms.remove(pid).unwrap_or_default();
            }
            _ => {}
        }
    }

    /// The use of CPUs since the last slice, in CPUs, with its start and end, if that is long enough ago.
    fn take_slice(&mut self) -> Option<(Timestamp, Timestamp, f64)> {
        let used = self.ended_cpu_ms + self.cpu_ms.values().sum::<f64>();
        let (start, before) = *self.slice.get_or_insert((self.read_at, used));
        let length = self.read_at.0.saturating_sub(start.0);
        if length < MIN_SLICE_NS {
            return None;
        }
        self.slice = Some((self.read_at, used));
        Some((start, self.read_at, (used - before).max(0.0) * 1e6 / length as f64))
    }
}

/// Sets the value of a process, unless there are too many.
fn insert(values: &mut HashMap<Pid, f64>, pid: Pid, value: f64) {
    if values.len() < MAX_PROCESSES || values.contains_key(&pid) {
        values.insert(pid, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::{Counter, CounterGraph, CounterKind, GraphColor, Tid};
    use nyquist_profile::{CategoryColor, Meta, Process, ProfileBuilder, Thread};
    use std::sync::Arc;

    fn counter(name: &str, pid: u32, time_ms: u64, value: f64) -> Event {
        let kind = Arc::new(CounterKind {
            name: name.to_owned(),
            unit: String::new(),
            category: String::new(),
            description: String::new(),
            graph: CounterGraph::Rate,
            color: GraphColor::Grey,
            order: 0,
            accompanies: true,
        });
        let kind = EventKind::Counter(Counter { pid: Pid(pid), kind, value });
        Event { time: Timestamp(time_ms * 1_000_000), cpu: None, kind }
    }

    fn conditions(text: &str) -> Conditions {
        Conditions::new(&[text.parse().unwrap()])
    }

    fn empty() -> Profile {
        ProfileBuilder::new(Meta::default()).finish()
    }

    /// Two processes of which each uses 60 % for three seconds, then one alone.
    #[test]
    fn cpu_time_of_all_processes_counts_once() {
        let mut conditions = conditions("cpu > 100% for 2s");
        let mut met = Vec::new();
        for second in 0..8_u64 {
            let used = second.min(4) as f64 * 600.0;
            conditions.notice(&counter(CPU_COUNTER, 1, second * 1000, used));
            conditions.notice(&counter(CPU_COUNTER, 2, second * 1000, second as f64 * 600.0));
            met.extend(conditions.look(&empty()).map(|_| second));
        }
        assert_eq!(met, [2]);
    }

    #[test]
    fn memory_is_met_again_only_after_it_was_lower() {
        let mut conditions = conditions("rss > 1K");
        let mut met = Vec::new();
        for (at, bytes) in [900.0, 1100.0, 1200.0, 800.0, 2000.0].into_iter().enumerate() {
            conditions.notice(&counter(MEMORY_COUNTER, 1, at as u64, bytes));
            met.extend(conditions.look(&empty()).map(|_| at));
        }
        let exit = EventKind::Exit { pid: Pid(1), tid: Tid(1) };
        conditions.notice(&Event { time: Timestamp(9), cpu: None, kind: exit });
        assert!(conditions.look(&empty()).is_none() && !conditions.triggers[0].holding.was_met);
        assert_eq!(met, [1, 4]);
    }

    #[test]
    fn a_marker_is_looked_at_once() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let category = builder.add_category("Other", CategoryColor::Grey);
        for (name, length) in [("GET /a", 90_000_000), ("GET /b", 110_000_000)] {
            let name = builder.intern_string(name);
            let timing = MarkerTiming::Interval(0, length);
            builder.add_marker(
                thread,
                Marker { name, timing, category, schema: None, values: Vec::new(), stack: None },
            );
        }
        let profile = builder.finish();
        for (text, is_met) in
            [("marker GET /b > 100ms", true), ("marker GET /a > 100ms", false), ("wait > 100ms", false)]
        {
            let mut conditions = conditions(text);
            assert_eq!(conditions.look(&profile).is_some(), is_met, "{text}");
            assert!(conditions.look(&profile).is_none(), "{text}");
        }
    }
}
