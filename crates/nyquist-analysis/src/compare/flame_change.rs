//! A flame graph compared with another one: the share of each of its boxes in the other.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::names::comparable_name;
use crate::query::flame_graph::FlameGraph;

impl FlameGraph<'_> {
    /// For each box, the share (0 to 1) of the corresponding box in `before`: the one with callers of the
    /// same names. If a function has only an address, that is its name. O(boxes of both).
    pub fn shares_in(&self, before: &FlameGraph<'_>) -> Vec<f64> {
        let before = SharesByPath::new(before);
        before.nodes_of(self).into_iter().map(|node| node.map_or(0.0, |node| before.shares[node])).collect()
    }
}

/// The name by which boxes are compared.
fn comparable(name: &str) -> String {
    comparable_name(name).map_or_else(|| name.to_owned(), Cow::into_owned)
}

/// The shares of the nodes of a call tree, found by the names that lead to them.
struct SharesByPath {
    /// The child of a node by name. No node stands for the level above the roots.
    children: FxHashMap<(Option<usize>, String), usize>,
    shares: Vec<f64>,
}

impl SharesByPath {
    fn new(graph: &FlameGraph<'_>) -> Self {
        let mut tree = Self { children: FxHashMap::default(), shares: Vec::new() };
        let mut nodes: Vec<usize> = Vec::with_capacity(graph.boxes.len());
        for flame_box in &graph.boxes {
            let key = (flame_box.parent.map(|parent| nodes[parent]), comparable(flame_box.name));
            let node = *tree.children.entry(key).or_insert(tree.shares.len());
            if node == tree.shares.len() {
                tree.shares.push(0.0);
            }
            tree.shares[node] += flame_box.width as f64 / graph.width.max(1) as f64;
            nodes.push(node);
        }
        tree
    }

    /// The node with the same path for each box of another graph.
    fn nodes_of(&self, graph: &FlameGraph<'_>) -> Vec<Option<usize>> {
        let mut nodes: Vec<Option<usize>> = Vec::with_capacity(graph.boxes.len());
        for flame_box in &graph.boxes {
            let name = comparable(flame_box.name);
            let on = match flame_box.parent {
                None => Some(None),
                Some(parent) => nodes[parent].map(Some),
            };
            nodes.push(on.and_then(|parent| self.children.get(&(parent, name)).copied()));
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use crate::query::flame_graph::FlameOptions;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    #[test]
    fn boxes_are_matched_by_the_path_of_names() {
        let profile = |stacks: &[(&str, u64)]| {
            let mut test = TestProfile::new();
            test.thread("1", "main");
            for (stack, weight) in stacks {
                test.sample(stack, *weight);
            }
            test.finish()
        };
        let before = profile(&[("m a", 1), ("m b x", 3), ("n", 4)]);
        let after = profile(&[("m a", 1), ("m b y", 1), ("x", 2)]);
        with_view(&before, &Selection::default(), |before| {
            let before = before.flame_graph(&FlameOptions::default());
            with_view(&after, &Selection::default(), |after| {
                let after = after.flame_graph(&FlameOptions::default());
                let shares = after.shares_in(&before);
                let named: Vec<_> = after.boxes.iter().map(|one| one.name).zip(shares).collect();
                assert_eq!(named, [("m", 0.5), ("a", 0.125), ("b", 0.375), ("y", 0.0), ("x", 0.0)]);
            });
        });
    }
}
