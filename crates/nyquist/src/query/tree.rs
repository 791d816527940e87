//! Queries about call trees.

use super::answer::Answer;
use super::context::QueryContext;
use super::functions::chosen;
use crate::failure::Failure;
use crate::report::{TreeOptions, tree_nodes};
use nyquist_analysis::schema::List;
use nyquist_analysis::{Selection, Transform, TreeNode, View};
use nyquist_profile::FuncId;

/// The number of nodes that are examined per shown node, because most have a single child and are left out.
const EXAMINED_PER_SHOWN: usize = 16;

/// The least share of a node, in per cent.
const PERCENT: f64 = 0.5;

/// The call tree, or the callees of a function.
pub(super) fn tree(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = context.answer();
    let transforms = match context.target() {
        Some(_) => vec![Transform::FocusFunction(chosen(context, &mut answer)?.first())],
        None => Vec::new(),
    };
    // For the tree of one function, the limit alone bounds the size.
    let percent = if transforms.is_empty() { PERCENT } else { 0.0 };
    add_nodes(context, &mut answer, transforms, None, percent);
    Ok(answer)
}

/// The callers of a function, and their callers.
pub(super) fn callers(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = context.answer();
    let func = chosen(context, &mut answer)?.first();
    // With the time of all its callees collapsed into it, the function is a root of the inverted tree with
    // its total.
    add_nodes(context, &mut answer, vec![Transform::CollapseFunctionSubtree(func)], Some(func), 0.0);
    Ok(answer)
}

/// Adds the nodes of the tree, or of the inverted tree if its root is given.
fn add_nodes(
    context: &QueryContext<'_>,
    answer: &mut Answer,
    transforms: Vec<Transform>,
    root: Option<FuncId>,
    percent: f64,
) {
    let selection = Selection { transforms, ..context.view.selection().clone() };
    let view = View::new(context.index, &selection);
    let options = |limit| TreeOptions {
        inverted: root.is_some(),
        root,
        min_weight: context.scale.weight_of_percent(percent),
        max_depth: usize::MAX,
        limit,
        scale: context.scale,
        names: context.names,
    };
    let nodes = match root {
        Some(_) => tree_nodes(&view, &options(context.limit)),
        None => heaviest(
            without_single_child_chains(tree_nodes(
                &view,
                &options(context.limit.saturating_mul(EXAMINED_PER_SHOWN)),
            )),
            context.limit,
        ),
    };
    let columns: &'static [&'static str] = match root {
        Some(_) => &["depth", "handle", "total_share", "lib", "function"],
        None => &["depth", "handle", "total_share", "self_share", "lib", "function"],
    };
    let rows: Vec<_> = nodes.iter().map(|(depth, node)| context.rows.node(*depth, node)).collect();
    answer.list(&List::new("node", "nodes", context.limit, &rows, Clone::clone), columns);
}

/// The heaviest nodes, in tree order. A node is not heavier than the one above it, which comes first.
fn heaviest(nodes: Vec<(usize, TreeNode<'_>)>, limit: usize) -> Vec<(usize, TreeNode<'_>)> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(nodes[index].1.total.weight), index));
    let retained: std::collections::HashSet<usize> = order.into_iter().take(limit).collect();
    nodes
        .into_iter()
        .enumerate()
        .filter(|(index, _)| retained.contains(index))
        .map(|(_, node)| node)
        .collect()
}

/// Leaves out nodes without self time that have all their time in a single child, except the first.
/// Depths then count only the remaining nodes.
fn without_single_child_chains(nodes: Vec<(usize, TreeNode<'_>)>) -> Vec<(usize, TreeNode<'_>)> {
    let is_in_chain = |index: usize| {
        let ((depth, node), Some((next_depth, next))) = (&nodes[index], nodes.get(index + 1)) else {
            return false;
        };
        index > 0 && *next_depth == depth + 1 && next.total == node.total && node.self_amount.is_zero()
    };
    let keep: Vec<bool> = (0..nodes.len()).map(|index| !is_in_chain(index)).collect();
    let mut above: Vec<usize> = Vec::new();
    let mut left = Vec::new();
    for ((depth, node), _) in nodes.into_iter().zip(keep).filter(|(_, keep)| *keep) {
        while above.last().is_some_and(|&other| other >= depth) {
            above.pop();
        }
        left.push((above.len(), node));
        above.push(depth);
    }
    left
}
