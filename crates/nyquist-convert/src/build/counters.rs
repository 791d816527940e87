//! The counters of the profile: values of events become changes, and values without a change are left out.

use crate::event::{self, CounterKind, Pid, Timestamp};
use nyquist_profile::{
    Counter, CounterDisplay, CounterGraph, CounterId, CounterSample, ProcessIndex, ProfileBuilder, Thread,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The distance between the orders of two counters. The front end's own tracks may be between them.
const ORDER_STEP: i32 = 10;

/// The category of counters that the Firefox Profiler draws as memory.
const MEMORY: &str = "Memory";

/// The last values of counters whose changes add up.
type Sums = Vec<(Arc<CounterKind>, f64)>;

/// The profile's entries for counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    made: FxHashMap<(ProcessIndex, Arc<CounterKind>), (CounterId, f64)>,
    /// Values of processes that have no row yet, with their times. A process is identified by its pid and
    /// its start time, because the pid is reused.
    waiting: FxHashMap<(Pid, Timestamp), Vec<(event::Counter, u64)>>,
    /// The last values of sums of processes that get another row. The sums continue from these values.
    sums: FxHashMap<(Pid, Timestamp), Sums>,
}

/// The most processes whose values wait for a row. Most processes without a row never get one.
const MAX_WAITING_PROCESSES: usize = 1024;

impl Counters {
    /// Keeps a value of a process that has no row, because the process may get one later.
    pub(crate) fn wait(&mut self, id: (Pid, Timestamp), counter: &event::Counter, time: u64) {
        if self.waiting.len() < MAX_WAITING_PROCESSES || self.waiting.contains_key(&id) {
            self.waiting.entry(id).or_default().push((counter.clone(), time));
        }
    }

    /// Notes that a process gets another row at its next sample.
    pub(crate) fn leave_row(&mut self, row: ProcessIndex, id: (Pid, Timestamp)) {
        let of_row =
            self.made.iter().filter(|((of, kind), _)| *of == row && kind.graph == CounterGraph::Rate);
        let sums = of_row.map(|((_, kind), (_, last))| (Arc::clone(kind), *last)).collect();
        self.sums.insert(id, sums);
    }

    /// Adds the values that waited for the row of a process.
    pub(crate) fn add_waiting(
        &mut self,
        builder: &mut ProfileBuilder,
        row: ProcessIndex,
        id: (Pid, Timestamp),
    ) {
        for (kind, last) in self.sums.remove(&id).unwrap_or_default() {
            let counter = builder.add_counter(new_counter(row, &kind));
            self.made.insert((row, kind), (counter, last));
        }
        for (counter, time) in self.waiting.remove(&id).unwrap_or_default() {
            self.count(builder, row, &counter, time);
        }
    }

    /// Adds a value of a counter, `time` ns after the profile's zero.
    pub(crate) fn count(
        &mut self,
        builder: &mut ProfileBuilder,
        process: ProcessIndex,
        counter: &event::Counter,
        time: u64,
    ) {
        if !counter.value.is_finite() {
            return;
        }
        let key = (process, Arc::clone(&counter.kind));
        let (id, last) = self
            .made
            .entry(key)
            .or_insert_with(|| (builder.add_counter(new_counter(process, &counter.kind)), 0.0));
        // Another process that has this row counts from 0 again.
        let starts_anew = counter.kind.graph == CounterGraph::Rate && counter.value < *last;
        let delta = counter.value - if starts_anew { 0.0 } else { *last };
        *last = counter.value;
        builder.counter_mut(*id).samples.push(CounterSample { time, delta, operations: None });
    }

    /// The counters that only accompany samples.
    pub(super) fn accompanying(&self) -> FxHashSet<CounterId> {
        self.made.iter().filter(|((_, kind), _)| kind.accompanies).map(|(_, (id, _))| *id).collect()
    }
}

