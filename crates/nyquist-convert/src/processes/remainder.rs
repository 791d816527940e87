//! CPU time for which there is no sample yet, and how it becomes weights.
//!
//! A clock samples a thread once an interval, but a thread that sleeps and wakes, or that ends before its
//! first sample, uses time for which no sample came. If the source knows how much, the weights of samples
//! make up for it, so that they add up to the CPU time.

use rustc_hash::FxHashMap;

/// CPU time, in nanoseconds, for which there is no sample yet; negative if samples stand for more than was
/// used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimeRemainder(i64);

impl CpuTimeRemainder {
    /// The weight of a sample after `used_ns` of CPU time: the nearest number of intervals, and at least one,
    /// because the sample exists.
    pub(crate) fn weigh(&mut self, used_ns: u64, interval_ns: u64) -> u64 {
        self.add(used_ns);
        let interval = signed(interval_ns.max(1));
        let nearest = self.0.saturating_add(interval / 2).div_euclid(interval);
        self.take(nearest.max(1), interval)
    }

    /// Adds time for which there is no sample.
    pub(crate) fn add(&mut self, unsampled_ns: u64) {
        self.0 = self.0.saturating_add(signed(unsampled_ns));
    }

    /// Takes out time that the profile shows in another way.
    pub(crate) fn take_out(&mut self, shown_ns: u64) {
        self.0 = self.0.saturating_sub(signed(shown_ns));
    }

    /// Takes out the nearest number of intervals, which may be zero. It is the weight of a sample that the
    /// thread's own clock has not triggered.
    pub(crate) fn take_nearest(&mut self, interval_ns: u64) -> u64 {
        let half = Self(signed(interval_ns.max(1)) / 2);
        self.0 = self.0.saturating_add(half.0);
        let intervals = self.take_intervals(interval_ns);
        self.0 = self.0.saturating_sub(half.0);
        intervals
    }

    /// Takes out the whole intervals.
    pub(crate) fn take_intervals(&mut self, interval_ns: u64) -> u64 {
        self.take_intervals_beyond(0, interval_ns)
    }

    /// Takes out the whole intervals beyond a number of them that stays.
    fn take_intervals_beyond(&mut self, retained: i64, interval_ns: u64) -> u64 {
        let interval = signed(interval_ns.max(1));
        self.take((self.0 / interval).saturating_sub(retained), interval)
    }

    /// Takes out intervals.
    fn take(&mut self, intervals: i64, interval: i64) -> u64 {
        let weight = intervals.max(0).cast_unsigned();
        self.0 = self.0.saturating_sub(signed(weight).saturating_mul(interval));
        weight
    }

    /// Whether there is less than an interval, but not a debt.
    pub(crate) fn is_fraction(self, interval_ns: u64) -> bool {
        (0..signed(interval_ns.max(1))).contains(&self.0)
    }
}

/// The intervals after which a process without samples was in the kernel. One that spent a fifth of them in
/// user code has a sample in 99 of 100 cases.
const MIN_INTERVALS_WITHOUT_SAMPLES: i64 = 20;

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The CPU time of a process for which there is no sample, if its source counts CPU time apart from sampling.
///
/// The kernel lets threads of a program exchange their clocks when it switches from one to another. A thread
/// then has more or fewer samples than its own CPU time, while those of the process are right. Therefore time
/// without samples is known by process.
#[derive(Debug, Default)]
pub(crate) struct ProcessRemainder {
    time: CpuTimeRemainder,
    /// How many samples the process has.
    samples: u64,
}

impl ProcessRemainder {
    /// Notes a sample of the process.
    pub(crate) fn note_sample(&mut self) {
        self.samples += 1;
    }

    /// Whether the process has samples.
    pub(crate) fn has_samples(&self) -> bool {
        self.samples > 0
    }

    /// Whether time without samples was spent in the kernel, if only user code is sampled: there are samples,
    /// or so much time that user code would have had some.
    pub(crate) fn shows_kernel(&self, interval_ns: u64) -> bool {
        let interval = signed(interval_ns.max(1));
        self.has_samples() || self.time.0 / interval >= MIN_INTERVALS_WITHOUT_SAMPLES
    }

    /// Adds the remainder of one of its threads.
    pub(crate) fn add(&mut self, of_thread: CpuTimeRemainder) {
        self.time.0 = self.time.0.saturating_add(of_thread.0);
    }

    /// Takes out the whole intervals that certainly have no samples. If threads share their clocks, another
    /// thread may have as many samples too many, whose time is not known yet. The difference is smaller than
    /// twice the square root of all samples in all but one of 10,000 cases.
    pub(crate) fn take_certain(&mut self, shares_clocks: bool, interval_ns: u64) -> u64 {
        let retained = if shares_clocks { signed(self.samples.isqrt()).saturating_mul(2) } else { 0 };
        self.time.take_intervals_beyond(retained, interval_ns)
    }

