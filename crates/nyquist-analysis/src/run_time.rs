//! How long a thread had run by some time, without going through all its samples.

use nyquist_profile::{Sample, Samples, ThreadIndex};

use crate::prefix_sums::{STEP, Tallies, Tally};
use crate::span::Span;
use crate::view::View;

/// Looks up how long a thread had run by times that only grow, of the samples on the CPU that a view chooses.
pub(crate) struct Ran<'v> {
    view: &'v View<'v>,
    tallies: &'v Tallies,
    samples: &'v Samples,
    /// How many of the thread's samples are before the end of the chosen times.
    end: usize,
    /// What is before the chosen times.
    before: Tally,
    /// The last tally that is not after the time that was asked for last.
    block: usize,
    /// The first sample on the CPU after that time.
    next: usize,
}

impl<'v> Ran<'v> {
    pub(crate) fn new(view: &'v View<'v>, thread: ThreadIndex) -> Self {
        let range = view.chosen.range_of(thread);
        Self {
            view,
            tallies: &view.index.tallies()[thread.index()],
            samples: &view.profile().thread(thread).samples,
            end: range.end,
            before: view.index.tally_before(thread, range.start),
            block: 0,
            next: 0,
        }
    }

    /// How long the thread had run by `time`, in ns. It is the sum of its samples' spans, with that of the next
    /// one up to `time`. O(log samples since the last time), besides samples off the CPU, which are passed
    /// once.
    pub(crate) fn until(&mut self, time: u64) -> u64 {
        self.block += self.count_until(time);
        let from = self.samples.range(self.block * STEP..self.end);
        let (position, tally) = self.tallies.until(time, self.block, from, self.view.profile());
        if position > self.next || self.get(self.next).is_some_and(|sample| sample.off_cpu) {
            let steps = self.samples.range(position..self.end).position(|sample| !sample.off_cpu);
            self.next = steps.map_or(self.end, |steps| position + steps);
        }
        tally.ran_since(self.before).wrapping_add(self.part_of_next(time, tally))
    }

    fn part_of_next(&self, time: u64, tally: Tally) -> u64 {
        let Some(next) = self.get(self.next) else { return 0 };
        // One before the chosen times is none of the view's.
        let last = Some(tally.last_ran()).filter(|&last| last >= self.view.selection.times().start);
        let span = Span::new(self.view.profile().meta(), &next, self.next == 0, last.unwrap_or(0));
        if span.times.start < time { span.used_until(time) } else { 0 }
    }

    /// The sample at a place, up to the end of the chosen times.
    fn get(&self, place: usize) -> Option<Sample> {
        self.samples.get(place).filter(|_| place < self.end)
    }

    /// How many tallies farther the last one is that is not after `time`: found in steps that grow, then between the last
    /// two. O(log of the answer).
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
