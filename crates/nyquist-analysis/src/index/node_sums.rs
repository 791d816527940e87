//! Self and total amounts of the nodes of a forest.

use crate::amount::Amount;
use crate::index::forest::Forest;
use crate::index::sampled_nodes::SampledNodes;

/// A forest and the sums of the samples at its nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSums<'a> {
    pub(crate) forest: &'a Forest,
    sampled: &'a SampledNodes,
    /// The sum of the self amounts of all slots before each slot, and of all slots at the end. The total of a
    /// subtree is the difference of two of them.
    running: &'a [Amount],
}

impl<'a> NodeSums<'a> {
    pub(crate) fn new(forest: &'a Forest, sampled: &'a SampledNodes, running: &'a [Amount]) -> Self {
        Self { forest, sampled, running }
    }

    /// The self amount of a node.
    pub(crate) fn own(&self, node: u32) -> Amount {
        self.between(node, node + 1)
    }

    /// The total amount of a node.
    pub(crate) fn total_of(&self, node: u32) -> Amount {
        self.between(node, self.forest.end[node as usize])
    }

    /// The slot of a node with samples.
    pub(crate) fn slot(&self, node: u32) -> u32 {
        self.sampled.slots_before(node) as u32
    }

    /// The number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.sampled.slots()
    }

    /// The same with other amounts.
    pub(crate) fn with_running(self, running: &'a [Amount]) -> Self {
        Self { running, ..self }
    }

    fn between(&self, start: u32, end: u32) -> Amount {
        let (start, end) = (self.sampled.slots_before(start), self.sampled.slots_before(end));
        // Most nodes have no samples of their own.
        if start == end { Amount::default() } else { self.running[end] - self.running[start] }
    }
}