/// Drops the counters that accompany no data, or never change, and the rows that exist only for them. This
/// invalidates the ids of threads, processes and counters. O(threads and values of counters).
pub(crate) fn drop_idle(builder: &mut ProfileBuilder, accompanying: &FxHashSet<CounterId>) {
    if accompanying.is_empty() {
        return;
    }
    let says_more = |thread: &&Thread| !thread.samples.is_empty() || !thread.markers.is_empty();
    let shown: FxHashSet<ProcessIndex> =
        builder.profile().threads().iter().filter(says_more).map(|thread| thread.process).collect();
    let mut lonely = FxHashSet::default();
    builder.retain_counters(|id, counter| {
        let accompanies = accompanying.contains(&id);
        if accompanies && !shown.contains(&counter.process) {
            lonely.insert(counter.process);
        }
        !accompanies || (shown.contains(&counter.process) && says_something(counter))
    });
    let retained: FxHashSet<ProcessIndex> =
        builder.profile().counters().iter().map(|counter| counter.process).collect();
    lonely.retain(|process| !retained.contains(process));
    if !lonely.is_empty() {
        builder.retain_threads(|thread| !lonely.contains(&thread.process));
    }
}

/// Whether a counter changes after its first value. A level has one more change, because it first rises from
/// 0.
fn says_something(counter: &Counter) -> bool {
    let is_level = counter.display.graph == CounterGraph::Accumulated;
    counter.category == MEMORY
        || counter.samples.iter().skip(1 + usize::from(is_level)).any(|sample| sample.delta != 0.0)
}

