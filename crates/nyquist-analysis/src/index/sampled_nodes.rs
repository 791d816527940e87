//! The nodes that have samples of their own: a few of those of deep stacks. Sums have a slot for each of these alone.

/// The nodes of a forest that have samples of their own, and their slots, in the order of the nodes.
#[derive(Clone, Debug)]
pub(crate) struct SampledNodes {
    /// The number of slots before each node, then the number of all slots.
    slots_before: Vec<u32>,
}

impl SampledNodes {
    /// The nodes for which `is_sampled` is true.
    pub(crate) fn new(is_sampled: &[bool]) -> Self {
        let mut slots_before = Vec::with_capacity(is_sampled.len() + 1);
        let mut slots = 0;
        for &is_sampled in is_sampled {
            slots_before.push(slots);
            slots += u32::from(is_sampled);
        }
        slots_before.push(slots);
        Self { slots_before }
    }

    /// The number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.slots_before.last().map_or(0, |&slots| slots as usize)
    }

    /// The number of slots before a node, or before the end. It is the node's slot, if it has one.
    pub(crate) fn slots_before(&self, node: u32) -> usize {
        self.slots_before[node as usize] as usize
    }

    /// The nodes, in the order of their slots. O(nodes).
    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> {
        let pairs = self.slots_before.windows(2).zip(0..);
        pairs.filter(|(pair, _)| pair[0] != pair[1]).map(|(_, node)| node)
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_in_the_order_of_the_nodes() {
        let sampled = SampledNodes::new(&[false, true, false, false, true, true]);
        assert_eq!((0..=6).map(|node| sampled.slots_before(node)).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 2, 3]);
        assert_eq!((sampled.nodes().collect::<Vec<_>>(), sampled.slots()), (vec![1, 4, 5], 3));
        let none = SampledNodes::new(&[]);
        assert_eq!((none.nodes().count(), none.slots(), none.slots_before(0)), (0, 0, 0));
    }
}
