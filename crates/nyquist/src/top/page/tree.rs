//! The call tree, of the last seconds or of the whole recording.

use super::context::{PageContext, key, part};
use super::types::{Cell, Column, Page, Row, Width};
use crate::args::SortBy;
use nyquist_analysis::{Selection, Tree, TreeNode, View};

/// A node with at least this share of the whole is open unless it was closed.
const OPEN_FROM: f64 = 0.02;

/// The maximum number of rows of a tree.
const MAX_ROWS: usize = 2000;

pub(super) fn page(context: &PageContext<'_>) -> Page {
    let question = context.question;
    let whole = context.view(question.period);
    let focused;
    let view = match &context.search {
        None => whole,
        Some(search) => {
            let selection = Selection { focus: vec![search.clone()], ..whole.selection().clone() };
            focused = View::new(context.data.index, &selection);
            &focused
        }
    };
    let tree = if question.is_inverted { view.inverted_tree() } else { view.call_tree() };
    // Shares are relative to all samples, also during a search.
    let rows = Rows { context, tree, total: whole.total().weight };
    let nothing = context.nothing("Nothing was sampled in that time");
    Page {
        columns: columns(context),
        rows: rows.all(),
        empty: if context.search.is_some() { "No stack has a function of that name" } else { nothing },
        ..Page::default()
    }
}

fn columns(context: &PageContext<'_>) -> Vec<Column> {
    let question = context.question;
    let by_name = question.sort == SortBy::Name;
    let heading =
        if question.is_inverted { "FUNCTION AND ITS CALLERS" } else { "FUNCTION AND WHAT IT CALLS" };
    vec![
        Column::new("TOTAL", context.amount_width()).under(context.group(question.period)).sorted(!by_name),
        Column::bars(),
        Column::new("SELF", context.amount_width()),
        Column::new(heading, Width::Rest).sorted(by_name),
        Column::new("LIB", Width::Part(6)),
    ]
}

/// Walks over the open part of a tree.
struct Rows<'v, 'a> {
    context: &'v PageContext<'a>,
    tree: Tree<'v>,
    total: u64,
}

impl<'v> Rows<'v, '_> {
    fn all(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        // The remaining nodes, the next one last, with their depths and the keys of their callers.
        let mut ahead = Vec::new();
        self.put(&mut ahead, self.tree.roots(), (0, 0));
        while let Some((depth, caller, node)) = ahead.pop()
            && rows.len() < MAX_ROWS
        {
            let row = self.row(depth, caller, &node);
            if row.is_open == Some(true) {
                self.put(&mut ahead, self.tree.children(&node), (depth + 1, row.key));
            }
            rows.push(row);
        }
        rows
    }

    /// Puts nodes, in their order, before the remaining ones.
    fn put(
        &self,
        ahead: &mut Vec<(usize, u64, TreeNode<'v>)>,
        mut nodes: Vec<TreeNode<'v>>,
        (depth, caller): (usize, u64),
    ) {
        if self.context.question.sort == SortBy::Name {
            nodes.sort_by_cached_key(|node| self.context.names.show(node.name));
        }
        ahead.extend(nodes.into_iter().rev().map(|node| (depth, caller, node)));
    }

    fn row(&self, depth: usize, caller: u64, node: &TreeNode<'_>) -> Row {
        let lib = node.lib.unwrap_or_default();
        let key = key((caller, node.name, lib));
        let total = part(node.total.weight, self.total);
        let is_open = || self.context.question.opened.get(&key).copied().unwrap_or(total >= OPEN_FROM);
        Row {
            key,
            name: self.context.names.show(node.name),
            depth,
            is_open: node.has_children.then(is_open),
            thread: None,
            cells: vec![
                self.context.amount(node.total.weight, self.total),
                Cell::Bar(total),
                self.context.amount(node.self_amount.weight, self.total),
                Cell::Name,
                Cell::dim(lib),
            ],
        }
    }
}
