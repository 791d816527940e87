//! Intervals of changing length between the samples of a whole CPU, so that no program's rhythm is the sampler's.

use std::os::fd::AsFd as _;

use super::events::Events;
use crate::linux::random::Random;
use crate::linux::sys::event;

/// How many intervals are of the same length, one after the other.
const ALIKE: u64 = 50;
/// By how much the rate is higher or lower at most, as a part of it: over [`ALIKE`] intervals, several of them.
const SWING: f64 = 0.1;

/// Changes the length of the intervals from time to time.
#[derive(Debug)]
pub(crate) struct Jitter {
    period_ns: u64,
    random: Random,
    next_ns: u64,
    /// For each CPU, by how much the rate is higher or lower now, as a part of it.
    swings: Vec<f64>,
}

impl Jitter {
    /// As many samples as with intervals of `period_ns`; `seed` is any number.
    pub(crate) fn new(period_ns: u64, seed: u64) -> Self {
        Self { period_ns, random: Random::new(seed), next_ns: 0, swings: Vec::new() }
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
        for (cpu, event) in events.sampling().enumerate() {
            // An event whose interval stays as it was samples all the same.
            let _ = event::set_period(event.as_fd(), self.interval(cpu));
        }
    }

    /// The next interval on a CPU. A change begins an interval anew, and loses half of one on average; the intervals are
    /// shorter by as much.
    fn interval(&mut self, cpu: usize) -> u64 {
        let swing = self.next_swing(cpu);
        let lost = 0.5 / ALIKE as f64;
        (self.period_ns as f64 / (1.0 + swing) * (1.0 - lost)) as u64
    }

    /// After every swing to one side comes the same to the other, so that the rate is what it should be at once and not
    /// only in the long run.
    fn next_swing(&mut self, cpu: usize) -> f64 {
        if let Some(swing) = self.swings.get_mut(cpu)
            && *swing > 0.0
        {
            *swing = -*swing;
            return *swing;
        }
        let swing = SWING * (0.3 + 0.7 * self.random.fraction());
        self.swings.resize(self.swings.len().max(cpu + 1), 0.0);
        if let Some(place) = self.swings.get_mut(cpu) {
            *place = swing;
        }
        swing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_swings_together_keep_the_rate() {
        let mut jitter = Jitter::new(1_000_000, 7);
        for _ in 0..1000 {
            let [fast, slow, other] = [0, 0, 5].map(|cpu| jitter.interval(cpu));
            let rate = f64::midpoint(1e6 / fast as f64, 1e6 / slow as f64);
            assert!((rate - 1.0 / 0.99).abs() < 1e-5, "{rate}");
            assert!(
                (895_000..965_000).contains(&fast) && (1_020_000..1_105_000).contains(&slow),
                "{fast} {slow}"
            );
            assert_ne!(fast, other, "the CPUs swing alike");
            jitter.interval(5);
        }
    }

    #[test]
    fn any_seed_gives_different_intervals() {
        for seed in [0, 1, u64::MAX] {
            let mut jitter = Jitter::new(1_000_000, seed);
            let intervals = [0, 1, 2].map(|cpu| jitter.interval(cpu));
            assert!(intervals[0] != intervals[1] && intervals[1] != intervals[2], "seed {seed}");
        }
    }
}
