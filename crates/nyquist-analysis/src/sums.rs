//! Sums of samples by node: of each thread, and of all together.

use nyquist_profile::{Profile, ThreadIndex};

use crate::amount::Amount;
use crate::checkpoints::Checkpoints;
use crate::columns::Column;
use crate::derived::Derived;
use crate::parallel;
use crate::prefix_sums::{Count, Tallies};
use crate::selection::{SampleState, Selection};

/// What samples sum to: by node, and without a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// What each node has itself; then one that is zero, so that [`running`] sums have room for that of all.
    pub(crate) own: Vec<Amount>,
    /// What the samples without a stack have.
    pub(crate) stackless: Amount,
}

impl Sums {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { own: vec![Amount::default(); nodes + 1], stackless: Amount::default() }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.own.iter_mut().zip(&other.own).for_each(|(own, &amount)| *own += amount);
        self.stackless += other.stackless;
    }

    /// What is here and not in `other`, which has no more.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let own = self.own.iter().zip(&other.own).map(|(&own, &amount)| own - amount).collect();
        Self { own, stackless: self.stackless - other.stackless }
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

/// The sum of all amounts before each, in the place of their [`Sums::own`].
pub(crate) fn running(mut own: Vec<Amount>) -> Vec<Amount> {
    let mut sum = Amount::default();
    for amount in &mut own {
        let before = sum;
        sum += *amount;
        *amount = before;
    }
    own
}

/// What the samples of a thread sum to, in one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadSums {
    /// The nodes that have samples, in order.
    nodes: Vec<u32>,
    /// What each of these has.
    amounts: Vec<Amount>,
    /// How many samples each of these has.
    samples: Vec<u32>,
    /// What the samples without a stack have.
    stackless: Count,
}

impl ThreadSums {
    /// Sums up a thread. `room` has an empty count for each node, and has it again afterwards.
    fn new(column: &Column, samples: usize, state: SampleState, room: &mut [Count]) -> Self {
        let mut sums = Self::default();
        column.go_through(0..samples, state, |node, amount| {
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

    /// The samples that filters and transforms leave.
    pub(crate) fn left_by(&self, derived: &Derived<'_>) -> Count {
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

/// The samples of all threads, in the forms that questions need.
#[derive(Debug)]
pub(crate) struct IndexedSums {
    pub(crate) columns: Vec<Column>,
    pub(crate) tallies: Vec<Tallies>,
    on_cpu: Vec<ThreadSums>,
    off_cpu: Vec<ThreadSums>,
    pub(crate) checkpoints: Checkpoints,
    /// The running sums of all that is in them.
    pub(crate) running: Vec<Amount>,
}

impl IndexedSums {
    /// Sums up a profile. O(samples).
    pub(crate) fn new(profile: &Profile, node_of_stack: &[u32]) -> Self {
        let nodes = node_of_stack.len();
        let threads = profile.threads();
        let columns = parallel::map(threads, 1, |thread| Column::new(profile, thread, node_of_stack));
        let tallies = parallel::map(threads, 1, |thread| Tallies::new(profile, thread));
        let of_state = |state: SampleState| {
            let pieces = parallel::pieces(threads.len(), 1, |range| {
                let mut room = vec![Count::default(); nodes];
                let samples = threads[range.clone()].iter().map(|thread| thread.samples.len());
                let columns = columns[range].iter().zip(samples);
                columns
                    .map(|(column, samples)| ThreadSums::new(column, samples, state, &mut room))
                    .collect::<Vec<_>>()
            });
            pieces.into_iter().flatten().collect::<Vec<_>>()
        };
        let (on_cpu, off_cpu) = (of_state(SampleState::OnCpu), of_state(SampleState::OffCpu));
        let usual: Vec<_> = Selection::default().select_threads(profile).map(|(id, _)| id).collect();
        let mut all = Sums::new(nodes);
        for thread in &usual {
            all.add_thread(&on_cpu[thread.index()]);
        }
        let running = running(all.own.clone());
        let checkpoints = Checkpoints::new(profile, usual, &columns, all);
        Self { columns, tallies, on_cpu, off_cpu, checkpoints, running }
    }

    /// The sums of a thread in one state, or in both.
    pub(crate) fn of_thread(
        &self,
        thread: ThreadIndex,
        state: SampleState,
    ) -> impl Iterator<Item = &ThreadSums> {
        let on_cpu = self.on_cpu.get(thread.index()).filter(|_| state.includes(false));
        let off_cpu = self.off_cpu.get(thread.index()).filter(|_| state.includes(true));
        on_cpu.into_iter().chain(off_cpu)
    }
}
