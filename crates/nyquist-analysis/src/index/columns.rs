//! Samples in compact columns, so that reading a part of the time touches as few bytes as possible.

use std::ops::Range;

use nyquist_profile::{Profile, Sample, Thread};

use crate::amount::Amount;
use crate::index::forest::NONE;
use crate::sample_state::SampleState;

/// A thread's samples in its order, with the nodes that they are at before filters and transforms. Their
/// times are those of the profile's samples.
#[derive(Debug)]
pub(crate) enum Column {
    Compact(Vec<CompactSample>),
    /// Used if a figure of a sample is too great for the compact form.
    Wide(Vec<WideSample>),
}

impl Column {
    pub(crate) fn new(profile: &Profile, thread: &Thread, node_of_stack: &[u32]) -> Self {
        let samples = || samples_with_nodes(profile, thread, node_of_stack);
        match samples().map(CompactSample::new).collect() {
            Some(compact) => Self::Compact(compact),
            None => Self::Wide(samples().collect()),
        }
    }

    /// How many samples there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Compact(samples) => samples.len(),
            Self::Wide(samples) => samples.len(),
        }
    }

    /// Goes through some of the samples, those in one state (or both).
    pub(crate) fn go_through(
        &self,
        range: Range<usize>,
        state: SampleState,
        mut take: impl FnMut(Option<u32>, Amount),
    ) {
        match self {
            Self::Compact(samples) => {
                for sample in samples[range].iter().filter(|sample| sample.is_in(state)) {
                    take(sample.node(), sample.amount());
                }
            }
            Self::Wide(samples) => {
                for sample in samples[range].iter().filter(|sample| state.includes(sample.off_cpu)) {
                    take(sample.node, sample.amount);
                }
            }
        }
    }
}

/// A thread's samples in its order, with their nodes.
pub(crate) fn samples_with_nodes<'a>(
    profile: &'a Profile,
    thread: &'a Thread,
    node_of_stack: &'a [u32],
) -> impl Iterator<Item = WideSample> + 'a {
    let samples = thread.samples.iter().enumerate();
    samples.map(move |(position, sample)| WideSample::new(profile, &sample, position == 0, node_of_stack))
}

/// A sample of any figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideSample {
    pub(crate) node: Option<u32>,
    pub(crate) amount: Amount,
    pub(crate) off_cpu: bool,
}

impl WideSample {
    fn new(profile: &Profile, sample: &Sample, is_first: bool, node_of_stack: &[u32]) -> Self {
        Self {
            node: sample.stack.map(|stack| node_of_stack[stack.index()]),
            amount: Amount::of_sample(profile, sample, is_first),
            off_cpu: sample.off_cpu,
        }
    }
}

/// The bit of a weight which records that the thread waited.
const OFF_CPU: u32 = 1 << 31;

/// A sample in 12 bytes, with its node instead of its stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactSample {
    /// Its node; [`NONE`] without a stack.
    node: u32,
    /// Its weight and whether it is [`OFF_CPU`].
    weight: u32,
    cpu_ns: u32,
}

impl CompactSample {
    /// `None` if its figures are too great.
    fn new(sample: WideSample) -> Option<Self> {
        let weight = u32::try_from(sample.amount.weight).ok().filter(|weight| weight & OFF_CPU == 0)?;
        Some(Self {
            node: sample.node.unwrap_or(NONE),
            weight: if sample.off_cpu { weight | OFF_CPU } else { weight },
            cpu_ns: sample.amount.cpu_ns.try_into().ok()?,
        })
    }

    fn node(self) -> Option<u32> {
        Some(self.node).filter(|&node| node != NONE)
    }

    fn amount(self) -> Amount {
        Amount { weight: (self.weight & !OFF_CPU).into(), cpu_ns: self.cpu_ns.into() }
    }

    fn is_in(self, state: SampleState) -> bool {
        state.includes(self.weight & OFF_CPU != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_sample_is_the_sample() {
        let check = |off_cpu, weight: u64, cpu_ns, node: Option<u32>, is_small: bool| {
            let sample = WideSample { node, amount: Amount { weight, cpu_ns }, off_cpu };
            let compact = CompactSample::new(sample);
            assert_eq!(compact.is_some(), is_small, "{sample:?}");
            if let Some(compact) = compact {
                assert_eq!((compact.amount(), compact.node()), (sample.amount, node));
                for state in [SampleState::OnCpu, SampleState::OffCpu, SampleState::Both] {
                    assert_eq!(compact.is_in(state), state.includes(off_cpu));
                }
            }
        };
        check(false, 1, 1_000_000, Some(8), true);
        check(true, 77, 0, None, true);
        check(false, (u32::MAX >> 1).into(), u32::MAX.into(), Some(7), true);
        check(false, 1 << 31, 0, None, false);
        check(true, 1, 1 << 32, None, false);
    }
}
