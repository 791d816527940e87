//! The forest of call nodes, in depth-first order.

use nyquist_profile::{CategoryPair, Profile};

/// Marks the absence of a node, such as the parent of a root.
pub(crate) const NONE: u32 = u32::MAX;

/// Call nodes, callers before callees and each subtree in one range: a node and everything that it called
/// are at `node..end`. So the sum over a subtree is a difference of running sums. One pass over the nodes
/// can keep the path to each.
///
/// Siblings may have the same function (for example at different lines). Trees merge them on request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forest {
    /// The caller; [`NONE`] for a root.
    pub(crate) parent: Vec<u32>,
    /// The end of the subtree.
    pub(crate) end: Vec<u32>,
    /// The function. Numbers beyond the profile's functions stand for collapsed libs.
    pub(crate) func: Vec<u32>,
    /// The stack of the profile that the node represents. Its innermost frame is the node's frame.
    pub(crate) stack: Vec<u32>,
    /// The category: the frame's own, or the one inherited from its callers.
    pub(crate) category: Vec<Option<CategoryPair>>,
}

impl Forest {
    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = [&self.parent, &self.end, &self.func, &self.stack];
        numbers.map(|column| size_of_val(&**column)).iter().sum::<usize>() + size_of_val(&*self.category)
    }

    /// The stacks of a profile, and the node of each of them. O(stacks).
    pub(crate) fn of_stacks(profile: &Profile) -> (Self, Vec<u32>) {
        let stacks = profile.stacks();
        let parents: Vec<u32> =
            stacks.iter().map(|stack| stack.prefix.map_or(NONE, |prefix| prefix.index() as u32)).collect();
        let order = DepthFirst::new(&parents);
        let mut forest = Self::with_len(stacks.len());
        for (index, stack) in stacks.iter().enumerate() {
            let node = order.position[index] as usize;
            let frame = profile.frame(stack.frame);
            let parent = parents.get(index).filter(|&&parent| parent != NONE);
            let parent = parent.map(|&parent| order.position[parent as usize]);
            let inherited = parent.and_then(|parent| forest.category[parent as usize]);
            forest.parent[node] = parent.unwrap_or(NONE);
            forest.end[node] = order.end[index];
            forest.func[node] = frame.func.index() as u32;
            forest.stack[node] = index as u32;
            forest.category[node] = frame.category.or(inherited);
        }
        (forest, order.position)
    }

    fn with_len(len: usize) -> Self {
        Self {
            parent: vec![NONE; len],
            end: vec![0; len],
            func: vec![0; len],
            stack: vec![0; len],
            category: vec![None; len],
        }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    /// Appends a node without callees, which is a root.
    pub(crate) fn push_root(&mut self, func: u32, stack: u32, category: Option<CategoryPair>) -> u32 {
        let node = self.len() as u32;
        self.parent.push(NONE);
        self.end.push(node + 1);
        self.func.push(func);
        self.stack.push(stack);
        self.category.push(category);
        node
    }

    /// The same nodes under other parents (each before its children), and the new node of each.
    pub(crate) fn with_parents(&self, parents: &[u32]) -> (Self, Vec<u32>) {
        let order = DepthFirst::new(parents);
        let mut forest = Self::with_len(self.len());
        for (index, &position) in order.position.iter().enumerate() {
            let node = position as usize;
            forest.parent[node] = match parents[index] {
                NONE => NONE,
                parent => order.position[parent as usize],
            };
            forest.end[node] = order.end[index];
            forest.func[node] = self.func[index];
            forest.stack[node] = self.stack[index];
            forest.category[node] = self.category[index];
        }
        (forest, order.position)
    }

    /// The callees of a node.
    pub(crate) fn children(&self, node: u32) -> Siblings<'_> {
        Siblings { forest: self, next: node + 1, end: self.end[node as usize] }
    }

    /// The nodes without callers.
    pub(crate) fn roots(&self) -> Siblings<'_> {
        Siblings { forest: self, next: 0, end: self.len() as u32 }
    }

    /// The node and its callers, up to the root.
    pub(crate) fn ancestors(&self, node: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(node).filter(|&node| node != NONE), |&node| {
            Some(self.parent[node as usize]).filter(|&parent| parent != NONE)
        })
    }
}

/// Where the subtree of each node ends, from the parents of nodes in depth-first order.
pub(crate) fn ends(parents: &[u32]) -> Vec<u32> {
    let mut ends: Vec<u32> = (1..=parents.len() as u32).collect();
    for (node, &parent) in parents.iter().enumerate().rev().filter(|(_, parent)| **parent != NONE) {
        let of_parent = ends[parent as usize].max(ends[node]);
        ends[parent as usize] = of_parent;
    }
    ends
}

/// Nodes of one parent.
pub(crate) struct Siblings<'a> {
    forest: &'a Forest,
    next: u32,
    end: u32,
}

impl Iterator for Siblings<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let node = self.next;
        if node >= self.end {
            return None;
        }
        self.next = self.forest.end[node as usize];
        Some(node)
    }
}

/// The places of a forest's nodes in depth-first order.
struct DepthFirst {
    /// The position of each node.
    position: Vec<u32>,
    /// The position after the last one of its subtree.
    end: Vec<u32>,
}

impl DepthFirst {
    /// Orders nodes whose parents precede them, without walking the tree: once the sizes of all subtrees are
    /// known, each node takes the next free place in the range of its parent. O(nodes).
    fn new(parents: &[u32]) -> Self {
        let mut size = vec![1_u32; parents.len()];
        for (node, &parent) in parents.iter().enumerate().rev() {
            if parent != NONE {
                size[parent as usize] += size[node];
            }
        }
        let mut position = vec![0; parents.len()];
        let mut free = vec![0; parents.len()];
        let mut free_root = 0;
        for (node, &parent) in parents.iter().enumerate() {
            let free_of_parent = if parent == NONE { &mut free_root } else { &mut free[parent as usize] };
            position[node] = *free_of_parent;
            *free_of_parent += size[node];
            free[node] = position[node] + 1;
        }
        let end = position.iter().zip(&size).map(|(position, size)| position + size).collect();
        Self { position, end }
    }
}
