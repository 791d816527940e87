//! Data computed once for a profile: sums over all of it first, the rest on first use.

pub(crate) mod category_rows;
pub(crate) mod checkpoints;
pub(crate) mod cpu_threads;
pub(crate) mod derived;
pub(crate) mod forest;
pub(crate) mod function_info;
pub(crate) mod indexed_sums;
pub(crate) mod node_sums;
pub(crate) mod orders;
pub(crate) mod prefix_sums;
pub(crate) mod sampled_nodes;
pub(crate) mod self_and_total;
pub(crate) mod span;
pub(crate) mod stack_slots;
pub(crate) mod sums;
pub(crate) mod thread_sums;

use std::sync::OnceLock;

use nyquist_profile::{FuncId, Profile, StackId, ThreadIndex, well_known};

use crate::index::category_rows::CategoryRows;
use crate::index::checkpoints::Checkpoints;
use crate::index::derived::DerivedForest;
use crate::index::forest::Forest;
use crate::index::function_info::FunctionInfo;
use crate::index::indexed_sums::IndexedSums;
use crate::index::orders::{FunctionOrder, LineOrder};
use crate::index::prefix_sums::{PrefixSum, PrefixSums};
use crate::index::thread_sums::ThreadSums;
use crate::parallel;
use crate::sample_state::SampleState;

/// Data computed once for a profile, for all queries that follow.
#[derive(Debug)]
pub struct Index<'p> {
    pub(crate) profile: &'p Profile,
    /// All stacks.
    pub(crate) forest: Forest,
    /// The node of each stack.
    pub(crate) node_of_stack: Vec<u32>,
    pub(crate) sums: IndexedSums,
    by_thread: OnceLock<Vec<ThreadSums>>,
    prefix_sums: OnceLock<Vec<PrefixSums>>,
    checkpoints: OnceLock<Checkpoints>,
    categories: OnceLock<CategoryRows>,
    functions: OnceLock<FunctionOrder>,
    lines: OnceLock<LineOrder>,
    /// The functions that stand for time whose place is not known.
    unobserved: OnceLock<Vec<FuncId>>,
}

impl<'p> Index<'p> {
    /// Prepares a profile for queries about all of it. O(stacks + samples).
    pub fn new(profile: &'p Profile) -> Self {
        let (forest, node_of_stack) = Forest::of_stacks(profile);
        let sums = IndexedSums::new(profile, &node_of_stack);
        Self {
            profile,
            forest,
            node_of_stack,
            sums,
            by_thread: OnceLock::new(),
            prefix_sums: OnceLock::new(),
            checkpoints: OnceLock::new(),
            categories: OnceLock::new(),
            functions: OnceLock::new(),
            lines: OnceLock::new(),
            unobserved: OnceLock::new(),
        }
    }

    /// Works out a part of what questions about threads, functions and ranges of time need, unless all of it is there.
    /// Returns whether a part was left. The first of these questions works out the rest. O(samples).
    pub fn prepare_more(&self) -> bool {
        if self.by_thread.get().is_none() {
            self.by_thread();
        } else if self.prefix_sums.get().is_none() {
            self.prefix_sums();
        } else if self.checkpoints.get().is_none() {
            self.checkpoints();
        } else if self.functions.get().is_none() {
            self.functions();
        } else {
            return false;
        }
        true
    }

    /// The sums of each thread.
    pub(crate) fn by_thread(&self) -> &[ThreadSums] {
        let IndexedSums { slots, sampled, .. } = &self.sums;
        self.by_thread.get_or_init(|| ThreadSums::of_all(self.profile, slots, sampled))
    }

    /// The prefix sums of each thread.
    pub(crate) fn prefix_sums(&self) -> &[PrefixSums] {
        self.prefix_sums.get_or_init(|| {
            parallel::map(self.profile.threads(), 1, |thread| PrefixSums::new(self.profile, thread))
        })
    }

    /// The moments up to which the samples of the default threads are summed up.
    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        self.checkpoints.get_or_init(|| Checkpoints::new(self.profile, &self.sums))
    }

    /// The rows by category of all stacks, without filters and transforms. O(stacks) on first use.
    pub(crate) fn categories(&self) -> &CategoryRows {
        self.categories.get_or_init(|| {
            let derived = DerivedForest::new(&self.forest);
            CategoryRows::new(self.profile, &self.node_of_stack, &derived)
        })
    }

    /// The order of the functions, computed on first use. O(nodes + functions × log functions).
    pub(crate) fn functions(&self) -> &FunctionOrder {
        self.functions.get_or_init(|| FunctionOrder::new(self.profile, &self.forest))
    }

    /// The order of the lines, computed on first use. O(nodes + frames × log frames).
    pub(crate) fn lines(&self) -> &LineOrder {
        self.lines.get_or_init(|| LineOrder::new(self.profile, &self.forest))
    }

    /// The sum of a thread's samples before that position.
    pub(crate) fn prefix_sum_before(&self, thread: ThreadIndex, position: usize) -> PrefixSum {
        self.prefix_sums()[thread.index()].before(position, self.profile, self.profile.thread(thread))
    }

    /// Whether samples with this stack stand for time whose place is not known.
    pub(crate) fn is_unobserved(&self, stack: Option<StackId>) -> bool {
        let Some(stack) = stack else { return false };
        let unobserved = self.unobserved.get_or_init(|| {
            let funcs = (0..self.profile.funcs().len()).map(FuncId::from_index);
            let names =
                [well_known::WAIT_NOT_SEEN, well_known::NOT_SAMPLED, well_known::KERNEL_NOT_PERMITTED];
            funcs.filter(|func| names.contains(&self.profile.func_name(*func))).collect()
        });
        unobserved.contains(&self.profile.frame(self.profile.stack(stack).frame).func)
    }

    /// Whether any thread has samples of waiting. O(threads).
    pub fn has_waits(&self) -> bool {
        let waits = |thread| self.sums.count(ThreadIndex::from_index(thread), SampleState::OffCpu).samples;
        (0..self.profile.threads().len()).any(|thread| waits(thread) > 0)
    }

    /// The memory of what is there so far, in bytes, as far as it depends on the profile's stacks and samples.
    pub fn own_bytes(&self) -> usize {
        let prefix_sums = self.prefix_sums.get().into_iter().flatten().map(PrefixSums::bytes).sum::<usize>();
        let parts = [
            self.forest.bytes() + size_of_val(&*self.node_of_stack),
            self.sums.bytes(),
            self.by_thread.get().into_iter().flatten().map(ThreadSums::bytes).sum(),
            prefix_sums,
            self.checkpoints.get().map_or(0, Checkpoints::bytes),
            self.categories.get().map_or(0, CategoryRows::bytes),
            self.functions.get().map_or(0, |order| order.keys.bytes()),
            self.lines.get().map_or(0, |order| order.keys.bytes()),
        ];
        parts.iter().sum()
    }

    /// The profile.
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// The number of functions, including those that stand for collapsed libs.
    pub(crate) fn function_count(&self) -> usize {
        function_info::function_count(self.profile)
    }

    /// The name and place of a function, or of the lib that it stands for.
    pub fn function(&self, id: FuncId) -> FunctionInfo<'p> {
        FunctionInfo::new(self.profile, id)
    }
}
