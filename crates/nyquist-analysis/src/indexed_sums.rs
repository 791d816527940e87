//! The samples of all threads of a profile, summed up once by thread and node.

use nyquist_profile::{Profile, ThreadIndex};

use crate::amount::Amount;
use crate::columns::samples_with_nodes;
use crate::parallel;
use crate::prefix_sums::Count;
use crate::selection::{SampleState, Selection};
use crate::sums::{self, Sums, ThreadSums};

/// The sums of the samples of all threads.
#[derive(Debug)]
pub(crate) struct IndexedSums {
    on_cpu: Vec<ThreadSums>,
    off_cpu: Vec<ThreadSums>,
    /// The threads of a selection that names no threads.
    pub(crate) usual: Vec<ThreadIndex>,
    /// The sums of their on-CPU samples.
    pub(crate) all: Sums,
    /// The running sums of `all`.
    pub(crate) running: Vec<Amount>,
}

impl IndexedSums {
    /// Sums up a profile. O(samples).
    pub(crate) fn new(profile: &Profile, node_of_stack: &[u32]) -> Self {
        let nodes = node_of_stack.len();
        let threads = profile.threads();
        let of_state = |off_cpu: bool| {
            let pieces = parallel::pieces(threads.len(), 1, |range| {
                let mut room = vec![Count::default(); nodes];
                let sum_up = |thread| {
                    let samples = samples_with_nodes(profile, thread, node_of_stack);
                    ThreadSums::new(samples.filter(|sample| sample.off_cpu == off_cpu), &mut room)
                };
                threads[range].iter().map(sum_up).collect::<Vec<_>>()
            });
            pieces.into_iter().flatten().collect::<Vec<_>>()
        };
        let on_cpu = of_state(false);
        let ran: u64 = on_cpu.iter().map(|sums: &ThreadSums| sums.total.samples).sum();
        let samples: usize = threads.iter().map(|thread| thread.samples.len()).sum();
        // Most profiles have no samples of waiting threads, and a second pass would take as long again.
        let off_cpu = if ran == samples as u64 { Vec::new() } else { of_state(true) };
        let usual: Vec<_> = Selection::default().select_threads(profile).map(|(id, _)| id).collect();
        let mut all = Sums::new(nodes);
        for thread in &usual {
            all.add_thread(&on_cpu[thread.index()]);
        }
        let running = sums::running(all.own.clone());
        Self { on_cpu, off_cpu, usual, all, running }
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
