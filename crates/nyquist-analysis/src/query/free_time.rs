//! The time of a thread that no sample has, for samples that stand for more than the time before them.

use std::collections::VecDeque;
use std::ops::Range;

/// The maximum number of gaps that are kept; older ones are forgotten.
const MAX_GAPS: usize = 1 << 16;

/// The gaps between the spans of a thread, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct FreeTime {
    gaps: VecDeque<Gap>,
    /// How many of the last gaps are new: none of them was used by an amount of unknown place.
    new: usize,
}

/// A time without a sample, of which something may already be used.
#[derive(Debug)]
struct Gap {
    times: Range<u64>,
    used_ns: u64,
}

impl Gap {
    fn free_ns(&self) -> u64 {
        (self.times.end - self.times.start).saturating_sub(self.used_ns)
    }

    /// Uses a part of it: its end if all is free, and all of its length otherwise.
    fn take(&mut self, ns: u64) -> (Range<u64>, u64) {
        if self.used_ns > 0 {
            self.used_ns += ns;
            return (self.times.clone(), ns);
        }
        let end = self.times.end;
        self.times.end -= ns;
        (self.times.end..end, ns)
    }
}

impl FreeTime {
    /// Adds a time after all others.
    pub(crate) fn add(&mut self, times: Range<u64>) {
        if self.gaps.len() == MAX_GAPS {
            self.gaps.pop_front();
            self.new = self.new.min(MAX_GAPS - 1);
        }
        self.gaps.push_back(Gap { times, used_ns: 0 });
        self.new += 1;
    }

    /// Spreads an amount of unknown place evenly over the new gaps. If they are too short, it also takes the
    /// last of the others. Returns what is left of it. O(1) for each gap that was added.
    pub(crate) fn spread(&mut self, mut ns: u64, mut take: impl FnMut(Range<u64>, u64)) -> u64 {
        let old = self.gaps.len() - self.new;
        let mut free: u64 = self.gaps.range(old..).map(Gap::free_ns).sum();
        if ns > free {
            self.new = 0;
            return self.take_last(ns, take);
        }
        for gap in self.gaps.range_mut(old..) {
            let gap_free = gap.free_ns();
            // The remaining amount is divided by the remaining time, so nothing is lost to rounding.
            let part = (u128::from(ns) * u128::from(gap_free)).checked_div(free.into()).unwrap_or(0) as u64;
            gap.used_ns += part;
            take(gap.times.clone(), part);
            (ns, free) = (ns - part, free - gap_free);
        }
        self.new = 0;
        0
    }

    /// Puts an amount into the last gaps. Returns what is left of it. O(1) for each gap that was added.
    pub(crate) fn take_last(&mut self, mut ns: u64, mut take: impl FnMut(Range<u64>, u64)) -> u64 {
        while ns > 0
            && let Some(mut gap) = self.gaps.pop_back()
        {
            let part = gap.free_ns().min(ns);
            let (times, part) = gap.take(part);
            if part > 0 {
                take(times, part);
            }
            ns -= part;
            if gap.free_ns() > 0 {
                self.gaps.push_back(gap);
            }
        }
        self.new = self.new.min(self.gaps.len());
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(gaps: &[(u64, u64)]) -> FreeTime {
        let mut free = FreeTime::default();
        for &(start, end) in gaps {
            free.add(start..end);
        }
        free
    }

    type Placed = Vec<(u64, u64, u64)>;

    fn spread(free: &mut FreeTime, ns: u64) -> (u64, Placed) {
        let mut placed = Vec::new();
        (free.spread(ns, |times, ns| placed.push((times.start, times.end, ns))), placed)
    }

    fn take_last(free: &mut FreeTime, ns: u64) -> (u64, Placed) {
        let mut placed = Vec::new();
        (free.take_last(ns, |times, ns| placed.push((times.start, times.end, ns))), placed)
    }

    #[test]
    fn what_has_no_place_is_spread_over_what_is_new() {
        let mut free = free(&[(0, 10), (20, 40)]);
        assert_eq!(spread(&mut free, 10), (0, vec![(0, 10, 3), (20, 40, 7)]));
        free.add(50..60);
        assert_eq!(spread(&mut free, 5), (0, vec![(50, 60, 5)]));
        // Without new time, what is free of the last gaps is used.
        assert_eq!(spread(&mut free, 7), (0, vec![(50, 60, 5), (20, 40, 2)]));
    }

    #[test]
    fn the_last_gaps_are_used_first() {
        let mut free = free(&[(0, 10), (20, 40)]);
        assert_eq!(take_last(&mut free, 5), (0, vec![(35, 40, 5)]));
        assert_eq!(take_last(&mut free, 18), (0, vec![(20, 35, 15), (7, 10, 3)]));
        assert_eq!(take_last(&mut free, 9), (2, vec![(0, 7, 7)]));
        assert_eq!(take_last(&mut free, 9), (9, vec![]));
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut free = FreeTime::default();
        for at in 0..2 * MAX_GAPS as u64 {
            free.add(at * 2..at * 2 + 1);
        }
        assert_eq!(free.gaps.len(), MAX_GAPS);
        assert_eq!(spread(&mut free, MAX_GAPS as u64 + 7).0, 7);
        assert!(free.gaps.is_empty());
    }
}
