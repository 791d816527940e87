//! The boxes of a flame chart: what a thread's stack was over time.

use std::ops::Range;

use crate::index::span::{Span, are_moments};
use crate::query::chart_columns::Columns;
use crate::query::chart_path::ChartPath;
use crate::view::View;
use nyquist_profile::{FuncId, ThreadIndex};

/// How a flame chart is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameChartOptions {
    /// Boxes that are shorter, in ns, are left out, or joined.
    pub min_ns: u64,
    /// The levels at which shorter boxes are joined by columns of `min_ns`, so that nothing that takes time is
    /// invisible: a column shows the function that has most of its time.
    pub joined_levels: Range<usize>,
    /// The maximum number of levels.
    pub max_depth: usize,
}

impl Default for FlameChartOptions {
    fn default() -> Self {
        Self { min_ns: 0, joined_levels: 0..0, max_depth: usize::MAX }
    }
}

/// A thread's stack over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameChart<'a> {
    /// The number of levels that have boxes, including those that are left out.
    pub depth: usize,
    /// Ordered by start, then by depth. Joined ones can be under the ends of others.
    pub boxes: Vec<FlameChartBox<'a>>,
}

/// A box of a flame chart: a call, as far as samples show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameChartBox<'a> {
    /// The level, from 0.
    pub depth: usize,
    /// When the function was first seen, in ns since the profile's zero.
    pub start_ns: u64,
    /// The end of its last sample.
    pub end_ns: u64,
    /// The function.
    pub func: FuncId,
    /// Its name.
    pub name: &'a str,
    /// The name of its lib.
    pub lib: Option<&'a str>,
    /// If this stands for several boxes that are too short, how much of its time they cover, in eighths, rounded
    /// up. The function has most of it.
    pub joined_eighths: Option<u8>,
}

impl<'a> View<'a> {
    /// The stack of a thread over time. Consecutive samples that have the same outer functions share their
    /// boxes. There are no boxes while the thread did not run, except in gaps that are shorter than the shortest
    /// box. Samples that are moments have twice the length of the shortest box, as far as there is room.
    /// O(samples + levels that change between samples).
    pub fn flame_chart(&self, thread: ThreadIndex, options: &FlameChartOptions) -> FlameChart<'a> {
        let is_chosen = self.chosen.threads.contains(&thread);
        let mut chart = ChartBuilder::new(self, options);
        for span in self.spans_of(thread).filter(|_| is_chosen) {
            chart.add(span);
        }
        chart.finish()
    }
}

struct ChartBuilder<'v, 'a> {
    view: &'v View<'a>,
    options: &'v FlameChartOptions,
    are_moments: bool,
    path: ChartPath,
    /// The functions of the last stack and when they were first seen.
    open: Vec<(u32, u64)>,
    /// The time until which the last stack lasted.
    end: u64,
    depth: usize,
    boxes: Vec<FlameChartBox<'a>>,
    /// The boxes that are too short, if they are joined.
    columns: Option<Columns>,
}

impl<'v, 'a> ChartBuilder<'v, 'a> {
    fn new(view: &'v View<'a>, options: &'v FlameChartOptions) -> Self {
        let joins = !options.joined_levels.is_empty() && options.min_ns > 0;
        Self {
            view,
            options,
            are_moments: are_moments(view.profile().meta()),
            path: ChartPath::default(),
            open: Vec::new(),
            end: 0,
            depth: 0,
            boxes: Vec::new(),
            columns: joins.then(|| Columns::new(view.times().start, options.min_ns)),
        }
    }

