//! CPU cycles as CPU time.
//!
//! A counter of cycles that samples at a frequency does not sample at equal distances: the kernel begins with a
//! period of one cycle, and adapts it to the speed of the CPU. So a sample stands for the cycles that were
//! counted since the one before, and for as much time as a CPU needs for them.

/// The parts of a sampling interval that weights count if cycles trigger the samples. A sample of fewer cycles
/// than half a part has no weight, and its time is added to the next one.
pub(crate) const PARTS: u64 = 16;

/// The slowest clock of a CPU, in cycles for each nanosecond of the inverse: 0.1 GHz. The first periods of a
/// counter are far shorter than an interval of any CPU.
const SLOWEST_NS_PER_CYCLE: u64 = 10;

/// How many cycles a CPU makes in a sampling interval, by the samples so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleTime {
    interval_ns: u64,
    /// The sum of all periods, and that of their squares.
    cycles: u128,
    squares: u128,
    /// How many of the next samples are in these sums.
    known: u64,
}

impl CycleTime {
    /// Without samples so far. The kernel adapts the period so that it lasts an interval.
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self { interval_ns: interval_ns.max(1), cycles: 0, squares: 0, known: 0 }
    }

    /// With the cycles of the samples that come first, which are known ahead.
    pub(crate) fn knowing(mut self, first: impl Iterator<Item = u64>) -> Self {
        for cycles in first {
            self.add(cycles);
            self.known += 1;
        }
        self
    }

    /// The time between two samples, in nanoseconds.
    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    fn add(&mut self, cycles: u64) {
        let cycles = u128::from(cycles);
        self.cycles = self.cycles.saturating_add(cycles);
        self.squares = self.squares.saturating_add(cycles.saturating_mul(cycles));
    }

    /// The time of a sample's cycles, in nanoseconds. It is an interval for as many cycles as the average
    /// cycle is counted with. Short periods hardly change this average, although there may be many.
    pub(crate) fn ns(&mut self, cycles: u64) -> u64 {
        match self.known.checked_sub(1) {
            Some(known) => self.known = known,
            None => self.add(cycles),
        }
        let in_interval = self.squares / self.cycles.max(1);
        let in_interval = in_interval.max(u128::from(self.interval_ns / SLOWEST_NS_PER_CYCLE)).max(1);
        let ns = u128::from(cycles).saturating_mul(self.interval_ns.into()) / in_interval;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_starts_weighs_nothing() {
        let mut time = CycleTime::new(1_000_000);
        let first = [1, 1, 9, 143, 2499].map(|cycles| time.ns(cycles));
        assert_eq!(first, [10, 10, 90, 1430, 24_990]);
        assert!((1_000_000..1_002_000).contains(&time.ns(2_000_000)));
        assert!((1_000_000..1_002_000).contains(&time.ns(2_000_000)));
        assert!((550_000..560_000).contains(&time.ns(1_000_000)));
    }

    #[test]
    fn shares_are_those_of_the_cycles() {
        let mut time = CycleTime::new(250_000);
        let samples = (0..10_000_u64).map(|at| (at % 2, [300_000, 900_000][(at % 2) as usize] + at % 1000));
        let mut sums = [0; 2];
        samples.for_each(|(of, cycles)| sums[of as usize] += time.ns(cycles));
        let share = sums[0] as f64 / (sums[0] + sums[1]) as f64;
        assert!((share - 0.25).abs() < 0.001, "{share}");
    }

    #[test]
    fn samples_known_ahead_have_exact_shares() {
        let samples: Vec<u64> = (1..1000).map(|at| at * 1_000_000).collect();
        let mut time = CycleTime::new(1 << 30).knowing(samples.iter().copied());
        let [first, last] = [samples[0], samples[998]].map(|cycles| time.ns(cycles) as f64 / cycles as f64);
        assert!((first / last - 1.0).abs() < 1e-6, "{first} {last}");
    }

    #[test]
    fn absurd_cycles_do_not_overflow() {
        let mut time = CycleTime::new(u64::MAX);
        for cycles in [0, u64::MAX, u64::MAX, 1] {
            time.ns(cycles);
        }
    }
}
