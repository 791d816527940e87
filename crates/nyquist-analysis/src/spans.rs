//! What each sample stands for in time.

use std::ops::Range;

use nyquist_profile::ThreadIndex;

use crate::chosen::ChosenSample;
use crate::view::View;

/// A sample's place in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// From when to when it stands for what the thread did.
    pub(crate) times: Range<u64>,
    /// How much of that the thread ran, or waited, in ns.
    pub(crate) ns: u64,
    /// The node that it is at; none where it has no stack.
    pub(crate) node: Option<u32>,
}

impl View<'_> {
    /// The times that are selected, as far as they were recorded. Where it is not known when the recording began and
    /// ended, from the first sample to the last.
    pub fn times(&self) -> Range<u64> {
        let meta = self.profile().meta();
        let selected = self.selection.times();
        let threads = self.chosen.threads.iter().map(|&id| &self.profile().thread(id).samples);
        let sampled = threads.filter_map(|samples| Some((samples.first()?.time, samples.last()?.time)));
        let recorded = meta.profiling_start.zip(meta.profiling_end);
        let recorded = recorded.or_else(|| sampled.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
        let (start, end) = recorded.unwrap_or((0, 0));
        let start = start.max(selected.start);
        start..end.min(selected.end).max(start)
    }

    /// The places in time of a thread's samples that the view has, in order and without overlaps.
    ///
    /// A sampler of CPU time takes a sample when a period of it is over, so a sample stands for the time before it:
    /// as much as was used since the sample before, up to that sample. Gaps of less than half an interval are noise
    /// and closed.
    pub(crate) fn spans_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> {
        let mut last = 0;
        self.chosen.of_thread(thread).filter_map(move |chosen| {
            let end = chosen.sample.time;
            let ns = self.length(&chosen);
            let start = end.saturating_sub(ns);
            let is_noise = start.saturating_sub(last) < self.profile().meta().interval / 2;
            let start = if is_noise { last } else { start.max(last) };
            last = end;
            let node = match chosen.sample.stack {
                None if self.derived.keeps_stackless => None,
                None => return None,
                Some(stack) => Some(self.derived.target(self.index.node_of_stack[stack.index()])?),
            };
            Some(Span { times: start..end, ns, node })
        })
    }

    fn length(&self, chosen: &ChosenSample<'_>) -> u64 {
        let meta = self.profile().meta();
        if meta.has_cpu_deltas && !chosen.sample.off_cpu && !chosen.is_first {
            chosen.amount.cpu_ns
        } else {
            chosen.amount.weight.saturating_mul(meta.interval)
        }
    }
}
