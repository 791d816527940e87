//! Condensing: only the sums of old samples are kept, so that a recording of days fits into memory.

use nyquist_profile::{CounterId, ProfileBuilder, Samples, StackId, ThreadIndex};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Makes one sample of all samples of a thread before `before` (nanoseconds since the profile's zero) that
/// have the same stack, at the time of the first of them. Markers that begin before it and the values of
/// counters are dropped. Linear in the number of samples.
pub(crate) fn samples_before(builder: &mut ProfileBuilder, before: u64) {
    for index in 0..builder.profile().threads().len() {
        let thread = builder.thread_mut(ThreadIndex::from_index(index));
        condense(&mut thread.samples, before);
        thread.markers.retain(|marker| marker.timing.first() >= before);
    }
    for index in 0..builder.profile().counters().len() {
        builder.counter_mut(CounterId::from_index(index)).samples.retain(|sample| sample.time >= before);
    }
}

fn condense(samples: &mut Samples, before: u64) {
    let old = samples.count_before(before);
    // The CPU time of a thread's first sample has no meaning, so the sample must not be merged with others.
    let first = old.min(1);
    let mut retained: Vec<_> = samples.range(0..first).collect();
    let mut places: FxHashMap<(Option<StackId>, bool), usize> = FxHashMap::default();
    for sample in samples.range(first..old) {
        let mut place = places.entry((sample.stack, sample.off_cpu));
        if let Entry::Occupied(entry) = &mut place
            && let sum = &mut retained[*entry.get()]
            && let Some(weight) = sum.weight.checked_add(sample.weight)
        {
            sum.weight = weight;
            sum.cpu_delta = sum.cpu_delta.saturating_add(sample.cpu_delta);
            continue;
        }
        place.insert_entry(retained.len());
        retained.push(sample);
    }
    *samples = retained.into_iter().chain(samples.range(old..samples.len())).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::Sample;

    fn sample(time: u64, stack: usize, weight: u64, off_cpu: bool) -> Sample {
        let stack = Some(StackId::from_index(stack));
        Sample { time, cpu_delta: weight.saturating_mul(10), stack, weight, off_cpu }
    }

    fn check(samples: &[(u64, usize, u64, bool)], before: u64, expected: &[(u64, usize, u64, bool)]) {
        let mut samples: Samples =
            samples.iter().map(|&(time, stack, weight, off)| sample(time, stack, weight, off)).collect();
        condense(&mut samples, before);
        let expected: Samples =
            expected.iter().map(|&(time, stack, weight, off)| sample(time, stack, weight, off)).collect();
        assert_eq!(samples, expected);
    }

    #[test]
    fn old_samples_of_a_stack_become_one() {
        let all = [(1, 0, 1, false), (2, 7, 1, false), (3, 8, 2, false), (4, 7, 4, false), (5, 7, 8, false)];
        check(&all, 5, &[(1, 0, 1, false), (2, 7, 5, false), (3, 8, 2, false), (5, 7, 8, false)]);
        check(&all, 0, &all);
        check(&all, 9, &[(1, 0, 1, false), (2, 7, 13, false), (3, 8, 2, false)]);
        check(&[], 9, &[]);
    }

    #[test]
    fn waiting_stays_apart_from_running() {
        let all = [(1, 0, 1, false), (2, 7, 1, false), (3, 7, 2, true), (4, 7, 4, true)];
        check(&all, 9, &[(1, 0, 1, false), (2, 7, 1, false), (3, 7, 6, true)]);
    }

    #[test]
    fn a_sum_too_great_for_a_weight_becomes_two() {
        let all = [(1, 0, 1, false), (2, 7, u64::MAX, false), (3, 7, 2, false), (4, 7, 4, false)];
        check(&all, 9, &[(1, 0, 1, false), (2, 7, u64::MAX, false), (3, 7, 6, false)]);
    }
}
