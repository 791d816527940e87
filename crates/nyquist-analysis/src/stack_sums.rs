//! Sums over samples, by stack: the one pass over the samples that every question begins with.

use std::ops::AddAssign;

use nyquist_profile::{Profile, Sample, Thread};
use serde::Serialize;

/// How much of the profile something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Amount {
    /// The number of sampling intervals.
    pub weight: u64,
    /// The CPU time in ns; 0 where the profile has no CPU deltas.
    pub cpu_ns: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }
}

/// The samples of some threads, summed by their stacks.
pub(crate) struct StackSums {
    /// What the samples at each stack sum to, by the index of the stack.
    pub(crate) by_stack: Vec<Amount>,
    /// What the samples without a stack sum to.
    pub(crate) without_stack: Amount,
    /// The number of samples.
    pub(crate) samples: u64,
}

impl StackSums {
    /// Sums the samples of `threads`. O(samples + stacks).
    pub(crate) fn new<'a>(profile: &Profile, threads: impl Iterator<Item = &'a Thread>) -> Self {
        let mut sums = Self {
            by_stack: vec![Amount::default(); profile.stacks().len()],
            without_stack: Amount::default(),
            samples: 0,
        };
        for thread in threads {
            sums.samples += thread.samples.len() as u64;
            for (index, sample) in thread.samples.iter().enumerate().filter(|(_, sample)| !sample.off_cpu) {
                let amount = amount(profile, sample, index == 0);
                match sample.stack {
                    Some(stack) => sums.by_stack[stack.index()] += amount,
                    None => sums.without_stack += amount,
                }
            }
        }
        sums
    }

    /// What all samples sum to.
    pub(crate) fn total(&self) -> Amount {
        let mut total = self.without_stack;
        self.by_stack.iter().for_each(|&amount| total += amount);
        total
    }
}

/// A thread's first CPU delta has no meaning: there is no sample before it.
fn amount(profile: &Profile, sample: &Sample, is_first: bool) -> Amount {
    let cpu_ns = if is_first || !profile.meta().has_cpu_deltas { 0 } else { sample.cpu_delta };
    Amount { weight: sample.weight.into(), cpu_ns }
}

/// Adds to each stack what its descendants have: the amounts become totals. Parents precede children, so one
/// pass from the end is enough.
pub(crate) fn add_descendants(profile: &Profile, amounts: &mut [Amount]) {
    for (index, stack) in profile.stacks().iter().enumerate().rev() {
        if let Some(prefix) = stack.prefix {
            let amount = amounts[index];
            amounts[prefix.index()] += amount;
        }
    }
}
