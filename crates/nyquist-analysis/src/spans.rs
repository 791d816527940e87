//! The spans of the samples of a view.

use std::ops::Range;

use nyquist_profile::{Sample, StackId, ThreadIndex};

use crate::span::Span;
use crate::view::View;

impl View<'_> {
    /// The selected times, as far as they were recorded. If the recording's start and end are not known,
    /// they reach from the first sample to the last.
    pub fn times(&self) -> Range<u64> {
        let meta = self.profile().meta();
        let selected = self.selection.times();
        let threads = self.chosen.threads.iter().map(|&id| &self.profile().thread(id).samples);
        let begun =
            |first: Sample| if meta.has_exact_times { first.start(meta.interval) } else { first.time };
        let sampled = threads.filter_map(|samples| Some((begun(samples.first()?), samples.last()?.time)));
        let recorded = meta.profiling_start.zip(meta.profiling_end);
        let recorded = recorded.or_else(|| sampled.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
        let (start, end) = recorded.unwrap_or((0, 0));
        let start = start.max(selected.start);
        start..end.min(selected.end).max(start)
    }

    /// The spans of a thread's samples in the view, in order and without overlaps.
    pub(crate) fn spans_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> {
        self.all_spans_of(thread).filter(|span| self.keeps(span.stack))
    }

    /// The same, including the samples that filters and transforms have dropped.
    pub(crate) fn all_spans_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> {
        let mut last = 0;
        self.chosen.of_thread(thread).map(move |chosen| {
            let span = Span::new(self.profile().meta(), &chosen.sample, chosen.is_first, last);
            last = span.times.end;
            span
        })
    }

    /// Whether filters and transforms keep samples with that stack. Without any of these, it looks up no
    /// node, because that look-up takes most of the time when going through many samples.
    fn keeps(&self, stack: Option<StackId>) -> bool {
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

    use crate::flame_chart::FlameChartOptions;
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
    fn a_flame_chart_shows_when_things_were() {
        with_view(&trace(), &Selection::default(), |view| {
            let boxes = view.flame_chart(ThreadIndex::from_index(0), &FlameChartOptions::default());
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
