//! What happened when: CPU use by thread and by category, in equal parts of the time.

use std::ops::Range;

use nyquist_profile::{CategoryColor, CategoryId, ThreadIndex};
use serde::Serialize;

use crate::parallel;
use crate::spans::Span;
use crate::view::View;

/// A time line in equal parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline<Row> {
    /// When it begins, in ns since the profile's zero.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// What was when. All rows have the same number of parts.
    pub rows: Vec<Row>,
}

/// The CPU use of a thread over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadTimeline<'a> {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its name.
    pub name: &'a str,
    /// The CPU time (or waiting time, if that is selected) in each part, in ns.
    pub parts_ns: Vec<u64>,
}

/// The time in a category, of the innermost frames of all selected threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// The CPU use of each selected thread over time. O(samples + threads × parts).
    pub fn thread_timeline(&self, parts: usize) -> Timeline<ThreadTimeline<'a>> {
        let scale = Scale { times: self.times(), parts };
        let row = |&thread: &ThreadIndex| {
            let mut parts_ns = vec![0; parts];
            self.spans_of(thread).for_each(|span| scale.add(&span, &mut parts_ns));
            ThreadTimeline { thread, name: &self.profile().thread(thread).name, parts_ns }
        };
        let threads = &self.chosen.threads;
        let rows =
            parallel::pieces(threads.len(), 1, |range| threads[range].iter().map(row).collect::<Vec<_>>());
        scale.timeline(rows.concat())
    }

    /// The time in each category that has any, over time. O(samples + categories × parts).
    pub fn category_timeline(&self, parts: usize) -> Timeline<CategoryTimeline<'a>> {
        let scale = Scale { times: self.times(), parts };
        let categories = self.profile().categories();
        // The number after all categories stands for none.
        let mut amounts = vec![vec![0; parts]; categories.len() + 1];
        for span in self.chosen.threads.iter().flat_map(|&thread| self.spans_of(thread)) {
            let category = span.node.and_then(|node| self.forest().category[node as usize]);
            let row = category.map_or(categories.len(), |pair| pair.category.index());
            scale.add(&span, &mut amounts[row]);
        }
        let rows = amounts.into_iter().enumerate().filter(|(_, parts)| parts.iter().any(|&ns| ns > 0));
        let rows = rows.map(|(index, parts_ns)| {
            let category = categories.get(index);
            CategoryTimeline {
                category: category.map(|_| CategoryId::from_index(index)),
                name: category.map(|category| category.name.as_str()),
                color: category.map(|category| category.color),
                parts_ns,
            }
        });
        scale.timeline(rows.collect())
    }
}

/// Equal parts of a time.
struct Scale {
    times: Range<u64>,
    parts: usize,
}

impl Scale {
    fn timeline<Row>(&self, rows: Vec<Row>) -> Timeline<Row> {
        Timeline { start_ns: self.times.start, end_ns: self.times.end, rows }
    }

    /// Shares what a span stands for out to the parts that it covers. What is before the first part is left out.
    fn add(&self, span: &Span, parts_ns: &mut [u64]) {
        let length = span.times.end - span.times.start;
        let (start, end) = (span.times.start.max(self.times.start), span.times.end.min(self.times.end));
        if start >= end || parts_ns.is_empty() {
            return;
        }
        // What was used up to a time, so that rounding loses nothing.
        let used_until = |time: u64| {
            (u128::from(span.ns) * u128::from(time - span.times.start) / u128::from(length)) as u64
        };
        let mut from = start;
        // Most spans are in one part.
        if span.times.end <= self.start_of(self.part_at(start) + 1) && span.times.start == start {
            parts_ns[self.part_at(start)] += span.ns;
            return;
        }
        let (first, last) = (self.part_at(start), self.part_at(end - 1));
        for (part, part_ns) in parts_ns.iter_mut().enumerate().take(last + 1).skip(first) {
            let to = self.start_of(part + 1).min(end);
            *part_ns += used_until(to) - used_until(from);
            from = to;
        }
    }

    /// The part that a time within the scale is in.
    fn part_at(&self, time: u64) -> usize {
        let length = u128::from(self.times.end - self.times.start);
        (u128::from(time - self.times.start) * self.parts as u128 / length) as usize
    }

    /// The first time of a part.
    fn start_of(&self, part: usize) -> u64 {
        let length = u128::from(self.times.end - self.times.start);
        self.times.start + (length * part as u128).div_ceil(self.parts as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::Sample;

    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    /// Samples are (time, CPU time since the one before, category and name), all in ms.
    fn profile(samples: &[(u64, u64, &str)]) -> nyquist_profile::Profile {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(time, cpu, stack) in samples {
            test.sample(stack, 1);
            let thread = test.builder.thread_mut(ThreadIndex::from_index(0));
            let sample = thread.samples.last_mut().unwrap();
            *sample = Sample { time: time * 1_000_000, cpu_delta: cpu * 1_000_000, ..*sample };
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
    fn no_parts_and_no_samples_are_no_danger() {
        check(&[(1, 0, "user:f"), (2, 1, "user:f")], 0..9, 0, &[]);
        with_view(&profile(&[]), &Selection::default(), |view| {
            assert_eq!(view.thread_timeline(3).rows[0].parts_ns, [0, 0, 0]);
            assert!(view.category_timeline(3).rows.is_empty());
        });
    }
}