fn new_counter(process: ProcessIndex, kind: &CounterKind) -> Counter {
    Counter {
        name: kind.name.clone(),
        category: kind.category.clone(),
        description: kind.description.clone(),
        process,
        display: CounterDisplay {
            graph: kind.graph,
            unit: kind.unit.clone(),
            color: kind.color,
            marker_schema_location: (kind.category == MEMORY).then(|| "timeline-memory".to_owned()),
            sort_weight: kind.order.saturating_mul(ORDER_STEP),
            label: kind.name.clone(),
        },
        samples: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::test_events::{MS, at, converter};
    use crate::event::{Event, EventKind, Sample, Tid, UserStack};
    use nyquist_profile::{GraphColor, Profile};

    fn kind(name: &str, graph: CounterGraph, accompanies: bool) -> Arc<CounterKind> {
        Arc::new(CounterKind {
            name: name.to_owned(),
            unit: "bytes".to_owned(),
            category: name.to_owned(),
            description: String::new(),
            graph,
            color: GraphColor::Blue,
            order: 2,
            accompanies,
        })
    }

    fn value(time_ms: u64, pid: u32, kind: &Arc<CounterKind>, value: f64) -> Event {
        let counter = event::Counter { pid: Pid(pid), kind: Arc::clone(kind), value };
        at(time_ms, EventKind::Counter(counter))
    }

    /// The names of the profile's counters with their processes.
    fn names(profile: &Profile) -> Vec<String> {
        let name = |counter: &Counter| format!("{} {}", profile.process(counter.process).pid, counter.name);
        let mut names: Vec<_> = profile.counters().iter().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn counters_alone_make_no_process() {
        let (level, rate) =
            (kind("level", CounterGraph::Accumulated, true), kind("rate", CounterGraph::Rate, true));
        let (memory, own) =
            (kind("Memory", CounterGraph::Accumulated, true), kind("own", CounterGraph::Rate, false));
        let mut converter = converter();
        for pid in [1, 2, 3] {
            for (time, number) in [(1, 0.0), (2, 7.0), (3, 7.0), (4, 8.0)] {
                converter.push(value(time, pid, &level, number));
                converter.push(value(time, pid, &rate, number));
            }
        }
        converter.push(value(1, 3, &own, 1.0));
        for (time, number) in [(1, 0.0), (2, 7.0), (3, 7.0)] {
            converter.push(value(time, 1, &memory, number));
            converter.push(value(time, 1, &kind("flat", CounterGraph::Accumulated, true), number));
            converter.push(value(time, 1, &kind("still", CounterGraph::Rate, true), 7.0));
        }
        converter.push(at(5, EventKind::Sample(Sample::in_user_code(Pid(1), UserStack::None))));
        let profile = converter.finish().profile;
        assert_eq!(names(&profile), ["1 Memory", "1 level", "1 rate", "3 own"]);
        let threads: Vec<_> = profile.threads().iter().map(|thread| thread.tid.as_str()).collect();
        assert_eq!(threads, ["3", "1"]);
        assert!(profile.counters().iter().all(|counter| counter.display.sort_weight == 20));
    }

    #[test]
    fn counters_make_no_row_of_a_main_thread() {
        let level = kind("level", CounterGraph::Accumulated, true);
        let mut converter = converter();
        let sample = Sample { tid: Tid(2), ..Sample::in_user_code(Pid(1), UserStack::None) };
        converter.push(value(1, 1, &level, 5.0));
        converter.push(at(2, EventKind::Sample(sample)));
        converter.push(value(3, 1, &level, 7.0));
        converter.push(value(4, 1, &level, 6.0));
        let profile = converter.finish().profile;
        let threads: Vec<_> = profile.threads().iter().map(|thread| thread.tid.as_str()).collect();
        assert_eq!((threads, values(&profile)), (vec!["2"], vec![(1, 5.0), (3, 7.0), (4, 6.0)]));
    }

    #[test]
    fn a_sum_that_falls_counts_from_nothing_again() {
        for (graph, changes) in
            [(CounterGraph::Rate, [5.0, 3.0, 2.0]), (CounterGraph::Accumulated, [5.0, 3.0, -6.0])]
        {
            let (mut converter, kind) = (converter(), kind("sum", graph, false));
            for (time, number) in [(1, 5.0), (2, 8.0), (3, 2.0)] {
                converter.push(value(time, 1, &kind, number));
            }
            let profile = converter.finish().profile;
            let found = profile.counters()[0].samples.iter().map(|sample| sample.delta);
            assert_eq!(found.collect::<Vec<_>>(), changes);
        }
    }

    fn counted(time_ms: u64, value: f64) -> Event {
        let kind = CounterKind {
            name: "heap".to_owned(),
            unit: "bytes".to_owned(),
            category: "Memory".to_owned(),
            description: String::new(),
            graph: CounterGraph::Accumulated,
            color: GraphColor::Blue,
            order: 0,
            accompanies: false,
        };
        at(time_ms, EventKind::Counter(event::Counter { pid: Pid(1), kind: Arc::new(kind), value }))
    }

    /// The values of the only counter with their times in ms. Each is the sum of the changes so far.
    fn values(profile: &Profile) -> Vec<(u64, f64)> {
        let mut sum = 0.0;
        let value = |sample: &CounterSample| {
            sum += sample.delta;
            (sample.time / MS, sum)
        };
        profile.counters()[0].samples.iter().map(value).collect()
    }

    #[test]
    fn counters_store_changes() {
        let mut converter = converter();
        for (time, value) in [(1, 100.0), (3, 90.0), (2, f64::NAN), (2, 150.0)] {
            converter.push(counted(time, value));
        }
        let profile = converter.finish().profile;
        assert_eq!(values(&profile), [(1, 100.0), (2, 150.0), (3, 90.0)]);
        assert_eq!(profile.counters()[0].category, "Memory");
        assert_eq!((profile.threads()[0].tid.as_str(), profile.threads()[0].is_main), ("1", true));
    }

    #[test]
    fn evicting_keeps_what_counters_have_reached() {
        for (before, expected) in [
            (1, vec![(1, 100.0), (2, 150.0), (9, 7.0)]),
            (2, vec![(2, 150.0), (9, 7.0)]),
            (5, vec![(2, 150.0), (9, 7.0)]),
        ] {
            let mut converter = converter();
            converter.push(counted(1, 100.0));
            converter.push(counted(2, 150.0));
            converter.advance(Timestamp(100 * MS));
            converter.evict(Timestamp(before * MS));
            converter.push(counted(9, 7.0));
            assert_eq!(values(&converter.finish().profile), expected, "before {before}");
        }
    }
}
