//! Plans how to compute the sums of a selection.

use std::ops::Range;

use nyquist_profile::ThreadIndex;

use crate::amount::Amount;
use crate::index::Index;
use crate::index::prefix_sums::Count;
use crate::index::sums::SampleSums;
use crate::parallel;
use crate::sample_state::SampleState;
use crate::selection::selected_samples::SelectedSamples;

/// Fewer samples than this are processed by one CPU.
const SAMPLES_WORTH_SHARING: usize = 200_000;

/// Some of a thread's samples.
type SampleRange = (ThreadIndex, Range<usize>);

/// The parts that a selection's sums are computed from. It reuses sums of the index, so that as few samples
/// as possible are read.
pub(crate) struct SumPlan<'i> {
    index: &'i Index<'i>,
    state: SampleState,
    /// Whether the sums are those of all default threads.
    is_all: bool,
    /// Two checkpoints. The sum of all samples of the default threads between them is used.
    between: Option<(usize, usize)>,
    /// Threads whose sums are used whole.
    whole: Vec<ThreadIndex>,
    /// Samples to add.
    added: Vec<SampleRange>,
    /// Samples to subtract, after all others are added.
    removed: Vec<SampleRange>,
}

impl<'i> SumPlan<'i> {
    /// Plans for samples in one state. O(threads × log samples).
    pub(crate) fn new(index: &'i Index<'i>, chosen: &SelectedSamples<'_>, state: SampleState) -> Self {
        let parts: Vec<_> = chosen.threads.iter().map(|&thread| (thread, chosen.range_of(thread))).collect();
        let mut plan = Self {
            index,
            state,
            is_all: false,
            between: None,
            whole: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
        };
        let is_whole =
            |(thread, range): &SampleRange| range.len() == index.profile.thread(*thread).samples.len();
        let is_default = state == SampleState::OnCpu && index.sums.default_threads == chosen.threads;
        if is_default && parts.iter().all(is_whole) {
            plan.is_all = true;
        } else if is_default {
            plan.take_between_checkpoints(&parts);
        } else {
            let (whole, added) = parts.into_iter().partition::<Vec<_>, _>(is_whole);
            plan.whole = whole.into_iter().map(|(thread, _)| thread).collect();
            plan.added = added;
        }
        plan.added.retain(|(_, range)| !range.is_empty());
        plan.removed.retain(|(_, range)| !range.is_empty());
        plan
    }

    fn take_between_checkpoints(&mut self, parts: &[SampleRange]) {
        let checkpoints = self.index.checkpoints();
        let (starts, ends): (Vec<_>, Vec<_>) =
            parts.iter().map(|(_, range)| (range.start, range.end)).unzip();
        let (first, last) = (checkpoints.nearest(&starts), checkpoints.nearest(&ends));
        if first >= last {
            self.added = parts.to_vec();
            return;
        }
        self.between = Some((first, last));
        let positions = checkpoints.positions(first).iter().zip(checkpoints.positions(last));
        for ((thread, range), (&first, &last)) in parts.iter().zip(positions) {
            self.added.extend([(*thread, range.start..first), (*thread, last..range.end)]);
            self.removed.extend([(*thread, first..range.start), (*thread, range.end..last)]);
        }
    }

    /// Whether the sums are those of all default threads.
    pub(crate) fn is_all(&self) -> bool {
        self.is_all
    }

    /// The sums. O(slots + slots of whole threads + samples read).
    pub(crate) fn sums(&self) -> SampleSums {
        if self.is_all {
            return self.index.sums.all.clone();
        }
        let mut sums = match self.between {
            Some((first, last)) => self.index.checkpoints().between(first, last),
            None => SampleSums::new(self.index.sums.sampled.slots()),
        };
        for &thread in &self.whole {
            let add = |slot, count: Count| sums.add(slot, count.amount);
            self.index.by_thread()[thread.index()].each(self.state, add);
        }
        self.add_parts(&mut sums);
        self.go_through(&self.removed, |slot, amount| sums.subtract(slot, amount));
        sums
    }

    fn add_parts(&self, sums: &mut SampleSums) {
        let slots = self.index.sums.sampled.slots();
        let samples: usize = self.added.iter().map(|(_, range)| range.len()).sum();
        // Several CPUs would each need their own sums of all slots.
        if samples < SAMPLES_WORTH_SHARING.max(2 * slots) {
            self.go_through(&self.added, |slot, amount| sums.add(slot, amount));
            return;
        }
        let pieces = parallel::pieces(self.added.len(), 1, |range| {
            let mut piece = SampleSums::new(slots);
            self.go_through(&self.added[range], |slot, amount| piece.add(slot, amount));
            piece
        });
        for piece in &pieces {
            sums.add_all(piece);
        }
    }

    /// Goes through the samples of some parts.
    fn go_through(&self, parts: &[SampleRange], mut take: impl FnMut(Option<u32>, Amount)) {
        let Index { profile, sums, .. } = self.index;
        for (thread, range) in parts {
            sums.slots.go_through(profile, profile.thread(*thread), range.clone(), self.state, &mut take);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::amount::Amount;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, tree_text, with_view};

    #[test]
    fn samples_that_cpus_share_are_all_summed_once() {
        const COUNT: u64 = 150_000;
        let mut test = TestProfile::new();
        for stack in ["a b", "a c", ""] {
            test.thread("1", stack);
            for _ in 0..COUNT {
                test.sample(stack, 1);
            }
        }
        let profile = test.finish();
        // More and less than half: the code subtracts samples that are not chosen, or adds chosen ones.
        for (end, count) in
            [(COUNT / 2 + 1, COUNT / 2 + 1), (COUNT / 2 - 1, COUNT / 2 - 1), (2 * COUNT, COUNT)]
        {
            let selection = Selection { range: Some(0..end * 1_000_000), ..Selection::default() };
            with_view(&profile, &selection, |view| {
                assert_eq!(view.total().weight, 3 * count);
                let nodes = tree_text(view.call_tree());
                assert_eq!(nodes, format!("a:{},0 .b:{count},{count} .c:{count},{count}", 2 * count));
            });
        }
    }

    #[test]
    fn great_amounts_are_summed() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        for place in 0..4 {
            test.sample("f", 1);
            if place == 2 {
                test.change_last(|sample| (sample.cpu_delta, sample.weight) = (1 << 40, u32::MAX.into()));
            }
        }
        let profile = test.finish();
        for (range, expected) in [
            (1_000_000..3_000_000, Amount { weight: (1 << 32), cpu_ns: (1 << 40) + 1_000_000 }),
            (0..2_000_000, Amount { weight: 2, cpu_ns: 2_000_000 }),
        ] {
            let selection = Selection { range: Some(range), ..Selection::default() };
            with_view(&profile, &selection, |view| assert_eq!(view.total(), expected));
        }
    }
}
