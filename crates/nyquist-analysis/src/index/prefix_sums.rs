//! Prefix sums of a thread's samples at regular steps. The sum of any run of samples is a difference of two.

use nyquist_profile::{Meta, Profile, Sample, Thread};

use crate::amount::Amount;
use crate::index::span;
use crate::sample_state::SampleState;

/// The number of samples between two prefix sums.
pub(crate) const STEP: usize = 64;

/// The sums of the samples before some sample of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrefixSum {
    on_cpu: Count,
    off_cpu: Count,
    /// The total length of the spans of samples on the CPU, in ns. Sums of invalid figures wrap around, so
    /// that differences are correct.
    ran_ns: u64,
    /// The time of the last sample on the CPU; 0 before the first.
    last_ran: u64,
}

/// A number of samples, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) samples: u64,
    pub(crate) amount: Amount,
}

impl Count {
    pub(crate) fn add(&mut self, amount: Amount) {
        self.samples += 1;
        self.amount += amount;
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.amount += other.amount;
    }
}

impl std::ops::Sub for Count {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { samples: self.samples - other.samples, amount: self.amount - other.amount }
    }
}

impl PrefixSum {
    fn add(&mut self, profile: &Profile, sample: &Sample, is_first: bool) {
        let count = if sample.off_cpu { &mut self.off_cpu } else { &mut self.on_cpu };
        count.add(Amount::of_sample(profile, &sample.untimed(), is_first));
        if sample.off_cpu {
            return;
        }
        // A sample at the same time as the one before it has an empty span.
        if sample.time > self.last_ran {
            self.ran_ns = self.ran_ns.wrapping_add(span::length(profile.meta(), sample, is_first));
        }
        self.last_ran = sample.time;
    }

    /// Whether the sample that follows stands for time since the last one, if it ran. If it waited, no CPU time
    /// was measured.
    fn is_followed_by_own_time(&self, meta: &Meta, sample: &Sample, is_first: bool) -> bool {
        if sample.off_cpu {
            return is_first || sample.cpu_delta == 0;
        }
        let ns = span::length(meta, sample, is_first);
        !span::has_overflow(meta, ns, sample.time.saturating_sub(self.last_ran))
    }

    /// The samples in a state.
    pub(crate) fn count(self, state: SampleState) -> Count {
        let mut count = Count::default();
        if state.includes(false) {
            count += self.on_cpu;
        }
        if state.includes(true) {
            count += self.off_cpu;
        }
        count
    }

    /// The time of the last sample on the CPU; 0 before the first.
    pub(crate) fn last_ran(self) -> u64 {
        self.last_ran
    }

    /// The thread's running time between two prefix sums, in ns.
    pub(crate) fn ran_since(self, earlier: Self) -> u64 {
        self.ran_ns.wrapping_sub(earlier.ran_ns)
    }
}

/// The prefix sums of a thread.
#[derive(Debug)]
pub(crate) struct PrefixSums {
    /// Before its first sample and after each [`STEP`] more.
    sums: Vec<PrefixSum>,
    /// Whether each sample on the CPU stands for time since the one before it, and for nothing else.
    has_run_times: bool,
}

impl PrefixSums {
    pub(crate) fn new(profile: &Profile, thread: &Thread) -> Self {
        let mut prefix_sum = PrefixSum::default();
        let (mut sums, mut has_run_times) = (Vec::with_capacity(thread.samples.len() / STEP + 1), true);
        for (position, sample) in thread.samples.iter().enumerate() {
            if position.is_multiple_of(STEP) {
                sums.push(prefix_sum);
            }
            has_run_times &= prefix_sum.is_followed_by_own_time(profile.meta(), &sample, position == 0);
            prefix_sum.add(profile, &sample, position == 0);
        }
        if thread.samples.len().is_multiple_of(STEP) {
            sums.push(prefix_sum);
        }
        Self { sums, has_run_times }
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.sums)
    }

    /// Whether the thread's running time up to any moment follows from the sums.
    pub(crate) fn has_run_times(&self) -> bool {
        self.has_run_times
    }

    /// The number of samples that are not after `time`, and their prefix sum. `block` is the thread's last
    /// prefix sum that is not after it, and `samples` are the samples from there on.
    pub(crate) fn until(
        &self,
        time: u64,
        block: usize,
        samples: impl Iterator<Item = Sample>,
        profile: &Profile,
    ) -> (usize, PrefixSum) {
        let (mut position, mut prefix_sum) = (block * STEP, self.sums[block]);
        for sample in samples.take_while(|sample| sample.time <= time) {
            prefix_sum.add(profile, &sample, position == 0);
            position += 1;
        }
        (position, prefix_sum)
    }

    /// The prefix sum before the sample at `position` of the thread.
    pub(crate) fn before(&self, position: usize, profile: &Profile, thread: &Thread) -> PrefixSum {
        let mut prefix_sum = self.sums[position / STEP];
        let start = position - position % STEP;
        for (position, sample) in (start..).zip(thread.samples.range(start..position)) {
            prefix_sum.add(profile, &sample, position == 0);
        }
        prefix_sum
    }
}
