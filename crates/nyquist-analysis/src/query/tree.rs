//! The call tree and the inverted tree. Children of a node are computed on request.

use crate::amount::Amount;
use crate::view::View;
use nyquist_profile::FuncId;

/// A call tree, from callers to callees or inverted.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'v> {
    view: &'v View<'v>,
    is_inverted: bool,
}

/// A node of a tree: a function at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode<'v> {
    /// The function.
    pub func: FuncId,
    /// Its name.
    pub name: &'v str,
    /// The name of its lib.
    pub lib: Option<&'v str>,
    /// Whether it is inlined into its caller in all samples at this path.
    pub is_inlined: bool,
    /// Its self amount at this path. In an inverted tree only roots have one.
    pub self_amount: Amount,
    /// Its total amount, with all nodes below it.
    pub total: Amount,
    /// Whether it has children.
    pub has_children: bool,
    /// The nodes of the forest that it merges, with the amount of each.
    members: Vec<NodeMember>,
}

/// A node of the forest, as a part of a node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeMember {
    node: u32,
    /// Its self amount. In an inverted tree, the self amount of its leaves.
    amount: Amount,
}

/// Limits for walking a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Leaves out nodes whose total weight is less, with all below them.
    pub min_weight: u64,
    /// The number of levels; 1 means only the roots.
    pub max_depth: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { min_weight: 0, max_depth: usize::MAX }
    }
}

impl View<'_> {
    /// The call tree.
    pub fn call_tree(&self) -> Tree<'_> {
        Tree { view: self, is_inverted: false }
    }

    /// The inverted tree: its roots are the functions that have self time, their children the callers.
    pub fn inverted_tree(&self) -> Tree<'_> {
        Tree { view: self, is_inverted: true }
    }
}

impl<'v> Tree<'v> {
    /// The roots, the one with the greatest total weight first. O(roots), inverted O(nodes).
    pub fn roots(&self) -> Vec<TreeNode<'v>> {
        let forest = self.view.forest();
        let found = if self.is_inverted {
            let nodes = 0..forest.len() as u32;
            nodes
                .map(|node| NodeMember { node, amount: self.view.own(node) })
                .filter(|m| !m.amount.is_zero())
                .collect()
        } else {
            self.callees(forest.roots())
        };
        self.merge(found, true)
    }

    /// The children of a node, the one with the greatest total weight first. O(children × log children).
    pub fn children(&self, node: &TreeNode<'v>) -> Vec<TreeNode<'v>> {
        let forest = self.view.forest();
        let found = if self.is_inverted {
            let caller =
                |member: &NodeMember| NodeMember { node: forest.parent[member.node as usize], ..*member };
            let callers = node.members.iter().map(caller);
            callers.filter(|member| member.node != crate::index::forest::NONE).collect()
        } else {
            self.callees(node.members.iter().flat_map(|member| forest.children(member.node)))
        };
        self.merge(found, false)
    }

    /// Goes through the tree from the top, each node before its children, the greatest total weight first.
    /// Depths start at 0.
    pub fn walk(&self, limits: TreeLimits) -> TreeWalk<'v> {
        let mut walk = TreeWalk { tree: *self, limits, ahead: Vec::new() };
        if limits.max_depth > 0 {
            walk.push(self.roots(), 0);
        }
        walk
    }

    fn callees(&self, nodes: impl Iterator<Item = u32>) -> Vec<NodeMember> {
        let has_samples = nodes.filter(|&node| !self.view.total_of(node).is_zero());
        has_samples.map(|node| NodeMember { node, amount: self.view.own(node) }).collect()
    }

    /// Merges members with the same function into nodes.
    fn merge(&self, mut members: Vec<NodeMember>, is_root: bool) -> Vec<TreeNode<'v>> {
        let func = |member: &NodeMember| self.view.forest().func[member.node as usize];
        members.sort_by_key(func);
        let groups = members.chunk_by(|a, b| func(a) == func(b));
        let mut nodes: Vec<_> = groups.map(|group| self.node(group.to_vec(), is_root)).collect();
        nodes.sort_by(|a, b| {
            let by_amount = (b.total, b.self_amount).cmp(&(a.total, a.self_amount));
            by_amount.then_with(|| a.name.cmp(b.name)).then_with(|| a.func.cmp(&b.func))
        });
        nodes
    }

    fn node(&self, members: Vec<NodeMember>, is_root: bool) -> TreeNode<'v> {
        let forest = self.view.forest();
        let first = members.first().map_or(0, |member| forest.func[member.node as usize]);
        let func = FuncId::from_index(first as usize);
        let profile = self.view.profile();
        let frame = |member: &NodeMember| {
            profile.frame(profile.stacks()[forest.stack[member.node as usize] as usize].frame)
        };
        let is_inlined = members.iter().all(|member| frame(member).inline_depth > 0);
        let info = self.view.function(func);
        let amount: Amount = members.iter().map(|member| member.amount).sum();
        let (self_amount, total, has_children);
        if self.is_inverted {
            total = amount;
            self_amount = if is_root { amount } else { Amount::default() };
            has_children = members
                .iter()
                .any(|member| forest.parent[member.node as usize] != crate::index::forest::NONE);
        } else {
            total = members.iter().map(|member| self.view.total_of(member.node)).sum();
            self_amount = amount;
            has_children = total != self_amount;
        }
        TreeNode {
            func,
            name: info.name,
            lib: info.lib,
            is_inlined,
            self_amount,
            total,
            has_children,
            members,
        }
    }
}

