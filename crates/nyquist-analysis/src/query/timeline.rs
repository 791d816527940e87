//! Time lines: CPU use, or what else samples measure, by thread and by category, in equal parts of the time.

use std::ops::Range;

use crate::index::Index;
use crate::index::category_rows::CategoryRows;
use crate::index::span::{Span, are_moments};
use crate::parallel;
use crate::query::run_time::RunTimeLookup;
use crate::sample_state::SampleState;
use crate::view::View;
use nyquist_profile::{CategoryColor, CategoryId, FuncId, ThreadIndex};

/// A time line in equal parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline<Row> {
    /// The begin, in ns since the profile's zero.
    pub start_ns: u64,
    /// The end.
    pub end_ns: u64,
    /// The rows. All have the same number of parts.
    pub rows: Vec<Row>,
}

/// The CPU use of a thread over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTimeline<'a> {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its name.
    pub name: &'a str,
    /// The CPU time (or waiting time, if that is selected) in each part, in ns.
    pub parts_ns: Vec<u64>,
}

/// The time in a category, of the innermost frames of all selected threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryTimeline<'a> {
    /// The category; none for frames without one.
    pub category: Option<CategoryId>,
    /// Its name.
    pub name: Option<&'a str>,
    /// Its colour.
    pub color: Option<CategoryColor>,
    /// The CPU time (or waiting time, if that is selected) in each part, in ns.
    pub parts_ns: Vec<u64>,
}

impl<'a> View<'a> {
    /// The CPU use of each selected thread over time. O(threads × parts × log samples). With filters or
    /// transforms, and off the CPU, O(samples + threads × parts).
    pub fn thread_timeline(&self, parts: usize) -> Timeline<ThreadTimeline<'a>> {
        let scale = Scale::new(self.times(), parts);
        let row = |&thread: &ThreadIndex| {
            let parts_ns = if self.has_run_times(thread) {
                self.ran_in(thread, &scale)
            } else {
                let mut parts_ns = vec![0; scale.parts()];
                self.add_spans(thread, &scale, &mut parts_ns);
                parts_ns
            };
            ThreadTimeline { thread, name: &self.profile().thread(thread).name, parts_ns }
        };
        let rows = parallel::map(&self.chosen.threads, 1, row);
        scale.timeline(rows)
    }

    /// The CPU use of all selected threads together, in ns in each part. O(samples + parts), and for threads with
    /// many samples O(parts × log samples).
    pub fn total_timeline(&self, parts: usize) -> Vec<u64> {
        let scale = Scale::new(self.times(), parts);
        let threads = &self.chosen.threads;
        let pieces = parallel::pieces(threads.len(), 1, |range| {
            let mut sum = PartsNs(vec![0; scale.parts()]);
            for &thread in &threads[range] {
                if self.chosen.range_of(thread).len() > scale.parts() && self.has_run_times(thread) {
                    sum.add(PartsNs(self.ran_in(thread, &scale)));
                } else {
                    self.add_spans(thread, &scale, &mut sum.0);
                }
            }
            sum
        });
        let sum = pieces.into_iter().reduce(|mut sum, piece| {
            sum.add(piece);
            sum
        });
        sum.map_or_else(|| vec![0; parts], |PartsNs(parts_ns)| parts_ns)
    }

    /// Whether the indexed run times of a thread are those of the selection.
    fn has_run_times(&self, thread: ThreadIndex) -> bool {
        self.derived.keeps_all()
            && self.chosen.state == SampleState::OnCpu
            && !are_moments(self.profile().meta())
            && self.index.prefix_sums()[thread.index()].has_run_times()
    }

    /// The thread's running time in each part, if all its samples on the CPU count.
    fn ran_in(&self, thread: ThreadIndex, scale: &Scale) -> Vec<u64> {
        let mut run_time = RunTimeLookup::new(self, thread);
        let until: Vec<_> = scale.bounds.iter().map(|&bound| run_time.until(bound)).collect();
        until.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect()
    }

    /// Adds the thread's time in each part, span by span.
    fn add_spans(&self, thread: ThreadIndex, scale: &Scale, parts_ns: &mut [u64]) {
        let mut cursor = scale.cursor();
        self.each_time_of(thread, |span| {
            if self.keeps(span.stack) {
                cursor.add(span, parts_ns);
            }
        });
    }

    /// The time in each category that has any, over time. O(stacks + samples + categories × parts).
    pub fn category_timeline(&self, parts: usize) -> Timeline<CategoryTimeline<'a>> {
        self.timeline_by(self.rows_by_category(), parts)
    }

    /// The same for the samples whose stacks have any of some functions.
    pub fn category_timeline_with(
        &self,
        is_requested: impl Fn(FuncId) -> bool,
        parts: usize,
    ) -> Timeline<CategoryTimeline<'a>> {
        self.timeline_by(&self.rows_with(is_requested), parts)
    }

    fn timeline_by(&self, rows: &CategoryRows, parts: usize) -> Timeline<CategoryTimeline<'a>> {
        let scale = Scale::new(self.times(), parts);
        let threads = &self.chosen.threads;
        let pieces =
            parallel::pieces(threads.len(), 1, |range| self.by_category_of(&threads[range], rows, &scale));
        let amounts = pieces.into_iter().reduce(|mut sum, piece| {
            sum.iter_mut().zip(piece).for_each(|(sum, parts_ns)| sum.add(parts_ns));
            sum
        });
        scale.timeline(self.category_rows_of(amounts.unwrap_or_default()))
    }

    /// The same for each of some threads, whether the selection includes them or not. O(stacks + samples
    /// of these threads + threads × categories × parts).
    pub fn category_timelines(
        &self,
        threads: &[ThreadIndex],
        parts: usize,
    ) -> Vec<Timeline<CategoryTimeline<'a>>> {
        self.timelines_by(self.rows_by_category(), threads, parts)
    }

    /// The same for the samples whose stacks have any of some functions.
    pub fn category_timelines_with(
        &self,
        is_requested: impl Fn(FuncId) -> bool,
        threads: &[ThreadIndex],
        parts: usize,
    ) -> Vec<Timeline<CategoryTimeline<'a>>> {
        self.timelines_by(&self.rows_with(is_requested), threads, parts)
    }

    fn timelines_by(
        &self,
        rows: &CategoryRows,
        threads: &[ThreadIndex],
        parts: usize,
    ) -> Vec<Timeline<CategoryTimeline<'a>>> {
        let scale = Scale::new(self.times(), parts);
        parallel::map(threads, 1, |thread| {
            let amounts = self.by_category_of(std::slice::from_ref(thread), rows, &scale);
            scale.timeline(self.category_rows_of(amounts))
        })
    }

    fn rows_by_category(&self) -> &CategoryRows {
        if self.derived.keeps_all() {
            return self.index.categories();
        }
        let Index { profile, node_of_stack, .. } = self.index;
        self.category_rows.get_or_init(|| CategoryRows::new(profile, node_of_stack, &self.derived))
    }

    fn rows_with(&self, is_requested: impl Fn(FuncId) -> bool) -> CategoryRows {
        CategoryRows::with_functions(
            self.index.profile,
            &self.index.node_of_stack,
            &self.derived,
            is_requested,
        )
    }

    /// The time of some threads by category and part. The row after all categories stands for no category.
    fn by_category_of(&self, threads: &[ThreadIndex], rows: &CategoryRows, scale: &Scale) -> Vec<PartsNs> {
        let mut amounts = vec![PartsNs::default(); self.profile().categories().len() + 1];
        for &thread in threads {
            let mut cursor = scale.cursor();
            self.each_time_of(thread, |span| {
                if let Some(row) = rows.row(span.stack) {
                    cursor.add(span, amounts[row].filled(scale.parts()));
                }
            });
        }
        amounts
    }

    /// The rows that have any time, with the names and colours of their categories.
    fn category_rows_of(&self, amounts: Vec<PartsNs>) -> Vec<CategoryTimeline<'a>> {
        let categories = self.profile().categories();
        let rows =
            amounts.into_iter().enumerate().filter(|(_, PartsNs(parts))| parts.iter().any(|&ns| ns > 0));
        let rows = rows.map(|(index, PartsNs(parts_ns))| {
            let category = categories.get(index);
            CategoryTimeline {
                category: category.map(|_| CategoryId::from_index(index)),
                name: category.map(|category| category.name.as_str()),
                color: category.map(|category| category.color),
                parts_ns,
            }
        });
        rows.collect()
    }
}

