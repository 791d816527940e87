//! `tree`: the children of a node of the call tree, or of the inverted tree.

use nyquist_analysis::schema::{PathNodeRow, Whole, function_number};
use nyquist_analysis::{Tree, TreeNode};
use nyquist_profile::FuncId;
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::function_table::FunctionTable;
use crate::selection::path;

/// The maximum number of children of a node.
const MAX_CHILDREN: usize = 2000;

/// The maximum number of nodes that are opened at once.
const MAX_OPENED_NODES: usize = 200;

#[derive(Debug, Serialize)]
pub(super) struct ChildrenAnswer<'q, 'a> {
    #[serde(flatten)]
    whole: Whole,
    rows: Vec<PathNodeRow<'q>>,
    left_out: usize,
    functions: FunctionTable<'a>,
}

pub(super) fn answer<'q, 'a>(context: &QueryContext<'q, 'a>) -> Result<ChildrenAnswer<'q, 'a>, ViewerError> {
    let limit = context.parameters.at_most("limit", 200, MAX_CHILDREN)?;
    let path = path(context.parameters.get("path").unwrap_or_default(), context.view.profile())?;
    let is_inverted = context.parameters.is_set("inverted");
    let tree = if is_inverted { context.view.inverted_tree() } else { context.view.call_tree() };
    let mut answer = ChildrenAnswer {
        whole: context.rows().whole(),
        rows: Vec::new(),
        left_out: 0,
        functions: FunctionTable::new(),
    };
    let Some(mut children) = children_at(tree, &path) else { return Ok(answer) };
    let profile = context.view.profile();
    let number = |func: &FuncId| function_number(*func, profile);
    let mut prefix = path.iter().fold(String::new(), |prefix, func| joined(&prefix, number(func)));
    answer.left_out = children.len().saturating_sub(limit);
    answer.add(context, &prefix, &children[..children.len().min(limit)]);
    let is_expanding = context.parameters.is_set("expand");
    for _ in 0..MAX_OPENED_NODES {
        let Some(heaviest) = children.first().filter(|_| is_expanding) else { break };
        let below = tree.children(heaviest);
        // A function that has more time itself than each of those it calls is the end of the path.
        let Some(next) = below.first().filter(|next| next.total.weight >= heaviest.self_amount.weight) else {
            break;
        };
        let splits = next.total.weight < heaviest.total.weight / 2;
        prefix = joined(&prefix, number(&heaviest.func));
        answer.add(context, &prefix, &below[..below.len().min(limit)]);
        if splits {
            break;
        }
        children = below;
    }
    Ok(answer)
}

impl<'q, 'a> ChildrenAnswer<'q, 'a> {
    fn add(&mut self, context: &QueryContext<'q, 'a>, prefix: &str, nodes: &[TreeNode<'q>]) {
        let rows = context.rows();
        for node in nodes {
            let function = context.number(&mut self.functions, node.func);
            let path = joined(prefix, function);
            let depth = path.matches('.').count();
            self.rows.push(PathNodeRow { path, node: rows.node(depth, node) });
        }
    }
}

/// The children at a path; `None` if the path does not exist.
fn children_at<'v>(tree: Tree<'v>, path: &[FuncId]) -> Option<Vec<TreeNode<'v>>> {
    let mut nodes = tree.roots();
    for func in path {
        let node = nodes.into_iter().find(|node| node.func == *func)?;
        nodes = tree.children(&node);
    }
    Some(nodes)
}

fn joined(prefix: &str, function: usize) -> String {
    if prefix.is_empty() { function.to_string() } else { format!("{prefix}.{function}") }
}