    /// Adds the stack of a span of time, which is after all others.
    fn add(&mut self, mut span: Span) {
        if self.are_moments {
            span.times.start = self.begin_of_moment(&span);
        }
        if span.times.start > self.end {
            self.pass_gap(&mut span);
        }
        let forest = self.view.forest();
        let unchanged = self.path.go_to(forest, self.view.node_of_span(&span)).min(self.open.len());
        let nodes = self.path.nodes();
        let nodes = &nodes[..nodes.len().min(self.options.max_depth)];
        let func = |node: &u32| forest.func[*node as usize];
        // Other nodes can have the same functions, at other lines.
        let same = nodes.iter().skip(unchanged).zip(&self.open[unchanged..]);
        let same = unchanged + same.take_while(|(node, (open, _))| func(node) == *open).count();
        let changed: Vec<_> = nodes[same..].iter().map(|node| (func(node), span.times.start)).collect();
        self.depth = self.depth.max(nodes.len());
        self.close(same);
        self.open.extend(changed);
        self.end = span.times.end;
    }

    fn finish(mut self) -> FlameChart<'a> {
        self.close_run();
        self.take_joined();
        self.boxes.sort_by_key(|found| (found.start_ns, found.depth));
        FlameChart { depth: self.depth, boxes: self.boxes }
    }

    /// Where a moment is drawn from, so that it can be seen: after the last one.
    fn begin_of_moment(&self, span: &Span) -> u64 {
        let length = self.options.min_ns.saturating_mul(2).max(1);
        span.times.end.saturating_sub(length).max(self.end).min(span.times.end)
    }

    /// Ends all boxes before a gap, unless it is shorter than the shortest box. Otherwise a thread that pauses
    /// often would have no boxes at all, because all were too short.
    fn pass_gap(&mut self, span: &mut Span) {
        if span.times.start - self.end < self.options.min_ns && !self.open.is_empty() {
            span.times.start = self.end;
        } else {
            self.close_run();
        }
    }

    /// Ends all boxes where the thread pauses. What lasted for less than the shortest box gets its length.
    /// Otherwise a thread that runs rarely would seem to run even less.
    fn close_run(&mut self) {
        if let Some((_, start_ns)) = self.open.first() {
            self.end = self.end.max(start_ns.saturating_add(self.options.min_ns));
        }
        self.close(0);
    }

    /// Ends the boxes from that depth on.
    fn close(&mut self, depth: usize) {
        let mut open = std::mem::take(&mut self.open);
        for (depth, (func, start_ns)) in open.drain(depth..).enumerate().map(|(i, open)| (depth + i, open)) {
            if self.end - start_ns >= self.options.min_ns {
                let chart_box = self.chart_box(depth, (start_ns, self.end), func);
                self.boxes.push(chart_box);
            } else if let Some(columns) = &mut self.columns
                && self.options.joined_levels.contains(&depth)
            {
                columns.add(depth, func, start_ns, self.end);
            }
        }
        self.open = open;
    }

    /// Takes what boxes that are too short show together.
    fn take_joined(&mut self) {
        let Some(columns) = self.columns.take() else { return };
        for run in columns.finish() {
            let chart_box = self.chart_box(run.depth, (run.start_ns, run.end_ns), run.func);
            self.boxes.push(FlameChartBox { joined_eighths: Some(run.eighths), ..chart_box });
        }
    }

    fn chart_box(&self, depth: usize, (start_ns, end_ns): (u64, u64), func: u32) -> FlameChartBox<'a> {
        let info = self.view.function(FuncId::from_index(func as usize));
        let (func, name, lib) = (info.func, info.name, info.lib);
        FlameChartBox { depth, start_ns, end_ns, func, name, lib, joined_eighths: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    /// Samples are (time and CPU time since the previous one in ms, stack).
    fn check(
        samples: &[(u64, u64, &str)],
        options: &FlameChartOptions,
        expected: &[(&str, usize, u64, u64)],
    ) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(time, cpu, stack) in samples {
            test.sample(stack, 1);
            test.change_last(|sample| {
                (sample.time, sample.cpu_delta) = (time * 1_000_000, cpu * 1_000_000);
            });
        }
        with_view(&test.finish(), &Selection::default(), |view| {
            let boxes = view.flame_chart(ThreadIndex::from_index(0), options).boxes.into_iter();
            let boxes = boxes
                .map(|found| (found.name, found.depth, found.start_ns / 1_000_000, found.end_ns / 1_000_000));
            assert_eq!(boxes.collect::<Vec<_>>(), expected);
        });
    }

    #[test]
    fn consecutive_stacks_share_their_outer_boxes() {
        let samples = [(1, 1, "m a"), (2, 1, "m a b"), (3, 1, "m c"), (4, 1, "")];
        let all = FlameChartOptions::default();
        check(&samples, &all, &[("m", 0, 0, 3), ("a", 1, 0, 2), ("b", 2, 1, 2), ("c", 1, 2, 3)]);
        let long = FlameChartOptions { min_ns: 2_000_000, ..all.clone() };
        check(&samples, &long, &[("m", 0, 0, 3), ("a", 1, 0, 2)]);
        let low = FlameChartOptions { max_depth: 1, ..all };
        check(&samples, &low, &[("m", 0, 0, 3)]);
    }

    #[test]
    fn short_boxes_are_joined_by_columns() {
        let samples = [(1, 1, "m a x"), (2, 1, "m b"), (3, 1, "m a"), (4, 1, "m b"), (8, 4, "m a")];
        let options = FlameChartOptions {
            min_ns: 4_000_000,
            joined_levels: 0..usize::MAX,
            ..FlameChartOptions::default()
        };
        let expected = [("m", 0, 0, 8), ("b", 1, 1, 5), ("x", 2, 1, 5), ("a", 1, 4, 8)];
        check(&samples, &options, &expected);
    }

    #[test]
    fn gaps_that_cannot_be_seen_do_not_divide_boxes() {
        let samples = [(10, 1, "m a"), (12, 1, "m b"), (14, 1, "m a"), (30, 1, "m a")];
        let options = FlameChartOptions { min_ns: 3_000_000, ..FlameChartOptions::default() };
        check(&samples, &options, &[("m", 0, 9, 14), ("m", 0, 29, 32), ("a", 1, 29, 32)]);
    }

    #[test]
    fn a_thread_that_runs_rarely_is_seen() {
        let samples = [(10, 1, "m a"), (20, 1, "m b"), (21, 1, "m c"), (40, 9, "m a")];
        let options = FlameChartOptions { min_ns: 5_000_000, ..FlameChartOptions::default() };
        let short = [("m", 0, 9, 14), ("a", 1, 9, 14), ("m", 0, 19, 24)];
        check(&samples, &options, &[&short[..], &[("m", 0, 31, 40), ("a", 1, 31, 40)]].concat());
    }

    #[test]
    fn moments_are_as_long_as_can_be_seen() {
        let mut test = TestProfile::new();
        test.builder.meta_mut().measure.unit = nyquist_profile::Unit::Count;
        test.thread("1", "main");
        for (time, stack) in [(10, "m a"), (11, "m b"), (50, "m a")] {
            test.sample(stack, 1);
            test.change_last(|sample| sample.time = time);
        }
        let options = FlameChartOptions { min_ns: 1, ..FlameChartOptions::default() };
        with_view(&test.finish(), &Selection::default(), |view| {
            let boxes = view.flame_chart(ThreadIndex::from_index(0), &options).boxes.into_iter();
            let boxes: Vec<_> = boxes.map(|it| (it.name, it.start_ns, it.end_ns)).collect();
            let expected = [("m", 8, 11), ("a", 8, 10), ("b", 10, 11), ("m", 48, 50), ("a", 48, 50)];
            assert_eq!(boxes, expected);
        });
    }

    #[test]
    fn a_thread_that_does_not_run_has_no_boxes() {
        let samples = [(1, 1, "m"), (10, 2, "m"), (12, 2, "m")];
        check(&samples, &FlameChartOptions::default(), &[("m", 0, 0, 1), ("m", 0, 8, 12)]);
    }
}
