//! Reads samples with the slots of their sums.

use std::ops::Range;

use nyquist_profile::{Profile, StackId, Thread, UntimedSample};

use crate::amount::Amount;
use crate::index::sampled_nodes::SampledNodes;
use crate::sample_state::SampleState;

/// The slot of each stack that has samples.
///
/// Samples are read where the profile has them. A copy with slots in place of stacks would be read a little faster,
/// but takes more memory than all else that an index has.
#[derive(Debug)]
pub(crate) struct StackSlots {
    of_stack: Vec<u32>,
}

impl StackSlots {
    /// O(stacks).
    pub(crate) fn new(node_of_stack: &[u32], sampled: &SampledNodes) -> Self {
        let slot = |&node: &u32| sampled.slots_before(node) as u32;
        Self { of_stack: node_of_stack.iter().map(slot).collect() }
    }

    /// The slot of a stack that has samples.
    pub(crate) fn of(&self, stack: StackId) -> u32 {
        self.of_stack[stack.index()]
    }

    /// Goes through some of a thread's samples, those in one state (or both).
    pub(crate) fn go_through(
        &self,
        profile: &Profile,
        thread: &Thread,
        range: Range<usize>,
        state: SampleState,
        mut take: impl FnMut(Option<u32>, Amount),
    ) {
        each_amount(profile, thread, range, |sample, amount| {
            if state.includes(sample.off_cpu) {
                take(sample.stack.map(|stack| self.of(stack)), amount);
            }
        });
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.of_stack)
    }
}

/// Goes through some of a thread's samples.
pub(crate) fn each_amount(
    profile: &Profile,
    thread: &Thread,
    range: Range<usize>,
    mut take: impl FnMut(UntimedSample, Amount),
) {
    let first = range.start..range.end.min(1);
    thread.samples.each_untimed(first.clone(), |sample| {
        take(sample, Amount::of_sample(profile, &sample, true));
    });
    thread.samples.each_untimed(range.start.max(first.end)..range.end, |sample| {
        take(sample, Amount::of_sample(profile, &sample, false));
    });
}