/// The time in each part. It is empty while there is none, because a profile may have many unused categories.
#[derive(Clone, Default)]
struct PartsNs(Vec<u64>);

impl PartsNs {
    /// The parts, filled up to that number.
    fn filled(&mut self, parts: usize) -> &mut [u64] {
        if self.0.is_empty() {
            self.0 = vec![0; parts];
        }
        &mut self.0
    }

    /// Adds the same number of parts. Sums of invalid figures wrap around.
    fn add(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
        } else {
            self.0.iter_mut().zip(other.0).for_each(|(sum, ns)| *sum = sum.wrapping_add(ns));
        }
    }
}

/// A range of times in equal parts.
struct Scale {
    times: Range<u64>,
    /// The begin of each part, and the end of the last one.
    bounds: Vec<u64>,
}

impl Scale {
    fn new(times: Range<u64>, parts: usize) -> Self {
        let length = u128::from(times.end - times.start);
        let bound = |part: usize| times.start + (length * part as u128).div_ceil(parts.max(1) as u128) as u64;
        let bounds = (0..=parts).map(bound).collect();
        Self { times, bounds }
    }

    fn parts(&self) -> usize {
        self.bounds.len() - 1
    }

    fn cursor(&self) -> SpanCursor<'_> {
        SpanCursor { scale: self, part: 0 }
    }

    fn timeline<Row>(&self, rows: Vec<Row>) -> Timeline<Row> {
        Timeline { start_ns: self.times.start, end_ns: self.times.end, rows }
    }
}

