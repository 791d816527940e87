//! Splits samples of exact times, so that a range of time contains only its part of them.

use crate::profile::Profile;
use crate::sample::Sample;
use crate::samples::Samples;

impl Profile {
    /// Splits in two the samples that stand for time before and after one of `times`, in ns since the
    /// profile's zero. If the parts are no multiples of the interval, it becomes shorter. A profile whose
    /// samples have no [exact times](crate::Meta::has_exact_times) is not changed, because a part of its
    /// samples has no known time. O(samples).
    pub fn split_samples(&mut self, times: &[u64]) {
        if !self.meta.has_exact_times {
            return;
        }
        let old = self.meta.interval;
        let (mut divisor, mut is_split) = (old, false);
        for sample in self.threads.iter().flat_map(|thread| &thread.samples) {
            for &time in times.iter().filter(|&&time| is_within(time, &sample, old)) {
                is_split = true;
                divisor = greatest_common_divisor(divisor, sample.time - time);
            }
        }
        if !is_split {
            return;
        }
        let interval = divisor.max(1);
        for thread in &mut self.threads {
            let parts = thread.samples.iter().flat_map(|sample| parts(sample, times, old, interval));
            thread.samples = parts.collect::<Samples>();
        }
        self.meta.interval = interval;
    }
}

/// Whether a sample stands for time before and after `time`.
fn is_within(time: u64, sample: &Sample, interval: u64) -> bool {
    sample.start(interval) < time && time < sample.time
}

/// The parts of a sample, with weights in units of a new interval.
fn parts(sample: Sample, times: &[u64], old: u64, new: u64) -> impl Iterator<Item = Sample> + use<> {
    let mut ends: Vec<u64> = times.iter().copied().filter(|&time| is_within(time, &sample, old)).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.push(sample.time);
    // The first part gets the rest, because a time before the profile's zero is cut off.
    let later: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let whole = sample.weight.saturating_mul(old);
    let first = whole.saturating_sub(later.iter().sum());
    let lengths = std::iter::once(first).chain(later);
    ends.into_iter().zip(lengths).map(move |(time, length)| {
        let weight = length.saturating_add(new / 2) / new;
        Sample { time, weight, ..sample }
    })
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use crate::{Meta, Process, Profile, ProfileBuilder, Sample, Thread};

    fn profile(interval: u64, has_exact_times: bool, samples: &[(u64, u64)]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta { interval, has_exact_times, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for &(time, weight) in samples {
            builder.add_sample(thread, Sample { weight, ..Sample::new(time, None, 0) });
        }
        builder.finish()
    }

    fn check(interval: u64, samples: &[(u64, u64)], times: &[u64], expected: (u64, &[(u64, u64)])) {
        let mut split = profile(interval, true, samples);
        split.split_samples(times);
        assert_eq!(split, profile(expected.0, true, expected.1));
    }

    #[test]
    fn samples_are_split_at_times() {
        let samples = [(100, 1), (900, 8), (1000, 1)];
        let expected = [(100, 1), (500, 4), (600, 1), (900, 3), (1000, 1)];
        check(100, &samples, &[500, 600], (100, &expected));
        let finer = [(100, 2), (550, 9), (600, 1), (900, 6), (1000, 2)];
        check(100, &samples, &[600, 550, 600], (50, &finer));
        check(100, &samples, &[0, 100, 900, u64::MAX], (100, &samples));
        check(100, &samples, &[], (100, &samples));
    }

    #[test]
    fn great_figures_do_no_harm() {
        let mut split = profile(u64::MAX, true, &[(u64::MAX, u64::MAX), (5, 0)]);
        split.split_samples(&[7, 8]);
        assert_eq!(split.threads()[0].samples.len(), 4);
    }

    #[test]
    fn estimates_are_not_split() {
        let mut whole = profile(100, false, &[(900, 8)]);
        whole.split_samples(&[500]);
        assert_eq!(whole, profile(100, false, &[(900, 8)]));
    }
}
