//! The samples of all threads of a profile, summed up once in the forms that questions need.

use nyquist_profile::{Profile, ThreadIndex};

use crate::amount::Amount;
use crate::checkpoints::Checkpoints;
use crate::columns::Column;
use crate::parallel;
use crate::prefix_sums::{Count, Tallies};
use crate::selection::{SampleState, Selection};
use crate::sums::{self, Sums, ThreadSums};

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
        let running = sums::running(all.own.clone());
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
