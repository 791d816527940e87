//! Intervals of changing length between the samples of a whole CPU, so that no program's rhythm is the sampler's.

use std::os::fd::AsFd as _;

use super::events::Events;
use crate::linux::sys::event;

/// How many intervals are of the same length, one after the other.
const ALIKE: u64 = 50;
/// By how much the rate is higher or lower at most, as a part of it.
const SWING: f64 = 0.2;

/// Changes the length of the intervals from time to time.
#[derive(Debug)]
pub(crate) struct Jitter {
    period_ns: u64,
    random: u64,
    next_ns: u64,
}

impl Jitter {
    /// As many samples as with intervals of `period_ns`; `seed` is any number.
    pub(crate) fn new(period_ns: u64, seed: u64) -> Self {
        Self { period_ns, random: seed | 1, next_ns: 0 }
    }

    /// When the intervals are to change next, in nanoseconds of the monotonic clock.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Changes the intervals on all CPUs, each differently, where it is time to.
    pub(crate) fn change(&mut self, events: &Events, now_ns: u64) {
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + ALIKE * self.period_ns;
        for event in events.sampling() {
            // An event whose interval stays as it was samples all the same.
            let _ = event::set_period(event.as_fd(), self.interval());
        }
    }

    /// The next interval. A change begins an interval anew, and loses half of one on average; the intervals are shorter
    /// by as much.
    fn interval(&mut self) -> u64 {
        // Marsaglia's xorshift64 (Journal of Statistical Software 8, 14).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let from_0_to_1 = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
        let rate = 1.0 + SWING * (2.0 * from_0_to_1 - 1.0);
        let lost = 0.5 / ALIKE as f64;
        (self.period_ns as f64 / rate * (1.0 - lost)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_swing_about_the_period() {
        let mut jitter = Jitter::new(1_000_000, 7);
        let intervals: Vec<u64> = (0..10_000).map(|_| jitter.interval()).collect();
        let rate = intervals.iter().map(|interval| 1e6 / *interval as f64).sum::<f64>() / 10_000.0;
        assert!((rate - 1.0 / 0.99).abs() < 0.01, "{rate}");
        let (least, most) = (intervals.iter().min().unwrap(), intervals.iter().max().unwrap());
        assert!(
            (820_000..840_000).contains(least) && (1_200_000..1_240_000).contains(most),
            "{least} to {most}"
        );
    }

    #[test]
    fn any_seed_gives_different_intervals() {
        for seed in [0, 1, u64::MAX] {
            let mut jitter = Jitter::new(1_000_000, seed);
            let (first, second) = (jitter.interval(), jitter.interval());
            assert_ne!(first, second, "seed {seed}");
        }
    }
}
