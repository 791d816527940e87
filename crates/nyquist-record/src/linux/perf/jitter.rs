//! Varies the intervals between the samples of a whole CPU, so that no program is in step with the sampler.
//!
//! The reader changes them by its clock, for which it must wake up. An idle machine does not need that: the
//! intervals then rest until a ring has records for the reader.

use std::os::fd::AsFd as _;

use super::events::OpenedEvents;
use crate::linux::sys::event;
use crate::random::Random;

/// How many consecutive intervals have the same length.
const ALIKE: u64 = 50;
/// The maximum relative change of the rate over [`ALIKE`] intervals.
const SWING: f64 = 0.1;

/// The relative change of the rate while the intervals rest. It is small, because the first program
/// afterwards is sampled at this rate until a ring wakes the reader. Still, 50 samples cover all phases of a
/// program in step with the rate.
const RESTING_SWING: f64 = 0.02;

/// Changes the length of the intervals from time to time.
#[derive(Debug)]
pub(crate) struct Jitter {
    period_ns: u64,
    random: Random,
    next_ns: u64,
    /// For each CPU, the current relative change of the rate.
    swings: Vec<f64>,
    /// How many bytes had been written to the rings at the last change; `None` before the first one.
    written: Option<u64>,
    rests: bool,
    /// The relative increase of the rate on every second CPU while the intervals rest; it is a decrease on
    /// the others.
    resting_swing: f64,
}

impl Jitter {
    /// Yields as many samples as intervals of `period_ns`; `seed` is any number.
    pub(crate) fn new(period_ns: u64, seed: u64) -> Self {
        Self {
            period_ns,
            random: Random::new(seed),
            next_ns: 0,
            swings: Vec::new(),
            written: None,
            rests: false,
            resting_swing: RESTING_SWING,
        }
    }

    /// When the intervals change next, in nanoseconds of the monotonic clock; `None` while they rest.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (!self.rests).then_some(self.next_ns)
    }

    /// Changes the intervals on all CPUs, each differently, if it is time to. `written` is the number of
    /// bytes written to the rings.
    pub(crate) fn change(&mut self, events: &OpenedEvents, written: impl FnOnce() -> u64, now_ns: u64) {
        if now_ns < self.next_ns || !self.turns(written(), now_ns) {
            return;
        }
        for (cpu, event) in events.sampling().enumerate() {
            // If an interval cannot be changed, its event still samples.
            let _ = event::set_period(event.as_fd(), self.interval(cpu));
        }
    }

    /// Whether the intervals change when it is time to: to the next ones, or to the resting ones if nothing
    /// was written since the last change.
    fn turns(&mut self, written: u64, now_ns: u64) -> bool {
        let is_idle = self.written == Some(written);
        let rested = std::mem::replace(&mut self.rests, is_idle);
        if !is_idle {
            self.written = Some(written);
            self.next_ns = now_ns + ALIKE * self.period_ns;
        } else if !rested {
            // The last swings had no samples, so the next ones go to the same sides.
            self.swings.iter_mut().for_each(|swing| *swing = -*swing);
            self.resting_swing = -self.resting_swing;
        }
        !(is_idle && rested)
    }

    /// The next interval on a CPU.
    fn interval(&mut self, cpu: usize) -> u64 {
        if self.rests {
            let swing = if cpu.is_multiple_of(2) { self.resting_swing } else { -self.resting_swing };
            return (self.period_ns as f64 / (1.0 + swing)) as u64;
        }
        self.changed_interval(cpu)
    }

    /// A change restarts an interval, and loses half of one on average. The intervals are shortened to
    /// compensate.
    fn changed_interval(&mut self, cpu: usize) -> u64 {
        let swing = self.next_swing(cpu);
        let lost = 0.5 / ALIKE as f64;
        (self.period_ns as f64 / (1.0 + swing) * (1.0 - lost)) as u64
    }

    /// After every swing to one side follows the same swing to the other. The rate is then correct at once,
    /// and not only in the long run.
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

    /// The intervals on two CPUs after a while, in µs, with this many bytes written by then; `None` if they
    /// do not change.
    fn turn(jitter: &mut Jitter, written: u64) -> Option<[i64; 2]> {
        let now_ns = jitter.next_ns().unwrap_or(jitter.next_ns);
        let changes = jitter.turns(written, now_ns);
        changes.then(|| [0, 1].map(|cpu| jitter.interval(cpu) as i64 / 1000))
    }

    #[test]
    fn nothing_changes_while_nothing_is_written() {
        let mut jitter = Jitter::new(1_000_000, 7);
        assert!(turn(&mut jitter, 0).is_some());
        assert_eq!(jitter.next_ns(), Some(ALIKE * 1_000_000));
        // Almost the requested rate on both CPUs together, and on neither in step with a millisecond.
        assert_eq!(turn(&mut jitter, 0), Some([1020, 980]));
        assert_eq!((jitter.next_ns(), turn(&mut jitter, 0)), (None, None));
        assert!(turn(&mut jitter, 4096).is_some());
        assert!(jitter.next_ns().is_some());
        // The next rest compensates for the previous one.
        assert_eq!(turn(&mut jitter, 4096), Some([980, 1020]));
        assert_eq!((jitter.next_ns(), turn(&mut jitter, 4096)), (None, None));
    }

    #[test]
    fn sampled_swings_come_in_pairs_despite_rests() {
        let mut jitter = Jitter::new(1_000_000, 7);
        let (mut random, mut written) = (Random::new(3), 0);
        let mut sampled: Vec<[i64; 2]> = Vec::new();
        for _ in 0..2000 {
            let Some(intervals) = turn(&mut jitter, written) else {
                written += random.below(2);
                continue;
            };
            let gets_any = random.below(3) > 0;
            written += u64::from(gets_any);
            if gets_any && !jitter.rests {
                sampled.push(intervals);
            }
        }
        assert!(sampled.len() > 500, "{}", sampled.len());
        for pair in sampled.chunks_exact(2) {
            for cpu in [0, 1] {
                let rate = pair.iter().map(|intervals| 1000.0 / intervals[cpu] as f64).sum::<f64>() / 2.0;
                assert!((rate - 1.0 / 0.99).abs() < 2e-3, "{pair:?}");
            }
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
