//! Self and total amounts of the nodes of a forest.

use crate::amount::Amount;
use crate::index::forest::Forest;

/// A forest and the sums of the samples at its nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSums<'a> {
    pub(crate) forest: &'a Forest,
    /// The sum of the self amounts of all nodes before each node, and of all nodes at the end. The total of a
    /// subtree is the difference of two of them.
    running: &'a [Amount],
}

impl<'a> NodeSums<'a> {
    pub(crate) fn new(forest: &'a Forest, running: &'a [Amount]) -> Self {
        Self { forest, running }
    }

    /// The self amount of a node.
    pub(crate) fn own(&self, node: u32) -> Amount {
        self.running[node as usize + 1] - self.running[node as usize]
    }

    /// The total amount of a node.
    pub(crate) fn total_of(&self, node: u32) -> Amount {
        self.running[self.forest.end[node as usize] as usize] - self.running[node as usize]
    }
}
