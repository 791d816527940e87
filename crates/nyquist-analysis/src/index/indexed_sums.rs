//! Sums of all samples, by node and by thread, computed when the index is built.

use nyquist_profile::{Profile, ThreadIndex};

use crate::amount::Amount;
use crate::index::columns::samples_with_nodes;
use crate::index::cpu_threads::program_threads;
use crate::index::prefix_sums::Count;
use crate::index::sums::{self, SampleSums};
use crate::parallel;
use crate::sample_state::SampleState;

/// What all samples sum to.
#[derive(Debug)]
pub(crate) struct IndexedSums {
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

impl IndexedSums {
    /// Sums up a profile. O(samples).
    pub(crate) fn new(profile: &Profile, node_of_stack: &[u32]) -> Self {
        let threads = profile.threads();
        let default_threads: Vec<_> = program_threads(profile).collect();
        let mut is_default = vec![false; threads.len()];
        for thread in &default_threads {
            is_default[thread.index()] = true;
        }
        let pieces = parallel::pieces(threads.len(), 1, |range| {
            let mut sums = SampleSums::new(node_of_stack.len());
            let count = |thread: usize| {
                let mut counts = ThreadCounts::default();
                for sample in samples_with_nodes(profile, &threads[thread], node_of_stack) {
                    if sample.off_cpu {
                        counts.off_cpu.add(sample.amount);
                        continue;
                    }
                    counts.on_cpu.add(sample.amount);
                    if is_default[thread] {
                        sums.add(sample.node, sample.amount);
                    }
                }
                counts
            };
            let counts: Vec<_> = range.map(count).collect();
            (sums, counts)
        });
        let (mut sums, by_thread): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        let mut all = sums.pop().unwrap_or_else(|| SampleSums::new(node_of_stack.len()));
        for piece in &sums {
            all.add_all(piece);
        }
        let running = sums::running(all.own.clone());
        Self { default_threads, all, running, by_thread: by_thread.concat() }
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
