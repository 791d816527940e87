//! The CPU time of all threads together up to some moments. The time of a range is the difference of two
//! moments, corrected by the few samples between these and the range's ends.

use nyquist_profile::{Profile, Samples, ThreadIndex};

use crate::index::indexed_sums::IndexedSums;
use crate::index::sums::SampleSums;
use crate::parallel;
use crate::sample_state::SampleState;

/// At most this many moments are between the first checkpoint and the last, because each takes 16 bytes for each slot.
const MAX_MOMENTS: usize = 8;

/// At least this many times are examined to find each moment.
const TIMES_A_MOMENT: usize = 128;

/// The checkpoints of a profile, in the order of time: the first before all samples, the last after all.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    in_order: Vec<Checkpoint>,
}

/// A moment.
#[derive(Debug)]
struct Checkpoint {
    /// The number of samples of each thread before it.
    positions: Vec<usize>,
    /// The sums of these samples.
    sums: SampleSums,
}

impl Checkpoints {
    /// Sums up the samples of the default threads. O(samples).
    pub(crate) fn new(profile: &Profile, sums: &IndexedSums) -> Self {
        let (threads, slots) = (&sums.default_threads, sums.sampled.slots());
        let positions = |time: u64| {
            let samples = threads.iter().map(|&thread| &profile.thread(thread).samples);
            samples.map(|samples| samples.count_before(time)).collect()
        };
        let mut starts = vec![vec![0; threads.len()]];
        starts.extend(moments(profile, threads, slots).into_iter().map(positions));
        starts.push(threads.iter().map(|&thread| profile.thread(thread).samples.len()).collect());
        let between: Vec<_> = starts.windows(2).collect();
        let mut pieces = parallel::map(&between, 1, |pair| {
            let mut piece = SampleSums::new(slots);
            for (&thread, (&start, &end)) in threads.iter().zip(pair[0].iter().zip(&pair[1])) {
                let (thread, add) = (profile.thread(thread), |slot, amount| piece.add(slot, amount));
                sums.slots.go_through(profile, thread, start..end, SampleState::OnCpu, add);
            }
            Checkpoint { positions: pair[1].clone(), sums: piece }
        });
        pieces.insert(0, Checkpoint { positions: starts.swap_remove(0), sums: SampleSums::new(slots) });
        for later in 1..pieces.len() {
            let (before, after) = pieces.split_at_mut(later);
            after[0].sums.add_all(&before[later - 1].sums);
        }
        Self { in_order: pieces }
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |one: &Checkpoint| size_of_val(&*one.positions) + one.sums.bytes();
        self.in_order.iter().map(bytes).sum()
    }

    /// The number of samples of each thread before a checkpoint.
    pub(crate) fn positions(&self, checkpoint: usize) -> &[usize] {
        &self.in_order[checkpoint].positions
    }

    /// The checkpoint with the fewest samples between it and these positions.
    pub(crate) fn nearest(&self, positions: &[usize]) -> usize {
        let distance = |&checkpoint: &usize| -> usize {
            let pairs = self.positions(checkpoint).iter().zip(positions);
            pairs.map(|(&there, &here)| there.abs_diff(here)).sum()
        };
        (0..self.in_order.len()).min_by_key(distance).unwrap_or_default()
    }

    /// The sums of the samples between two checkpoints.
    pub(crate) fn between(&self, start: usize, end: usize) -> SampleSums {
        let (start, end) = (&self.in_order[start].sums, &self.in_order[end].sums);
        let own = start.own.iter().zip(&end.own).map(|(&start, &end)| end - start).collect();
        SampleSums { own, stackless: end.stackless - start.stackless }
    }
}

/// Moments with about the same number of samples between them. There are at least as many samples between two
/// moments as there are slots, because taking a difference goes through all slots.
fn moments(profile: &Profile, threads: &[ThreadIndex], slots: usize) -> Vec<u64> {
    let samples = || threads.iter().map(|&thread| &profile.thread(thread).samples);
    let total: usize = samples().map(Samples::len).sum();
    let count = (total / slots.max(1)).saturating_sub(1).min(MAX_MOMENTS);
    let step = (total / (TIMES_A_MOMENT * (count + 1))).max(1);
    let mut times: Vec<_> = samples().flat_map(|samples| samples.iter().step_by(step)).collect();
    times.sort_unstable_by_key(|sample| sample.time);
    let mut moments: Vec<_> =
        (1..=count).map(|number| times[times.len() * number / (count + 1)].time).collect();
    moments.dedup();
    moments
}
