//! The boxes of a flame graph.

use crate::amount::Amount;
use crate::query::tree::{Tree, TreeNode};
use crate::view::View;
use nyquist_profile::FuncId;

/// How a flame graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlameOptions {
    /// Whether callers are above their callees: the inverted tree.
    pub inverted: bool,
    /// Leaves out boxes whose share of the whole is less, with all above them.
    pub min_share: f64,
    /// The maximum number of levels.
    pub max_depth: usize,
}

impl Default for FlameOptions {
    fn default() -> Self {
        Self { inverted: false, min_share: 0.0, max_depth: usize::MAX }
    }
}

/// A flame graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameGraph<'a> {
    /// The width of the whole: the weight of all samples with a stack.
    pub width: u64,
    /// The boxes, callers before callees and siblings in the order of their names.
    pub boxes: Vec<FlameBox<'a>>,
}

/// A box of a flame graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameBox<'a> {
    /// The level, from 0.
    pub depth: usize,
    /// The index of the box below it.
    pub parent: Option<usize>,
    /// Where it begins, in weight from the left.
    pub start: u64,
    /// Its width: its total weight.
    pub width: u64,
    /// The function.
    pub func: FuncId,
    /// Its name.
    pub name: &'a str,
    /// The name of its lib.
    pub lib: Option<&'a str>,
    /// Its self amount.
    pub self_amount: Amount,
    /// What it takes with all that is on it.
    pub total: Amount,
}

impl View<'_> {
    /// The flame graph. O(nodes), not counting those that are too narrow.
    pub fn flame_graph(&self, options: &FlameOptions) -> FlameGraph<'_> {
        let tree = if options.inverted { self.inverted_tree() } else { self.call_tree() };
        let width = self.in_stacks().weight;
        let min_weight = (options.min_share * width as f64).ceil() as u64;
        let mut drawing = Drawing { tree, min_weight, ahead: Vec::new(), boxes: Vec::new() };
        if options.max_depth > 0 {
            drawing.put(tree.roots(), 0, None, 0);
        }
        while let Some((start, depth, parent, node)) = drawing.ahead.pop() {
            drawing.boxes.push(flame_box(start, depth, parent, &node));
            if depth + 1 < options.max_depth {
                let here = drawing.boxes.len() - 1;
                drawing.put(drawing.tree.children(&node), depth + 1, Some(here), start);
            }
        }
        FlameGraph { width, boxes: drawing.boxes }
    }
}

struct Drawing<'v> {
    tree: Tree<'v>,
    min_weight: u64,
    /// The remaining nodes, the next one last, each with its start, its depth and its parent's box.
    ahead: Vec<(u64, usize, Option<usize>, TreeNode<'v>)>,
    boxes: Vec<FlameBox<'v>>,
}

impl<'v> Drawing<'v> {
    /// Places siblings side by side. Those that are left out leave a gap only on the right.
    fn put(&mut self, mut nodes: Vec<TreeNode<'v>>, depth: usize, parent: Option<usize>, mut start: u64) {
        nodes.retain(|node| node.total.weight > 0 && node.total.weight >= self.min_weight);
        nodes.sort_by(|a, b| a.name.cmp(b.name).then(a.func.cmp(&b.func)));
        let first = self.ahead.len();
        for node in nodes {
            let width = node.total.weight;
            self.ahead.push((start, depth, parent, node));
            start += width;
        }
        self.ahead[first..].reverse();
    }
}

fn flame_box<'v>(start: u64, depth: usize, parent: Option<usize>, node: &TreeNode<'v>) -> FlameBox<'v> {
    FlameBox {
        depth,
        parent,
        start,
        width: node.total.weight,
        func: node.func,
        name: node.name,
        lib: node.lib,
        self_amount: node.self_amount,
        total: node.total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    fn check(options: &FlameOptions, expected: &[(&str, usize, u64, u64)]) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for (stack, weight) in [("m b x", 4), ("m a", 1), ("m b", 5), ("", 7)] {
            test.sample(stack, weight);
        }
        with_view(&test.finish(), &Selection::default(), |view| {
            let graph = view.flame_graph(options);
            assert_eq!(graph.width, 10);
            let boxes = graph.boxes.iter();
            let boxes: Vec<_> =
                boxes.map(|found| (found.name, found.depth, found.start, found.width)).collect();
            assert_eq!(boxes, expected);
            for found in &graph.boxes {
                let parent = found.parent.map(|parent| &graph.boxes[parent]);
                let (start, width) = parent.map_or((0, graph.width), |parent| (parent.start, parent.width));
                assert!(found.start >= start && found.start + found.width <= start + width);
            }
        });
    }

    #[test]
    fn boxes_stand_on_callers_in_order_of_names() {
        check(&FlameOptions::default(), &[("m", 0, 0, 10), ("a", 1, 0, 1), ("b", 1, 1, 9), ("x", 2, 1, 4)]);
        check(
            &FlameOptions { inverted: true, ..FlameOptions::default() },
            &[
                ("a", 0, 0, 1),
                ("m", 1, 0, 1),
                ("b", 0, 1, 5),
                ("m", 1, 1, 5),
                ("x", 0, 6, 4),
                ("b", 1, 6, 4),
                ("m", 2, 6, 4),
            ],
        );
    }

    #[test]
    fn narrow_boxes_and_high_levels_are_left_out() {
        let narrow = FlameOptions { min_share: 0.2, ..FlameOptions::default() };
        check(&narrow, &[("m", 0, 0, 10), ("b", 1, 0, 9), ("x", 2, 0, 4)]);
        let low = FlameOptions { max_depth: 1, ..FlameOptions::default() };
        check(&low, &[("m", 0, 0, 10)]);
    }
}
