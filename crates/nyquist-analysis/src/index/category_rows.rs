//! The row, in a table by category, in which the samples of each stack count.

use nyquist_profile::{FuncId, Profile, StackId};

use crate::index::derived::DerivedForest;
use crate::index::forest::NONE;
use crate::parallel;

/// The row of stacks that filters and transforms have dropped.
const DROPPED: u32 = u32::MAX;

/// Fewer stacks than this are processed by one CPU.
const STACKS_WORTH_SHARING: usize = 100_000;

/// The rows of a view's stacks: one for each category of the profile, and a last one for stacks without a
/// category.
///
/// A time line goes through all samples. It looks up one number per sample, instead of the sample's node, the
/// node's target and its category. This takes a third of the time.
#[derive(Debug)]
pub(crate) struct CategoryRows {
    of_stack: Vec<u32>,
    stackless: u32,
}

impl CategoryRows {
    /// O(stacks).
    pub(crate) fn new(profile: &Profile, node_of_stack: &[u32], derived: &DerivedForest<'_>) -> Self {
        Self {
            stackless: if derived.keeps_stackless { none_of(profile) } else { DROPPED },
            ..Self::of(profile, node_of_stack, derived, |_| true)
        }
    }

    /// The rows of the stacks that have any of some functions. The others have no row. O(stacks).
    pub(crate) fn with_functions(
        profile: &Profile,
        node_of_stack: &[u32],
        derived: &DerivedForest<'_>,
        is_requested: impl Fn(FuncId) -> bool,
    ) -> Self {
        let forest = &derived.forest;
        let mut has_it: Vec<bool> = Vec::with_capacity(forest.len());
        for (&parent, &of) in forest.parent.iter().zip(&forest.func) {
            let inherits = parent != NONE && has_it[parent as usize];
            has_it.push(inherits || is_requested(FuncId::from_index(of as usize)));
        }
        Self::of(profile, node_of_stack, derived, |target| has_it[target as usize])
    }

    fn of(
        profile: &Profile,
        node_of_stack: &[u32],
        derived: &DerivedForest<'_>,
        counts: impl Fn(u32) -> bool + Sync,
    ) -> Self {
        let none = none_of(profile);
        let row = |&node: &u32| {
            let Some(target) = derived.target(node).filter(|&target| counts(target)) else { return DROPPED };
            let category = derived.forest.category[target as usize];
            category.map_or(none, |pair| (pair.category.index() as u32).min(none))
        };
        let of_stack = parallel::map(node_of_stack, STACKS_WORTH_SHARING, row);
        Self { of_stack, stackless: DROPPED }
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.of_stack)
    }

    /// The row of samples with a stack, or without one; `None` if these have been dropped.
    pub(crate) fn row(&self, stack: Option<StackId>) -> Option<usize> {
        let row = stack.map_or(self.stackless, |stack| self.of_stack[stack.index()]);
        (row != DROPPED).then_some(row as usize)
    }
}

/// The row of samples without a category.
fn none_of(profile: &Profile) -> u32 {
    profile.categories().len() as u32
}
