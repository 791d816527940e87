//! The spans of the samples of a view.

use std::collections::BTreeMap;
use std::ops::Range;

use nyquist_profile::{Sample, StackId, ThreadIndex};

use crate::index::span::{Span, are_moments, has_overflow};
use crate::query::free_time::FreeTime;
use crate::sample_state::SampleState;
use crate::view::View;

/// What a sample stands for beyond the time since the sample before it, in ns.
enum Elsewhere {
    Nothing,
    /// Its place is not known, other than that it is since the last such sample.
    Anywhere(u64),
    /// It was shortly before.
    Before(u64),
}

impl View<'_> {
    /// The selected times, as far as they were recorded. If the recording's start and end are not known,
    /// they reach from the first sample to the last.
    pub fn times(&self) -> Range<u64> {
        let meta = self.profile().meta();
        let selected = self.selection.times();
        let threads = self.chosen.threads.iter().map(|&id| &self.profile().thread(id).samples);
        let begun = |first: Sample| {
            if meta.has_exact_times {
                first.start(meta.interval)
            } else {
                first.time.saturating_sub(u64::from(are_moments(meta)))
            }
        };
        let sampled = threads.filter_map(|samples| Some((begun(samples.first()?), samples.last()?.time)));
        let recorded = meta.profiling_start.zip(meta.profiling_end);
        let recorded = recorded.or_else(|| sampled.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
        let (start, end) = recorded.unwrap_or((0, 0));
        let start = start.max(selected.start);
        start..end.min(selected.end).max(start)
    }

    /// The spans of a thread's samples in the view, in order and without overlaps.
    pub(crate) fn spans_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> {
        let meta = self.profile().meta();
        let mut last = 0;
        let spans = self.all_spans_of(thread).map(move |span| {
            let before = std::mem::replace(&mut last, span.times.end);
            span.without_noise(meta, before)
        });
        spans.filter(|span| self.keeps(span.stack))
    }

    /// The same with small gaps, including the samples that filters and transforms have dropped.
    fn all_spans_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> {
        let meta = self.profile().meta();
        let (mut last, mut ran_before) = (0, 0);
        let samples = self.chosen.of_thread_in_any_state(thread);
        samples.filter_map(move |chosen| {
            let sample = &chosen.sample;
            // The CPU time up to a wait is that of the next sample that runs.
            if sample.off_cpu && !chosen.is_first {
                ran_before += sample.cpu_delta;
            }
            if !self.chosen.state.accepts(sample) {
                return None;
            }
            let ran_before = if sample.off_cpu { 0 } else { std::mem::take(&mut ran_before) };
            let span = Span::new(meta, (sample, ran_before), chosen.is_first, last);
            last = span.times.end;
            Some(span)
        })
    }

    /// Passes over where the time of a thread's samples was, including those that filters and transforms
    /// have dropped. What a sample stands for beyond the time since the one before it is in the time that no
    /// sample has, so that a thread is never in more than one place.
    pub(crate) fn each_time_of(&self, thread: ThreadIndex, mut take: impl FnMut(&Span)) {
        let (meta, start) = (self.profile().meta(), self.profile().thread(thread).start);
        let (mut free, mut end, mut left) = (FreeTime::default(), start, BTreeMap::new());
        for mut span in self.all_spans_of(thread) {
            let elsewhere = self.elsewhere(&span);
            if self.chosen.state == SampleState::OnCpu {
                span = span.without_noise(meta, end);
            }
            if span.times.start > end {
                free.add(end..span.times.start);
            }
            end = end.max(span.times.end);
            let stack = span.stack;
            let put = |times, ns| take(&Span { times, ns, stack });
            span.ns -= match elsewhere {
                Elsewhere::Nothing => 0,
                Elsewhere::Before(ns) => ns - free.take_last(ns, put),
                Elsewhere::Anywhere(ns) => {
                    *left.entry(stack).or_insert(0) += free.spread(ns, put);
                    ns
                }
            };
            take(&span);
        }
        // The CPU time of a process may be that of another one of its threads.
        for (stack, ns) in left.into_iter().filter(|(_, ns)| *ns > 0) {
            take(&Span { times: start.min(end)..end, ns, stack });
        }
    }

    /// What a sample stands for beyond the time since the sample before it.
    fn elsewhere(&self, span: &Span) -> Elsewhere {
        let meta = self.profile().meta();
        let since_last = span.times.end - span.times.start;
        // Running time alone can be far from its sample's place by the timer's inaccuracy.
        let is_exact = self.chosen.state == SampleState::OnCpu && !has_overflow(meta, span.ns, since_last);
        if are_moments(meta) || is_exact {
            return Elsewhere::Nothing;
        }
        match span.ns.saturating_sub(since_last) {
            0 => Elsewhere::Nothing,
            ns if self.index.is_unobserved(span.stack) => Elsewhere::Anywhere(ns),
            // A wait also stands for shorter ones before it, between which the thread ran.
            ns => Elsewhere::Before(ns),
        }
    }

    /// Whether filters and transforms keep samples with that stack. Without any of these, it looks up no
    /// node, because that look-up takes most of the time when going through many samples.
    pub(crate) fn keeps(&self, stack: Option<StackId>) -> bool {
        match stack {
            None => self.derived.keeps_stackless,
            Some(_) if self.derived.map.is_none() => true,
            Some(stack) => self.node_of(stack).is_some(),
        }
    }

    fn node_of(&self, stack: StackId) -> Option<u32> {
        self.derived.target(self.index.node_of_stack[stack.index()])
    }

    /// The node of a span; `None` without a stack.
    pub(crate) fn node_of_span(&self, span: &Span) -> Option<u32> {
        span.stack.and_then(|stack| self.node_of(stack))
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::ThreadIndex;

    use crate::query::flame_chart::FlameChartOptions;
    use crate::sample_state::SampleState;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    /// A from 0 to 100 ms, B to 900 ms, C to 1000 ms, and then nothing until D from 1200 ms to 1300 ms.
    fn trace() -> nyquist_profile::Profile {
        let mut test = TestProfile::new();
        let meta = test.builder.meta_mut();
        (meta.has_exact_times, meta.has_cpu_deltas, meta.interval) = (true, false, 100_000_000);
        test.thread("1", "main");
        for (time, weight, stack) in [(100, 1, "A"), (900, 8, "B"), (1000, 1, "C"), (1300, 1, "D")] {
            test.sample(stack, weight);
            test.change_last(|sample| sample.time = time * 1_000_000);
        }
        test.finish()
    }

    #[test]
    fn unobserved_waits_are_spread_over_their_time() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for (time, weight, stack) in [(90, 40, "seen"), (100, 60, "[waiting: not seen]"), (180, 30, "seen")] {
            test.wait(stack, weight);
            test.change_last(|sample| sample.time = time * 1_000_000);
        }
        test.wait("[waiting: not seen]", 50);
        test.change_last(|sample| sample.time = 200_000_000);
        let meta = test.builder.meta_mut();
        (meta.profiling_start, meta.profiling_end) = (Some(0), Some(200_000_000));
        let state = SampleState::OffCpu;
        let selection = Selection { state, range: Some(0..200_000_001), ..Selection::default() };
        with_view(&test.finish(), &selection, |view| {
            let parts = view.category_timeline(20).rows.remove(0).parts_ns;
            assert!(parts.iter().all(|&ns| ns <= 16_000_001), "{parts:?}");
            assert_eq!(parts.iter().sum::<u64>(), 180_000_000);
            assert_eq!(view.thread_timeline(20).rows[0].parts_ns, parts);
            let chart = view.flame_chart(ThreadIndex::from_index(0), &FlameChartOptions::default()).boxes;
            assert!(chart.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "{chart:?}");
        });
    }

    #[test]
    fn a_wait_for_several_is_no_more_than_a_thread() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for (time, weight) in [(95, 5), (100, 60)] {
            test.wait("[waiting for a CPU]", weight);
            test.change_last(|sample| sample.time = time * 1_000_000);
        }
        let meta = test.builder.meta_mut();
        (meta.profiling_start, meta.profiling_end) = (Some(0), Some(100_000_000));
        let selection = Selection { state: SampleState::OffCpu, ..Selection::default() };
        with_view(&test.finish(), &selection, |view| {
            let parts = view.thread_timeline(10).rows.remove(0).parts_ns;
            assert_eq!(
                parts.iter().map(|ns| ns / 1_000_000).collect::<Vec<_>>(),
                [0, 0, 0, 5, 10, 10, 10, 10, 10, 10]
            );
        });
    }

    /// The running time in parts of 10 ms, by category and by thread, which must be the same.
    fn ran(profile: &nyquist_profile::Profile) -> Vec<u64> {
        with_view(profile, &Selection::default(), |view| {
            let parts = view.thread_timeline(10).rows.remove(0).parts_ns;
            assert_eq!(view.total_timeline(10), parts);
            assert_eq!(view.category_timeline(10).rows.remove(0).parts_ns, parts);
            parts.iter().map(|ns| ns / 1_000_000).collect()
        })
    }

    /// A thread from 0 to 100 ms, with samples (time, weight, CPU time, stack, whether it waited), in ms.
    fn observed(samples: &[(u64, u64, u64, &str, bool)]) -> nyquist_profile::Profile {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(time, weight, cpu, stack, off_cpu) in samples {
            test.sample(stack, weight);
            test.change_last(|sample| {
                (sample.time, sample.cpu_delta) = (time * 1_000_000, cpu * 1_000_000);
                sample.off_cpu = off_cpu;
            });
        }
        let meta = test.builder.meta_mut();
        (meta.profiling_start, meta.profiling_end) = (Some(0), Some(100_000_000));
        test.finish()
    }

    #[test]
    fn unsampled_kernel_time_is_spread_over_its_time() {
        let samples = [
            (20, 10, 10, "f", false),
            (60, 10, 10, "f", false),
            (100, 60, 60, "[kernel: not permitted]", false),
            (100, 5, 5, "f", false),
        ];
        // It has 40 ms of its own. 20 are in half of the 40 that are free before. The last sample has none.
        assert_eq!(ran(&observed(&samples)), [5, 10, 6, 6, 6, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn cpu_time_measured_at_waits_is_running_time() {
        let samples = [
            (5, 5, 5, "f", false),
            (30, 20, 5, "[waiting: sleep]", true),
            (60, 20, 10, "[waiting: sleep]", true),
            (70, 17, 2, "f", false),
        ];
        assert_eq!(ran(&observed(&samples)).iter().sum::<u64>(), 22);
    }

    #[test]
    fn a_flame_chart_shows_when_things_were() {
        with_view(&trace(), &Selection::default(), |view| {
            let boxes = view.flame_chart(ThreadIndex::from_index(0), &FlameChartOptions::default()).boxes;
            let boxes = boxes.iter().map(|it| (it.name, it.start_ns / 1_000_000, it.end_ns / 1_000_000));
            let expected = [("A", 0, 100), ("B", 100, 900), ("C", 900, 1000), ("D", 1200, 1300)];
            assert_eq!(boxes.collect::<Vec<_>>(), expected);
        });
    }

    #[test]
    fn a_range_has_its_part_of_what_was() {
        let check = |start: u64, end: u64, expected: &[(&str, u64)]| {
            let range = start * 1_000_000..end * 1_000_000;
            let mut profile = trace();
            profile.split_samples(&[range.start, range.end]);
            with_view(&profile, &Selection { range: Some(range), ..Selection::default() }, |view| {
                let interval = profile.meta().interval;
                let mut times: Vec<_> = view
                    .functions()
                    .functions
                    .iter()
                    .map(|it| (it.name, it.self_amount.weight * interval / 1_000_000))
                    .collect();
                times.sort_unstable();
                assert_eq!(times, expected, "{start}-{end}");
                let ran: u64 = expected.iter().map(|(_, time)| time).sum();
                assert_eq!(view.thread_timeline(1).rows[0].parts_ns, [ran * 1_000_000]);
                assert_eq!(view.by_thread()[0].amount.weight * interval, ran * 1_000_000);
            });
        };
        check(500, 600, &[("B", 100)]);
        check(550, 561, &[("B", 11)]);
        check(0, 100, &[("A", 100)]);
        check(100, 900, &[("B", 800)]);
        check(50, 950, &[("A", 50), ("B", 800), ("C", 50)]);
        check(1000, 1250, &[("D", 50)]);
        check(1000, 1200, &[]);
        check(0, 9000, &[("A", 100), ("B", 800), ("C", 100), ("D", 100)]);
    }
}
