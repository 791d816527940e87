//! The sums of each thread, on the CPU and off it.

use crate::index::columns::Column;
use crate::index::prefix_sums::Count;
use crate::index::sums::ThreadSums;
use crate::parallel;
use crate::sample_state::SampleState;

/// The sums of a thread.
#[derive(Debug)]
pub(crate) struct StateSums {
    on_cpu: ThreadSums,
    off_cpu: ThreadSums,
}

impl StateSums {
    /// Sums up the samples of all threads. O(samples × log samples).
    pub(crate) fn of_threads(columns: &[Column], nodes: usize) -> Vec<Self> {
        let pieces = parallel::pieces(columns.len(), 1, |range| {
            let mut room = vec![Count::default(); nodes];
            let mut sums = |column: &Column, state| ThreadSums::new(column, state, &mut room);
            let sum_up = |column: &Column| Self {
                on_cpu: sums(column, SampleState::OnCpu),
                off_cpu: sums(column, SampleState::OffCpu),
            };
            columns[range].iter().map(sum_up).collect::<Vec<_>>()
        });
        pieces.into_iter().flatten().collect()
    }

    /// Those in one state, or in both.
    pub(crate) fn of(&self, state: SampleState) -> impl Iterator<Item = &ThreadSums> {
        let on_cpu = Some(&self.on_cpu).filter(|_| state.includes(false));
        let off_cpu = Some(&self.off_cpu).filter(|_| state.includes(true));
        on_cpu.into_iter().chain(off_cpu)
    }
}
