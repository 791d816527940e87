//! Sums of all samples, by node and by thread, computed when the index is built.

use std::ops::Range;

use nyquist_profile::{Profile, ThreadIndex};

use crate::amount::Amount;
use crate::index::cpu_threads::program_threads;
use crate::index::prefix_sums::Count;
use crate::index::sampled_nodes::SampledNodes;
use crate::index::stack_slots::{StackSlots, each_amount};
use crate::index::sums::{self, SampleSums};
use crate::parallel;
use crate::sample_state::SampleState;

/// What all samples sum to.
#[derive(Debug)]
pub(crate) struct IndexedSums {
    /// The nodes that have samples.
    pub(crate) sampled: SampledNodes,
    pub(crate) slots: StackSlots,
    /// The threads of a selection that names no threads.
    pub(crate) default_threads: Vec<ThreadIndex>,
    /// The sums of their samples on the CPU.
    pub(crate) all: SampleSums,
    /// The running sums of these.
    pub(crate) running: Vec<Amount>,
    /// The samples of each thread.
    by_thread: Vec<ThreadCounts>,
}

/// The samples of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadCounts {
    on_cpu: Count,
    off_cpu: Count,
}

/// The sums of some threads.
struct ThreadPiece {
    /// Those of the default threads on the CPU, by stack.
    by_stack: SampleSums,
    /// Whether each stack has samples.
    is_sampled: Vec<bool>,
    counts: Vec<ThreadCounts>,
}

impl ThreadPiece {
    /// O(stacks + samples).
    fn new(profile: &Profile, threads: Range<usize>, is_default: &[bool]) -> Self {
        let stacks = profile.stacks().len();
        let (mut by_stack, mut is_sampled) = (SampleSums::new(stacks), vec![false; stacks]);
        let mut count = |number: usize| {
            let (thread, mut counts) = (&profile.threads()[number], ThreadCounts::default());
            each_amount(profile, thread, 0..thread.samples.len(), |sample, amount| {
                if let Some(stack) = sample.stack {
                    is_sampled[stack.index()] = true;
                }
                if sample.off_cpu {
                    counts.off_cpu.add(amount);
                    return;
                }
                counts.on_cpu.add(amount);
                if is_default[number] {
                    by_stack.add(sample.stack.map(|stack| stack.index() as u32), amount);
                }
            });
            counts
        };
        let counts = threads.map(&mut count).collect();
        Self { by_stack, is_sampled, counts }
    }

    fn add(&mut self, other: &Self) {
        self.by_stack.add_all(&other.by_stack);
        self.is_sampled
            .iter_mut()
            .zip(&other.is_sampled)
            .for_each(|(is_sampled, &other)| *is_sampled |= other);
        self.counts.extend(&other.counts);
    }
}

impl IndexedSums {
    /// Sums up a profile. O(stacks + samples).
    pub(crate) fn new(profile: &Profile, node_of_stack: &[u32]) -> Self {
        let threads = profile.threads();
        let default_threads: Vec<_> = program_threads(profile).collect();
        let mut is_default = vec![false; threads.len()];
        for thread in &default_threads {
            is_default[thread.index()] = true;
        }
        let pieces =
            parallel::pieces(threads.len(), 1, |range| ThreadPiece::new(profile, range, &is_default));
        let whole = pieces.into_iter().reduce(|mut whole, piece| {
            whole.add(&piece);
            whole
        });
        let whole = whole.unwrap_or_else(|| ThreadPiece::new(profile, 0..0, &is_default));
        let mut is_sampled = vec![false; node_of_stack.len()];
        for (&node, &of_stack) in node_of_stack.iter().zip(&whole.is_sampled) {
            is_sampled[node as usize] = of_stack;
        }
        let sampled = SampledNodes::new(&is_sampled);
        let slots = StackSlots::new(node_of_stack, &sampled);
        let mut all = SampleSums { stackless: whole.by_stack.stackless, ..SampleSums::new(sampled.slots()) };
        for ((&node, &amount), _) in node_of_stack
            .iter()
            .zip(&whole.by_stack.own)
            .zip(&whole.is_sampled)
            .filter(|(_, is_sampled)| **is_sampled)
        {
            all.own[sampled.slots_before(node)] = amount;
        }
        let running = sums::running(all.own.clone());
        Self { sampled, slots, default_threads, all, running, by_thread: whole.counts }
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        let by_thread = size_of_val(&*self.by_thread) + size_of_val(&*self.default_threads);
        self.sampled.bytes() + self.slots.bytes() + self.all.bytes() + size_of_val(&*self.running) + by_thread
    }

    /// All samples of a thread in one state, or in both.
    pub(crate) fn count(&self, thread: ThreadIndex, state: SampleState) -> Count {
        let ThreadCounts { on_cpu, off_cpu } = self.by_thread[thread.index()];
        let mut count = Count::default();
        if state.includes(false) {
            count += on_cpu;
        }
        if state.includes(true) {
            count += off_cpu;
        }
        count
    }
}