    /// Takes one interval that certainly has no sample, if there is one.
    pub(crate) fn take_one_certain(&mut self, shares_clocks: bool, interval_ns: u64) -> u64 {
        let mut rest = std::mem::take(&mut self.time);
        let certain = Self { time: rest, samples: self.samples }.take_certain(shares_clocks, interval_ns);
        let one = rest.take(signed(certain.min(1)), signed(interval_ns.max(1)));
        self.time = rest;
        one
    }

    /// Whether samples stand for all time.
    pub(crate) fn is_empty(&self) -> bool {
        self.time.0 == 0
    }

    /// What is left, which may be a debt.
    pub(crate) fn rest(&mut self) -> &mut CpuTimeRemainder {
        &mut self.time
    }
}

/// The remainders of threads that have ended, by the name of their program. A thousand processes of a
/// millisecond each have few samples, but together use a second.
#[derive(Debug, Default)]
pub(crate) struct ProgramRemainders {
    by_program: FxHashMap<String, CpuTimeRemainder>,
}

impl ProgramRemainders {
    /// Adds the remainder of a thread of the program, and takes out the whole intervals that it completes.
    pub(crate) fn settle(&mut self, program: &str, left: &mut CpuTimeRemainder, interval_ns: u64) -> u64 {
        let left = std::mem::take(left);
        let remainder = match self.by_program.get_mut(program) {
            Some(remainder) => remainder,
            None => self.by_program.entry(program.to_owned()).or_default(),
        };
        remainder.0 = remainder.0.saturating_add(left.0);
        remainder.take_intervals(interval_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_without_sense_do_not_overflow() {
        let mut remainder = CpuTimeRemainder::default();
        for _ in 0..3 {
            assert_eq!(remainder.weigh(0, u64::MAX), 1);
            assert_eq!((remainder.take_nearest(u64::MAX), remainder.take_intervals(u64::MAX)), (0, 0));
        }
    }

    #[test]
    fn weights_follow_cpu_time() {
        let mut remainder = CpuTimeRemainder::default();
        let weights = [100, 104, 104, 104, 130, 130, 60, 98].map(|used| remainder.weigh(used, 100));
        assert_eq!(weights, [1, 1, 1, 1, 1, 2, 1, 1]);
        assert_eq!(remainder, CpuTimeRemainder(-70));
        assert_eq!(remainder.weigh(370, 100), 3);
    }

    #[test]
    fn a_sample_stands_for_one_interval_at_least() {
        let mut remainder = CpuTimeRemainder::default();
        assert_eq!([remainder.weigh(0, 100), remainder.weigh(0, 100), remainder.weigh(290, 100)], [1, 1, 1]);
    }

    #[test]
    fn a_look_stands_for_the_time_that_there_was() {
        let mut remainder = CpuTimeRemainder::default();
        let weights = [60, 60, 60, 0, 0, 49, 1, 250].map(|used| {
            remainder.add(used);
            remainder.take_nearest(100)
        });
        assert_eq!(weights, [1, 0, 1, 0, 0, 0, 0, 3]);
        assert_eq!(remainder, CpuTimeRemainder(-20));
    }

    #[test]
    fn short_lives_add_up_by_program() {
        let mut remainders = ProgramRemainders::default();
        let taken: Vec<_> =
            (0..10).map(|_| remainders.settle("true", &mut CpuTimeRemainder(70), 100)).collect();
        assert_eq!(taken, [0, 1, 1, 0, 1, 1, 0, 1, 1, 1]);
        assert_eq!(remainders.settle("false", &mut CpuTimeRemainder(70), 100), 0);
        assert_eq!(remainders.settle("false", &mut CpuTimeRemainder(-70), 100), 0);
    }

    #[test]
    fn shared_clocks_keep_back_what_may_be_noise() {
        let process = |samples| ProcessRemainder { time: CpuTimeRemainder(12_070), samples };
        assert_eq!(process(2500).take_certain(false, 100), 120);
        let mut shared = process(2500);
        assert_eq!([0; 2].map(|_| shared.take_certain(true, 100)), [20, 0]);
        assert_eq!([0; 2].map(|_| shared.take_one_certain(true, 100)), [0, 0]);
        assert_eq!([0; 2].map(|_| shared.take_one_certain(false, 100)), [1, 1]);
        assert_eq!(shared.rest(), &CpuTimeRemainder(9_870));
        let mut debt = ProcessRemainder { time: CpuTimeRemainder(-500), samples: 9 };
        assert_eq!((debt.take_certain(false, 100), debt.take_one_certain(true, 100)), (0, 0));
    }

    #[test]
    fn a_weight_holds_more_than_32_bits() {
        let mut remainder = CpuTimeRemainder::default();
        assert_eq!(remainder.weigh((1 << 33) * 10, 10), 1 << 33);
        assert_eq!(remainder.weigh(0, 10), 1);
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let mut remainder = CpuTimeRemainder::default();
        assert_eq!(remainder.weigh(u64::MAX, 1), u64::MAX / 2);
        remainder.add(u64::MAX);
        remainder.add(u64::MAX);
        assert_eq!(remainder.weigh(u64::MAX, u64::MAX), 1);
    }
}