/// The part where the next span begins. Most spans of a thread come in order, so no search is necessary.
struct SpanCursor<'a> {
    scale: &'a Scale,
    /// The part in which the last span began.
    part: usize,
}

impl SpanCursor<'_> {
    /// Distributes the time of a span over the parts that it covers. The time before the first part is
    /// left out. Sums of invalid figures wrap around.
    fn add(&mut self, span: &Span, parts_ns: &mut [u64]) {
        let Scale { times, bounds } = self.scale;
        let (start, end) = (span.times.start.max(times.start), span.times.end.min(times.end));
        if start >= end || parts_ns.is_empty() {
            return;
        }
        // What a sample stands for beyond the time before it is earlier than the last span.
        if bounds[self.part] > start {
            self.part = bounds.partition_point(|&bound| bound <= start) - 1;
        }
        while bounds[self.part + 1] <= start {
            self.part += 1;
        }
        // Most spans are in one part.
        if span.times.end <= bounds[self.part + 1] && span.times.start == start {
            parts_ns[self.part] = parts_ns[self.part].wrapping_add(span.ns);
            return;
        }
        let mut from = start;
        for (part_ns, &bound) in parts_ns[self.part..].iter_mut().zip(&bounds[self.part + 1..]) {
            let to = bound.min(end);
            *part_ns = part_ns.wrapping_add(span.used_until(to) - span.used_until(from));
            if to == end {
                break;
            }
            from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    /// Samples are (time, CPU time since the previous one, category and name), all in ms.
    fn profile(samples: &[(u64, u64, &str)]) -> nyquist_profile::Profile {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(time, cpu, stack) in samples {
            test.sample(stack, 1);
            test.change_last(|sample| {
                (sample.time, sample.cpu_delta) = (time * 1_000_000, cpu * 1_000_000);
            });
        }
        test.finish()
    }

    fn check(samples: &[(u64, u64, &str)], range: Range<u64>, parts: usize, expected: &[(&str, &[u64])]) {
        let range = Some(range.start * 1_000_000..range.end * 1_000_000);
        with_view(&profile(samples), &Selection { range, ..Selection::default() }, |view| {
            let milliseconds =
                |parts_ns: &[u64]| parts_ns.iter().map(|ns| ns / 1_000_000).collect::<Vec<_>>();
            let categories = view.category_timeline(parts);
            let rows = categories.rows.iter().map(|row| (row.name.unwrap(), milliseconds(&row.parts_ns)));
            let expected: Vec<_> = expected.iter().map(|&(name, parts)| (name, parts.to_vec())).collect();
            assert_eq!(rows.collect::<Vec<_>>(), expected);
            let threads = view.thread_timeline(parts);
            let sum = |part: usize| expected.iter().map(|(_, parts)| parts[part]).sum::<u64>();
            let sums: Vec<_> = (0..parts).map(sum).collect();
            assert_eq!(milliseconds(&threads.rows[0].parts_ns), sums);
            assert_eq!(milliseconds(&view.total_timeline(parts)), sums);
        });
    }

    #[test]
    fn a_sample_stands_for_the_time_before_it() {
        let samples = [
            (0, 0, "user:f"),
            (10, 10, "user:f"),
            (20, 5, "kernel:g"),
            (40, 20, "user:f"),
            (42, 1, "user:f"),
        ];
        // From 10 to 15 it waited.
        check(&samples, 0..40, 4, &[("User", &[10, 0, 0, 0]), ("Kernel", &[0, 5, 0, 0])]);
        check(&samples, 0..41, 1, &[("User", &[30]), ("Kernel", &[5])]);
        check(&samples, 0..43, 2, &[("User", &[11, 20]), ("Kernel", &[5, 0])]);
    }

    #[test]
    fn what_is_no_time_belongs_to_its_moment() {
        let mut test = TestProfile::new();
        let meta = test.builder.meta_mut();
        (meta.measure.unit, meta.interval) = (nyquist_profile::Unit::Count, 10_000_000);
        test.thread("1", "main");
        for (time, weight) in [(5, 3), (5, 1), (31, 2)] {
            test.sample("user:f", weight);
            test.change_last(|sample| (sample.time, sample.cpu_delta) = (time * 1_000_000, 77));
        }
        let meta = test.builder.meta_mut();
        (meta.profiling_start, meta.profiling_end) = (Some(0), Some(40_000_000));
        with_view(&test.finish(), &Selection::default(), |view| {
            let expected = [40_000_000, 0, 0, 20_000_000];
            assert_eq!(view.category_timeline(4).rows[0].parts_ns, expected);
            assert_eq!(view.thread_timeline(4).rows[0].parts_ns, expected);
        });
    }

    #[test]
    fn without_parts_or_samples_rows_are_empty() {
        check(&[(1, 0, "user:f"), (2, 1, "user:f")], 0..9, 0, &[]);
        with_view(&profile(&[]), &Selection::default(), |view| {
            assert_eq!(view.thread_timeline(3).rows[0].parts_ns, [0, 0, 0]);
            assert!(view.category_timeline(3).rows.is_empty());
        });
    }
}
