//! Counters in a few figures: the peaks of levels, and the growth of sums.

use std::ops::Range;

use crate::view::View;
use nyquist_profile::{Counter, CounterGraph, ProcessIndex};

/// The summary of a process's counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSummary<'a> {
    /// The counter's name.
    pub name: &'a str,
    /// The unit of the figures.
    pub unit: &'a str,
    /// The process.
    pub process: ProcessIndex,
    /// Its figure.
    pub figure: CounterFigure,
}

/// The figure of a counter over a range of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterFigure {
    /// For a level: the highest value.
    Peak(f64),
    /// For a count: the growth.
    Total(f64),
}

impl CounterFigure {
    /// The number.
    pub fn value(self) -> f64 {
        match self {
            Self::Peak(value) | Self::Total(value) => value,
        }
    }
}

impl<'a> View<'a> {
    /// The counters of the selected processes, within the selected times. Processes are in the order in
    /// which they are shown. Counters without a value in these times are left out. O(values of all
    /// counters).
    pub fn counters(&self) -> Vec<CounterSummary<'a>> {
        let profile = self.profile();
        let chosen = self.selection().select_threads(profile);
        let mut processes: Vec<ProcessIndex> = chosen.map(|(_, thread)| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let range = self.selection().range.clone();
        let is_chosen = |counter: &&Counter| processes.binary_search(&counter.process).is_ok();
        let mut counters: Vec<&Counter> = profile.counters().iter().filter(is_chosen).collect();
        counters.sort_by_key(|counter| (counter.process, counter.display.sort_weight));
        let summary = |counter: &'a Counter| {
            let figure = figure(counter, range.as_ref())?;
            let (name, unit) = (&*counter.name, &*counter.display.unit);
            Some(CounterSummary { name, unit, process: counter.process, figure })
        };
        counters.into_iter().filter_map(summary).collect()
    }
}

/// The figure of a counter over a range of times. The value that a level has at the start counts too.
fn figure(counter: &Counter, range: Option<&Range<u64>>) -> Option<CounterFigure> {
    let is_before = |time: u64| range.is_some_and(|range| time < range.start);
    let is_after = |time: u64| range.is_some_and(|range| time >= range.end);
    let inside = counter.samples.iter().take_while(|sample| !is_after(sample.time));
    if counter.display.graph == CounterGraph::Rate {
        let inside = inside.filter(|sample| !is_before(sample.time)).map(|sample| sample.delta);
        return inside.reduce(|sum, delta| sum + delta).map(CounterFigure::Total);
    }
    let (mut level, mut peak) = (0.0, None);
    for sample in inside {
        level += sample.delta;
        peak =
            peak.filter(|_| !is_before(sample.time)).map_or(Some(level), |peak: f64| Some(peak.max(level)));
    }
    peak.map(CounterFigure::Peak)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;
    use nyquist_profile::{
        CounterDisplay, CounterSample, GraphColor, Meta, Process, Profile, ProfileBuilder, Thread,
    };

    fn counter(process: ProcessIndex, name: &str, graph: CounterGraph, changes: &[(u64, f64)]) -> Counter {
        let sample = |&(time, delta): &(u64, f64)| CounterSample { time, delta, operations: None };
        Counter {
            name: name.to_owned(),
            category: String::new(),
            description: String::new(),
            process,
            display: CounterDisplay {
                graph,
                unit: "bytes".to_owned(),
                color: GraphColor::Blue,
                marker_schema_location: None,
                sort_weight: -(name.len() as i32),
                label: String::new(),
            },
            samples: changes.iter().map(sample).collect(),
        }
    }

    fn profile() -> Profile {
        let mut builder = ProfileBuilder::new(Meta::default());
        for pid in ["1", "2"] {
            let process = builder.add_process(Process { pid: pid.to_owned(), ..Process::default() });
            builder.add_thread(Thread::new(process, pid, "main"));
            let level = [(1, 0.0), (2, 50.0), (3, 20.0), (4, -60.0), (5, 5.0)];
            builder.add_counter(counter(process, "level", CounterGraph::Accumulated, &level));
            let sum = [(1, 1.0), (2, 2.0), (3, 4.0)];
            builder.add_counter(counter(process, "longer sum", CounterGraph::Rate, &sum));
        }
        builder.finish()
    }

    fn figures_of(selection: &Selection) -> Vec<(usize, String, CounterFigure)> {
        let profile = profile();
        let index = Index::new(&profile);
        let view = View::new(&index, selection);
        let counters = view.counters().into_iter();
        counters.map(|counter| (counter.process.index(), counter.name.to_owned(), counter.figure)).collect()
    }

    #[test]
    fn levels_have_a_peak_and_sums_a_total() {
        let second = Some(vec![ProcessIndex::from_index(1)]);
        let found = figures_of(&Selection { processes: second, ..Selection::default() });
        let (level, sum) = ("level".to_owned(), "longer sum".to_owned());
        assert_eq!(found, [(1, sum, CounterFigure::Total(7.0)), (1, level, CounterFigure::Peak(70.0))]);
        assert_eq!(figures_of(&Selection::default()).len(), 4);
    }

    #[test]
    fn of_a_range_only_what_was_then_counts() {
        for (range, sum, peak) in
            [(2..3, Some(2.0), 50.0), (4..5, None, 70.0), (5..9, None, 15.0), (3..4, Some(4.0), 70.0)]
        {
            let found = figures_of(&Selection { range: Some(range.clone()), ..Selection::default() });
            let figures: Vec<_> =
                found.iter().take_while(|found| found.0 == 0).map(|found| found.2).collect();
            let expected: Vec<_> =
                sum.map(CounterFigure::Total).into_iter().chain([CounterFigure::Peak(peak)]).collect();
            assert_eq!(figures, expected, "{range:?}");
        }
        assert!(figures_of(&Selection { range: Some(0..1), ..Selection::default() }).is_empty());
    }
}
