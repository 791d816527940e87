//! Sums of samples by node, for one thread or for any set of samples.

use crate::amount::Amount;
use crate::index::columns::Column;
use crate::index::derived::DerivedForest;
use crate::index::prefix_sums::Count;
use crate::sample_state::SampleState;

/// The sums of samples: by node, and without a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleSums {
    /// The self amount of each node, then a zero, so that [`running`] sums have an entry for the whole.
    pub(crate) own: Vec<Amount>,
    /// The sum of the samples without a stack.
    pub(crate) stackless: Amount,
}

impl SampleSums {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { own: vec![Amount::default(); nodes + 1], stackless: Amount::default() }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.own.iter_mut().zip(&other.own).for_each(|(own, &amount)| *own += amount);
        self.stackless += other.stackless;
    }

    pub(crate) fn add(&mut self, node: Option<u32>, amount: Amount) {
        match node {
            Some(node) => self.own[node as usize] += amount,
            None => self.stackless += amount,
        }
    }

    pub(crate) fn subtract(&mut self, node: Option<u32>, amount: Amount) {
        let sum = node.map_or(&mut self.stackless, |node| &mut self.own[node as usize]);
        *sum = *sum - amount;
    }

    pub(crate) fn add_thread(&mut self, sums: &ThreadSums) {
        for (&node, &amount) in sums.nodes.iter().zip(&sums.amounts) {
            self.own[node as usize] += amount;
        }
        self.stackless += sums.stackless.amount;
    }
}

/// The sum of all amounts before each, in place of their [`SampleSums::own`].
pub(crate) fn running(mut own: Vec<Amount>) -> Vec<Amount> {
    let mut sum = Amount::default();
    for amount in &mut own {
        let before = sum;
        sum += *amount;
        *amount = before;
    }
    own
}

/// The sums of a thread's samples in one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadSums {
    /// The nodes that have samples, in order.
    nodes: Vec<u32>,
    /// The amounts of these.
    amounts: Vec<Amount>,
    /// The numbers of samples of these.
    samples: Vec<u32>,
    /// The sum of the samples without a stack.
    stackless: Count,
}

impl ThreadSums {
    /// Sums up a thread. `room` has an empty count for each node, and has it again afterwards.
    pub(crate) fn new(column: &Column, state: SampleState, room: &mut [Count]) -> Self {
        let mut sums = Self::default();
        column.go_through(0..column.len(), state, |node, amount| {
            let count = node.map_or(&mut sums.stackless, |node| &mut room[node as usize]);
            if count.samples == 0 {
                sums.nodes.extend(node);
            }
            count.add(amount);
        });
        sums.nodes.sort_unstable();
        sums.nodes.shrink_to_fit();
        let counts = || sums.nodes.iter().map(|&node| node as usize);
        sums.amounts = counts().map(|node| room[node].amount).collect();
        sums.samples = counts().map(|node| room[node].samples as u32).collect();
        counts().for_each(|node| room[node] = Count::default());
        sums
    }

    /// The samples that filters and transforms keep.
    pub(crate) fn left_by(&self, derived: &DerivedForest<'_>) -> Count {
        let mut left = if derived.keeps_stackless { self.stackless } else { Count::default() };
        let counts = self.amounts.iter().zip(&self.samples);
        for (&node, (&amount, &samples)) in self.nodes.iter().zip(counts) {
            if derived.target(node).is_some() {
                left += Count { samples: samples.into(), amount };
            }
        }
        left
    }
}
