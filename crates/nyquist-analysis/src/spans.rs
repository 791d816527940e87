//! The places in time of the samples that a view has.

use std::ops::Range;

use nyquist_profile::{StackId, ThreadIndex};

use crate::span::Span;
use crate::view::View;

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
    pub(crate) fn spans_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> {
        let mut last = 0;
        self.chosen.of_thread(thread).filter_map(move |chosen| {
            let span = Span::new(self.profile().meta(), &chosen.sample, chosen.is_first, last);
            last = span.times.end;
            self.keeps(span.stack).then_some(span)
        })
    }

    /// Whether filters and transforms leave samples with that stack. Where there are none, no node is looked up: that is
    /// most of the time that going through many samples takes.
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

    /// The node that a span is at; none where it has no stack.
    pub(crate) fn node_of_span(&self, span: &Span) -> Option<u32> {
        span.stack.and_then(|stack| self.node_of(stack))
    }
}
