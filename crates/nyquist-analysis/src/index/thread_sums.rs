//! The sums of each thread, on the CPU and off it, in eight to ten bytes a slot.

use nyquist_profile::Profile;

use crate::amount::Amount;
use crate::index::prefix_sums::Count;
use crate::index::sampled_nodes::SampledNodes;
use crate::index::stack_slots::StackSlots;
use crate::parallel;
use crate::sample_state::SampleState;

/// The sums of a thread.
#[derive(Debug)]
pub(crate) struct ThreadSums {
    on_cpu: StateSums,
    off_cpu: StateSums,
}

impl ThreadSums {
    /// Sums up the samples of all threads. O(samples × log samples).
    pub(crate) fn of_all(profile: &Profile, slots: &StackSlots, sampled: &SampledNodes) -> Vec<Self> {
        let threads = profile.threads();
        let pieces = parallel::pieces(threads.len(), 1, |range| {
            let mut room = vec![Count::default(); sampled.slots()];
            let sum_up = |thread| {
                let mut sums = |state| StateSums::new(profile, thread, slots, state, &mut room);
                Self { on_cpu: sums(SampleState::OnCpu), off_cpu: sums(SampleState::OffCpu) }
            };
            threads[range].iter().map(sum_up).collect::<Vec<_>>()
        });
        pieces.into_iter().flatten().collect()
    }

    /// Goes through the sums in one state, or in both, by slot; `None` is that of samples without a stack.
    pub(crate) fn each(&self, state: SampleState, mut take: impl FnMut(Option<u32>, Count)) {
        let parts = [(&self.on_cpu, false), (&self.off_cpu, true)];
        for (sums, _) in parts.into_iter().filter(|(_, off_cpu)| state.includes(*off_cpu)) {
            take(None, sums.stackless);
            match &sums.by_slot {
                SlotCounts::Compact(counts) => {
                    counts.iter().for_each(|(slot, count)| take(Some(slot), count));
                }
                SlotCounts::Wide(counts) => counts.iter().for_each(|&(slot, count)| take(Some(slot), count)),
            }
        }
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.on_cpu.by_slot.bytes() + self.off_cpu.by_slot.bytes()
    }
}

/// The sums of a thread's samples in one state.
#[derive(Debug)]
struct StateSums {
    by_slot: SlotCounts,
    /// The sum of the samples without a stack.
    stackless: Count,
}

impl StateSums {
    /// Sums up a thread. `room` has an empty count for each slot, and has it again afterwards.
    fn new(
        profile: &Profile,
        thread: &nyquist_profile::Thread,
        slots: &StackSlots,
        state: SampleState,
        room: &mut [Count],
    ) -> Self {
        let (mut used, mut stackless) = (Vec::new(), Count::default());
        slots.go_through(profile, thread, 0..thread.samples.len(), state, |slot, amount| {
            let count = slot.map_or(&mut stackless, |slot| &mut room[slot as usize]);
            if count.samples == 0 {
                used.extend(slot);
            }
            count.add(amount);
        });
        used.sort_unstable();
        let sums: &[Count] = room;
        let counts = || used.iter().map(move |&slot| (slot, sums[slot as usize]));
        let by_slot = match CompactCounts::new(counts) {
            Some(compact) => SlotCounts::Compact(compact),
            None => SlotCounts::Wide(counts().collect()),
        };
        for slot in used {
            room[slot as usize] = Count::default();
        }
        Self { by_slot, stackless }
    }
}

/// Counts by slot, in the order of the slots.
#[derive(Debug)]
enum SlotCounts {
    Compact(CompactCounts),
    /// Used if a figure is too great for the compact form.
    Wide(Vec<(u32, Count)>),
}

impl SlotCounts {
    fn bytes(&self) -> usize {
        match self {
            Self::Compact(CompactCounts { gaps, cpu_ns, weights, samples }) => {
                size_of_val(&**gaps)
                    + size_of_val(&**cpu_ns)
                    + size_of_val(&**weights)
                    + size_of_val(&**samples)
            }
            Self::Wide(counts) => size_of_val(&**counts),
        }
    }
}

/// Counts whose figures are small.
#[derive(Debug)]
struct CompactCounts {
    /// From the slot before, from 0 for the first.
    gaps: Box<[u16]>,
    cpu_ns: Box<[u32]>,
    weights: Box<[u16]>,
    /// The numbers of samples; empty if they are the weights.
    samples: Box<[u16]>,
}

impl CompactCounts {
    /// `None` if a figure is too great.
    fn new<I: Iterator<Item = (u32, Count)>>(counts: impl Fn() -> I) -> Option<Self> {
        let small = |figure: u64| u16::try_from(figure).ok();
        let mut last = 0;
        let gap = |(slot, _): (u32, Count)| small((slot - std::mem::replace(&mut last, slot)).into());
        let gaps = counts().map(gap).collect::<Option<_>>()?;
        let cpu_ns = |(_, count): (u32, Count)| u32::try_from(count.amount.cpu_ns).ok();
        let cpu_ns = counts().map(cpu_ns).collect::<Option<_>>()?;
        let weights = counts().map(|(_, count)| small(count.amount.weight)).collect::<Option<_>>()?;
        let samples = if counts().all(|(_, count)| count.samples == count.amount.weight) {
            Box::default()
        } else {
            counts().map(|(_, count)| small(count.samples)).collect::<Option<_>>()?
        };
        Some(Self { gaps, cpu_ns, weights, samples })
    }

    fn iter(&self) -> impl Iterator<Item = (u32, Count)> {
        let samples = if self.samples.is_empty() { &self.weights } else { &self.samples };
        let figures = self.cpu_ns.iter().zip(self.weights.iter().zip(samples));
        let mut slot = 0;
        self.gaps.iter().zip(figures).map(move |(&gap, (&cpu_ns, (&weight, &samples)))| {
            slot += u32::from(gap);
            let amount = Amount { weight: weight.into(), cpu_ns: cpu_ns.into() };
            (slot, Count { samples: samples.into(), amount })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_counts_are_the_counts() {
        let count = |samples, weight, cpu_ns| Count { samples, amount: Amount { weight, cpu_ns } };
        let check = |counts: &[(u32, Count)], expected: Option<usize>| {
            let compact = CompactCounts::new(|| counts.iter().copied());
            assert_eq!(compact.as_ref().map(|it| it.samples.len()), expected, "{counts:?}");
            if let Some(compact) = compact {
                assert_eq!(compact.iter().collect::<Vec<_>>(), counts);
            }
        };
        check(&[], Some(0));
        check(&[(0, count(2, 2, 9)), (65_535, count(1, 1, u32::MAX.into()))], Some(0));
        check(&[(7, count(2, 3, 9)), (9, count(1, 1, 0))], Some(2));
        check(&[(0, count(1, 65_536, 9))], None);
        check(&[(65_536, count(1, 1, 9))], None);
        check(&[(3, count(1, 1, 1 << 32))], None);
        check(&[(3, count(65_536, 1, 1))], None);
    }
}
