//! What is worked out once for a profile, before anything is asked.

use std::sync::OnceLock;

use nyquist_profile::{FuncId, Profile, ThreadIndex};

use crate::forest::Forest;
use crate::function_info::{self, FunctionInfo};
use crate::indexed_sums::IndexedSums;
use crate::orders::{FunctionOrder, LineOrder};
use crate::prefix_sums::Tally;

/// What is worked out once for a profile, for all questions that follow.
#[derive(Debug)]
pub struct Index<'p> {
    pub(crate) profile: &'p Profile,
    /// All stacks.
    pub(crate) forest: Forest,
    /// The node of each stack.
    pub(crate) node_of_stack: Vec<u32>,
    pub(crate) sums: IndexedSums,
    functions: OnceLock<FunctionOrder>,
    lines: OnceLock<LineOrder>,
}

impl<'p> Index<'p> {
    /// Prepares a profile for questions. O(stacks + samples).
    pub fn new(profile: &'p Profile) -> Self {
        let (forest, node_of_stack) = Forest::of_stacks(profile);
        let sums = IndexedSums::new(profile, &node_of_stack);
        Self { profile, forest, node_of_stack, sums, functions: OnceLock::new(), lines: OnceLock::new() }
    }

    /// The order of the functions, worked out when first asked for. O(nodes + functions × log functions).
    pub(crate) fn functions(&self) -> &FunctionOrder {
        self.functions.get_or_init(|| FunctionOrder::new(self.profile, &self.forest))
    }

    /// The order of the lines, worked out when first asked for. O(nodes + frames × log frames).
    pub(crate) fn lines(&self) -> &LineOrder {
        self.lines.get_or_init(|| LineOrder::new(self.profile, &self.forest))
    }

    /// What the samples of a thread before that position sum to.
    pub(crate) fn tally_before(&self, thread: ThreadIndex, position: usize) -> Tally {
        self.sums.tallies[thread.index()].before(position, self.profile, self.profile.thread(thread))
    }

    /// The profile.
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// How many functions there are, those that stand for collapsed libs included.
    pub(crate) fn function_count(&self) -> usize {
        function_info::function_count(self.profile)
    }

    /// What is known of a function, or of the lib that it stands for.
    pub fn function(&self, id: FuncId) -> FunctionInfo<'p> {
        FunctionInfo::new(self.profile, id)
    }
}
