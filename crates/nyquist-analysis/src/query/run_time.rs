//! The running time of a thread up to some time, without reading all its samples.

use nyquist_profile::{Sample, Samples, ThreadIndex};

use crate::index::prefix_sums::{PrefixSum, PrefixSums, STEP};
use crate::index::span::Span;
use crate::view::View;

/// Looks up a thread's running time by increasing times, from the on-CPU samples that a view chooses.
pub(crate) struct RunTimeLookup<'v> {
    view: &'v View<'v>,
    prefix_sums: &'v PrefixSums,
    samples: &'v Samples,
    /// The number of the thread's samples before the end of the chosen times.
    end: usize,
    /// The prefix sum before the chosen times.
    before: PrefixSum,
    /// The last prefix sum that is not after the most recently requested time.
    block: usize,
    /// The first sample on the CPU after that time.
    next: usize,
}

impl<'v> RunTimeLookup<'v> {
    pub(crate) fn new(view: &'v View<'v>, thread: ThreadIndex) -> Self {
        let range = view.chosen.range_of(thread);
        Self {
            view,
            prefix_sums: &view.index.prefix_sums()[thread.index()],
            samples: &view.profile().thread(thread).samples,
            end: range.end,
            before: view.index.prefix_sum_before(thread, range.start),
            block: 0,
            next: 0,
        }
    }

    /// The thread's running time up to `time`, in ns. It is the sum of its samples' spans, plus the part
    /// of the next span before `time`. O(log samples since the last time). In addition, each sample off
    /// the CPU is passed once.
    pub(crate) fn until(&mut self, time: u64) -> u64 {
        self.block += self.count_until(time);
        let from = self.samples.range(self.block * STEP..self.end);
        let (position, prefix_sum) = self.prefix_sums.until(time, self.block, from, self.view.profile());
        if position > self.next || self.get(self.next).is_some_and(|sample| sample.off_cpu) {
            let steps = self.samples.range(position..self.end).position(|sample| !sample.off_cpu);
            self.next = steps.map_or(self.end, |steps| position + steps);
        }
        prefix_sum.ran_since(self.before).wrapping_add(self.part_of_next(time, prefix_sum))
    }

    fn part_of_next(&self, time: u64, prefix_sum: PrefixSum) -> u64 {
        let Some(next) = self.get(self.next) else { return 0 };
        // A sample before the chosen times does not belong to the view.
        let last = Some(prefix_sum.last_ran()).filter(|&last| last >= self.view.selection.times().start);
        let (meta, last) = (self.view.profile().meta(), last.unwrap_or(0));
        let span = Span::new(meta, (&next, 0), self.next == 0, last).without_noise(meta, last);
        if span.times.start < time { span.used_until(time) } else { 0 }
    }

    /// The sample at a position before the end of the chosen times.
    fn get(&self, place: usize) -> Option<Sample> {
        self.samples.get(place).filter(|_| place < self.end)
    }

    /// The number of prefix sums from the current one to the last one not after `time`. It searches in growing
    /// steps, then between the last two. O(log of the result).
    fn count_until(&self, time: u64) -> usize {
        let is_until = |more| self.get((self.block + more) * STEP).is_some_and(|sample| sample.time <= time);
        let mut step = 1;
        while is_until(step) {
            step *= 2;
        }
        let (mut known, mut beyond) = (step / 2, step);
        while beyond - known > 1 {
            let middle = known.midpoint(beyond);
            if is_until(middle) {
                known = middle;
            } else {
                beyond = middle;
            }
        }
        known
    }
}
