//! What each node of a forest has, itself and with all that comes from it.

use crate::amount::Amount;
use crate::forest::Forest;

/// A forest and what samples sum to at its nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSums<'a> {
    pub(crate) forest: &'a Forest,
    /// The sum of the self amounts of all nodes before each node, and of all at the end: a subtree's total is the
    /// difference of two.
    running: &'a [Amount],
}

impl<'a> NodeSums<'a> {
    pub(crate) fn new(forest: &'a Forest, running: &'a [Amount]) -> Self {
        Self { forest, running }
    }

    /// What a node has itself.
    pub(crate) fn own(&self, node: u32) -> Amount {
        self.running[node as usize + 1] - self.running[node as usize]
    }

    /// What a node has with all that comes from it.
    pub(crate) fn total_of(&self, node: u32) -> Amount {
        self.running[self.forest.end[node as usize] as usize] - self.running[node as usize]
    }
}