/// Goes through a tree, each node before its children.
#[derive(Debug)]
pub struct TreeWalk<'v> {
    tree: Tree<'v>,
    limits: TreeLimits,
    /// The remaining nodes, the next one last.
    ahead: Vec<(usize, TreeNode<'v>)>,
}

impl<'v> TreeWalk<'v> {
    fn push(&mut self, nodes: Vec<TreeNode<'v>>, depth: usize) {
        let requested = nodes.into_iter().filter(|node| node.total.weight >= self.limits.min_weight);
        let first = self.ahead.len();
        self.ahead.extend(requested.map(|node| (depth, node)));
        self.ahead[first..].reverse();
    }
}

impl<'v> Iterator for TreeWalk<'v> {
    type Item = (usize, TreeNode<'v>);

    fn next(&mut self) -> Option<Self::Item> {
        let (depth, node) = self.ahead.pop()?;
        if depth + 1 < self.limits.max_depth {
            self.push(self.tree.children(&node), depth + 1);
        }
        Some((depth, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, tree_text, with_view};

    fn check(samples: &[(&str, u64)], tree: &str, inverted: &str) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(stack, weight) in samples {
            test.sample(stack, weight);
        }
        with_view(&test.finish(), &Selection::default(), |view| {
            assert_eq!(tree_text(view.call_tree()), tree, "{samples:?}");
            assert_eq!(tree_text(view.inverted_tree()), inverted, "{samples:?}");
        });
    }

    #[test]
    fn trees_have_totals_and_self_amounts() {
        check(
            &[("A B C", 1), ("A B", 2), ("A D C", 4), ("E", 1)],
            "A:7,0 .D:4,0 ..C:4,4 .B:3,2 ..C:1,1 E:1,1",
            "C:5,5 .D:4,0 ..A:4,0 .B:1,0 ..A:1,0 B:2,2 .A:2,0 E:1,1",
        );
    }

    #[test]
    fn same_functions_at_other_lines_are_one_node() {
        check(
            &[("A#1 B#5", 1), ("A#2 B#6", 2), ("A#2 C", 4)],
            "A:7,0 .C:4,4 .B:3,3",
            "C:4,4 .A:4,0 B:3,3 .A:3,0",
        );
    }

    #[test]
    fn recursion_is_a_path_like_any_other() {
        check(&[("A A", 1), ("A A A", 2)], "A:3,0 .A:3,1 ..A:2,2", "A:3,3 .A:3,0 ..A:2,0");
    }

    #[test]
    fn nothing_sampled_is_an_empty_tree() {
        check(&[], "", "");
        check(&[("", 3)], "", "");
    }

    #[test]
    fn a_walk_stops_at_its_limits() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("A B C", 5);
        test.sample("A D", 1);
        with_view(&test.finish(), &Selection::default(), |view| {
            let walk = |min_weight, max_depth| {
                let nodes = view.call_tree().walk(TreeLimits { min_weight, max_depth });
                nodes.map(|(_, node)| node.name).collect::<String>()
            };
            assert_eq!(walk(0, 2), "ABD");
            assert_eq!(walk(2, 9), "ABC");
            assert_eq!(walk(0, 0), "");
        });
    }

    #[test]
    fn trees_of_100000_levels_do_not_overflow() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.deep_sample("f", 100_000);
        with_view(&test.finish(), &Selection::default(), |view| {
            assert_eq!(view.call_tree().walk(TreeLimits::default()).count(), 100_000);
            assert_eq!(view.inverted_tree().walk(TreeLimits::default()).count(), 100_000);
        });
    }
}
