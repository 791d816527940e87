//! Samples in little room: going through part of the time reads as few bytes as possible.

use nyquist_profile::{Profile, Sample, Thread};

use crate::amount::Amount;
use crate::forest::NONE;
use crate::selection::SampleState;

/// The bit of a weight that says that the thread waited.
const OFF_CPU: u32 = 1 << 31;

/// A sample in 12 bytes instead of 32; its time is that of the profile's sample of the same number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactSample {
    /// Its node, [`NONE`] without a stack.
    node: u32,
    /// Its weight and whether it is [`OFF_CPU`].
    weight: u32,
    cpu_ns: u32,
}

impl CompactSample {
    /// `None` if its figures are too great.
    fn new(sample: &Sample, amount: Amount, node_of_stack: &[u32]) -> Option<Self> {
        let weight = u32::try_from(amount.weight).ok().filter(|weight| weight & OFF_CPU == 0)?;
        Some(Self {
            node: sample.stack.map_or(NONE, |stack| node_of_stack[stack.index()]),
            weight: if sample.off_cpu { weight | OFF_CPU } else { weight },
            cpu_ns: amount.cpu_ns.try_into().ok()?,
        })
    }

    pub(crate) fn node(self) -> Option<u32> {
        Some(self.node).filter(|&node| node != NONE)
    }

    pub(crate) fn amount(self) -> Amount {
        Amount { weight: (self.weight & !OFF_CPU).into(), cpu_ns: self.cpu_ns.into() }
    }

    pub(crate) fn is_in(self, state: SampleState) -> bool {
        match state {
            SampleState::OnCpu => self.weight & OFF_CPU == 0,
            SampleState::OffCpu => self.weight & OFF_CPU != 0,
            SampleState::Both => true,
        }
    }
}

/// A thread's samples, in its order; `None` if the figures of one are too great.
pub(crate) fn of_thread(
    profile: &Profile,
    thread: &Thread,
    node_of_stack: &[u32],
) -> Option<Vec<CompactSample>> {
    let samples = thread.samples.iter().enumerate();
    let compact = samples.map(|(position, sample)| {
        CompactSample::new(sample, Amount::of_sample(profile, sample, position == 0), node_of_stack)
    });
    compact.collect()
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Sample, StackId};

    use super::*;

    #[test]
    fn a_compact_sample_is_the_sample() {
        let check = |off_cpu, weight: u32, cpu_delta, stack: Option<usize>, is_small: bool| {
            let stack = stack.map(StackId::from_index);
            let sample = Sample { time: 0, cpu_delta, stack, weight, off_cpu };
            let amount = Amount { weight: weight.into(), cpu_ns: cpu_delta };
            let compact = CompactSample::new(&sample, amount, &[7, 8]);
            assert_eq!(compact.is_some(), is_small, "{sample:?}");
            if let Some(compact) = compact {
                assert_eq!(
                    (compact.amount(), compact.node()),
                    (amount, stack.map(|stack| stack.index() as u32 + 7))
                );
                for state in [SampleState::OnCpu, SampleState::OffCpu, SampleState::Both] {
                    assert_eq!(compact.is_in(state), state.accepts(&sample));
                }
            }
        };
        check(false, 1, 1_000_000, Some(1), true);
        check(true, 77, 0, None, true);
        check(false, u32::MAX >> 1, u32::MAX.into(), Some(0), true);
        check(false, 1 << 31, 0, None, false);
        check(true, 1, 1 << 32, None, false);
    }
}
