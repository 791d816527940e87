//! How often one event happened per occurrence of another, by the source lines of a function.

use std::collections::{BTreeMap, BTreeSet};

use nyquist_profile::FuncId;

use crate::compare::observations::EventObservations;
use crate::compare::ratio::Ratio;
use crate::query::places::PlaceWeight;
use crate::view::View;

/// The ratios of a place: its self ratio, and its total ratio with the calls from there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlaceRatio {
    /// The self ratio.
    pub own: Ratio,
    /// The total ratio, with the functions called from there.
    pub total: Ratio,
}

/// The ratios of a function's lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineRatios<'a> {
    /// The ratio of the whole function.
    pub function: PlaceRatio,
    /// By file and line, including those of inlined functions.
    pub lines: BTreeMap<&'a str, BTreeMap<u32, PlaceRatio>>,
}

/// The weights of both events at a place.
#[derive(Clone, Copy, Default)]
struct LineWeights {
    own: [EventObservations; 2],
    total: [EventObservations; 2],
}

impl LineWeights {
    fn note(&mut self, side: usize, weight: PlaceWeight, squares: PlaceWeight) {
        self.own[side].add(EventObservations { weight: weight.own, squares: squares.own });
        self.total[side].add(EventObservations { weight: weight.total, squares: squares.total });
    }

    fn ratio(&self, units: [u64; 2]) -> PlaceRatio {
        PlaceRatio { own: Ratio::of_observed(self.own, units), total: Ratio::of_observed(self.total, units) }
    }
}

/// The ratios of the lines of a function. Each side is the view of an event, with the function's ids in it.
/// Lines are the same if their files have the same name. O(samples + stacks × depth).
pub fn line_ratios<'a>(sides: [(&View<'a>, &BTreeSet<FuncId>); 2]) -> LineRatios<'a> {
    let units = sides.map(|(view, _)| view.profile().meta().interval.max(1));
    let mut function = LineWeights::default();
    let mut lines: BTreeMap<&str, BTreeMap<u32, LineWeights>> = BTreeMap::new();
    for (side, (view, funcs)) in sides.into_iter().enumerate() {
        let profile = view.profile();
        let weights = view.places(funcs);
        let squares = view.places_by(funcs, |weight| weight.saturating_mul(weight));
        function.note(side, weights.function, squares.function);
        for (place, weight) in weights.lines {
            let file = profile.string(profile.source(place.0).filename);
            let squares = squares.lines.get(&place).copied().unwrap_or_default();
            lines.entry(file).or_default().entry(place.1).or_default().note(side, weight, squares);
        }
    }
    let of_file = |lines: BTreeMap<u32, LineWeights>| {
        lines.into_iter().map(|(line, place)| (line, place.ratio(units))).collect()
    };
    LineRatios {
        function: function.ratio(units),
        lines: lines.into_iter().map(|(file, lines)| (file, of_file(lines))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Frame, Func, Meta, Process, Profile, ProfileBuilder, Sample, Source, Thread};

    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;

    /// A profile with samples of a weight in lines of `main` in a.c.
    fn profile(samples: &[(u32, u64)]) -> (Profile, BTreeSet<FuncId>) {
        let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
        let filename = builder.intern_string("/a.c");
        let source = builder.intern_source(Source { filename });
        let name = builder.intern_string("main");
        let func = builder.intern_func(Func { source: Some(source), ..Func::new(name, None) });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (time, &(line, weight)) in (0..).zip(samples) {
            let frame = builder.intern_frame(Frame { line: Some(line), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight, ..Sample::new(time, Some(stack), 0) });
        }
        (builder.finish(), BTreeSet::from([func]))
    }

    #[test]
    fn lines_of_both_events_have_ratios() {
        let (counted, of_counted) = profile(&[(5, 3), (5, 1), (9, 2)]);
        let (of, of_func) = profile(&[(5, 8), (7, 2)]);
        let (counted, of) = (Index::new(&counted), Index::new(&of));
        let all = Selection::default();
        let (counted, of) = (View::new(&counted, &all), View::new(&of, &all));
        let found = line_ratios([(&counted, &of_counted), (&of, &of_func)]);
        let own = |line| found.lines["/a.c"][&line].own.ratio;
        assert_eq!([own(5), own(7), own(9)], [Some(0.5), Some(0.0), None]);
        assert_eq!(found.function.total.ratio, Some(0.6));
    }

    #[test]
    fn huge_weights_do_not_overflow() {
        let (most, funcs) = profile(&[(5, u64::MAX), (5, u64::MAX), (5, u64::MAX)]);
        let index = Index::new(&most);
        let view = View::new(&index, &Selection::default());
        let found = line_ratios([(&view, &funcs), (&view, &funcs)]);
        assert_eq!(found.function.own.ratio, Some(1.0));
    }
}
