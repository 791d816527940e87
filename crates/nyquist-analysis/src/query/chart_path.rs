//! The path from the root to the node of a sample, which changes little from sample to sample.

use crate::index::forest::{Forest, NONE};

/// The nodes of the current stack, from the root.
#[derive(Debug, Default)]
pub(super) struct ChartPath {
    nodes: Vec<u32>,
}

impl ChartPath {
    /// Goes to a node; without one, to the empty path. Returns the number of outer nodes that are as before. O(levels
    /// that change).
    pub(super) fn go_to(&mut self, forest: &Forest, node: Option<u32>) -> usize {
        let mut next = node.unwrap_or(NONE);
        let target = node;
        // Callers precede callees, so what is behind a caller of the new node is no caller of it.
        let mut changed = 0;
        while next != NONE {
            while self.nodes.last().is_some_and(|&last| last > next) {
                self.nodes.pop();
            }
            if self.nodes.last() == Some(&next) {
                break;
            }
            changed += 1;
            next = forest.parent[next as usize];
        }
        if next == NONE {
            self.nodes.clear();
        }
        let unchanged = self.nodes.len();
        self.nodes.resize(unchanged + changed, 0);
        let callers = forest.ancestors(target.unwrap_or(NONE));
        for (place, node) in self.nodes[unchanged..].iter_mut().rev().zip(callers) {
            *place = node;
        }
        unchanged
    }

    /// The nodes, from the root.
    pub(super) fn nodes(&self) -> &[u32] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    #[test]
    fn the_path_is_that_of_the_node() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for stack in ["m a b", "m a c d", "m e", "n", "m a b f", "n a"] {
            test.sample(stack, 1);
        }
        with_view(&test.finish(), &Selection::default(), |view| {
            let forest = view.forest();
            let path_of = |node: Option<u32>| {
                let mut nodes: Vec<_> = forest.ancestors(node.unwrap_or(NONE)).collect();
                nodes.reverse();
                nodes
            };
            let nodes = || (0..forest.len() as u32).map(Some).chain([None]);
            for (from, to) in nodes().flat_map(|from| nodes().map(move |to| (from, to))) {
                let mut path = ChartPath::default();
                path.go_to(forest, from);
                let unchanged = path.go_to(forest, to);
                assert_eq!(path.nodes(), path_of(to), "{from:?} {to:?}");
                let same = path_of(from).iter().zip(path_of(to)).take_while(|(a, b)| **a == *b).count();
                assert_eq!(unchanged, same, "{from:?} {to:?}");
            }
        });
    }
}
