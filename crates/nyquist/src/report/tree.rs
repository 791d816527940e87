//! The call tree and the inverted tree.

use super::{Report, TREE_PERCENT, TREE_ROWS};
use crate::number::counted;
use crate::scale::Scale;
use crate::text::names::printable;
use crate::text::{Names, Screen, Style, cut};
use nyquist_analysis::{Tree, TreeNode, View};
use serde_json::{Value, json};
use std::collections::BinaryHeap;

/// How much of a tree is shown, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeOptions {
    pub(crate) inverted: bool,
    /// The least weight of a node.
    pub(crate) min_weight: u64,
    /// How many levels.
    pub(crate) max_depth: usize,
    /// How many nodes, those of the greatest weight.
    pub(crate) limit: usize,
    pub(crate) scale: Scale,
    pub(crate) names: Names,
}

pub(super) fn text(report: &Report<'_>, inverted: bool) -> String {
    tree_text(report.view, &options(report, inverted), report.screen)
}

pub(super) fn json(report: &Report<'_>, inverted: bool) -> Value {
    let nodes = chosen(report.view, &options(report, inverted));
    let rows = nodes.rows.iter().filter_map(|row| match &row.what {
        What::Node(node) => Some(node_json(row, node, report.scale)),
        What::Others { .. } => None,
    });
    json!({ "nodes": rows.collect::<Vec<_>>(), "is_cut": nodes.is_cut })
}

fn options(report: &Report<'_>, inverted: bool) -> TreeOptions {
    TreeOptions {
        inverted,
        min_weight: report.min_weight(TREE_PERCENT),
        max_depth: report.args.depth.map_or(usize::MAX, |depth| depth as usize),
        limit: report.limit(TREE_ROWS),
        scale: report.scale,
        names: report.names,
    }
}

fn node_json(row: &TreeRow<'_>, node: &TreeNode<'_>, scale: Scale) -> Value {
    json!({
        "depth": row.depth,
        "handle": format!("f-{}", node.func.index()),
        "function": node.name,
        "lib": node.lib,
        "inlined": node.is_inlined,
        "self": node.self_amount.weight,
        "total": node.total.weight,
        "self_share": scale.share(node.self_amount.weight),
        "total_share": scale.share(node.total.weight),
    })
}

/// A line of a tree.
struct TreeRow<'v> {
    depth: usize,
    what: What<'v>,
    branch: Branch,
    /// The lines that pass by on the left.
    guides: String,
    /// Whether it is in the lib of the node above.
    is_of_same_lib: bool,
}

/// What a line is about.
enum What<'v> {
    Node(TreeNode<'v>),
    /// Children that are too light to be shown.
    Others {
        count: usize,
        weight: u64,
    },
}

/// How a node hangs on the one above.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    /// As its only child, or as the only root: under it.
    Chain,
    /// With others that come after it.
    Middle,
    /// As the last of several.
    Last,
}

/// The nodes that are shown, in order.
struct Chosen<'v> {
    rows: Vec<TreeRow<'v>>,
    /// Whether there are more that are heavy enough.
    is_cut: bool,
}

/// Nodes, the heaviest of which comes first.
#[derive(Default)]
struct Heaviest<'v> {
    heap: BinaryHeap<(u64, usize)>,
    nodes: Vec<(usize, TreeNode<'v>)>,
}

impl<'v> Heaviest<'v> {
    fn push(&mut self, nodes: Vec<TreeNode<'v>>, depth: usize, min_weight: u64) {
        for node in nodes.into_iter().filter(|node| node.total.weight >= min_weight) {
            self.heap.push((node.total.weight, self.nodes.len()));
            self.nodes.push((depth, node));
        }
    }
}

/// The least weight that leaves no more than `limit` nodes: nodes are looked at from the heaviest on.
fn weight_for_limit(tree: &Tree<'_>, options: &TreeOptions) -> u64 {
    let mut found = Heaviest::default();
    found.push(tree.roots(), 1, options.min_weight);
    for _ in 0..options.limit {
        let Some((_, index)) = found.heap.pop() else { break };
        let (depth, node) = &found.nodes[index];
        if *depth < options.max_depth && node.has_children {
            let (children, depth) = (tree.children(node), depth + 1);
            found.push(children, depth, options.min_weight);
        }
    }
    found.heap.pop().map_or(options.min_weight, |(weight, _)| weight + 1)
}

/// Walks the tree and keeps what is heavy enough.
fn chosen<'v>(view: &'v View<'v>, options: &TreeOptions) -> Chosen<'v> {
    let tree = if options.inverted { view.inverted_tree() } else { view.call_tree() };
    let min_weight =
        if options.limit == usize::MAX { options.min_weight } else { weight_for_limit(&tree, options) };
    let mut rows = Vec::new();
    let mut ahead = children_rows(tree.roots(), None, min_weight);
    while let Some(row) = ahead.pop() {
        if let What::Node(node) = &row.what
            && node.has_children
            && row.depth + 1 < options.max_depth
        {
            ahead.extend(children_rows(tree.children(node), Some(&row), min_weight));
        }
        rows.push(row);
    }
    Chosen { rows, is_cut: min_weight > options.min_weight }
}

/// The lines of the children of a node, in reverse order.
fn children_rows<'v>(
    children: Vec<TreeNode<'v>>,
    parent: Option<&TreeRow<'v>>,
    min_weight: u64,
) -> Vec<TreeRow<'v>> {
    let (shown, hidden): (Vec<_>, Vec<_>) =
        children.into_iter().partition(|node| node.total.weight >= min_weight.max(1));
    let weight = hidden.iter().map(|node| node.total.weight).sum::<u64>();
    let mut what: Vec<_> = shown.into_iter().map(What::Node).collect();
    // Under a node of which nothing is shown, others would only repeat its weight.
    if !what.is_empty() && weight >= min_weight.max(1) {
        what.push(What::Others { count: hidden.len(), weight });
    }
    let count = what.len();
    let lib = parent.and_then(|parent| parent.node()).and_then(|node| node.lib);
    let rows = what.into_iter().enumerate().map(|(index, what)| TreeRow {
        depth: parent.map_or(0, |parent| parent.depth + 1),
        is_of_same_lib: matches!((&what, parent), (What::Node(node), Some(_)) if node.lib == lib),
        what,
        branch: match index + 1 {
            _ if count == 1 => Branch::Chain,
            place if place == count => Branch::Last,
            _ => Branch::Middle,
        },
        guides: parent.map(TreeRow::guides_below).unwrap_or_default(),
    });
    let mut rows: Vec<_> = rows.collect();
    rows.reverse();
    rows
}

impl<'v> TreeRow<'v> {
    fn node(&self) -> Option<&TreeNode<'v>> {
        match &self.what {
            What::Node(node) => Some(node),
            What::Others { .. } => None,
        }
    }

    /// The guides of what hangs on this node.
    fn guides_below(&self) -> String {
        let own = match self.branch {
            Branch::Chain => "",
            Branch::Middle => "│  ",
            Branch::Last => "   ",
        };
        format!("{}{own}", self.guides)
    }

    fn branch_mark(&self) -> &'static str {
        match self.branch {
            Branch::Chain => "",
            Branch::Middle => "├─ ",
            Branch::Last => "└─ ",
        }
    }

    fn weights(&self) -> (u64, u64) {
        match &self.what {
            What::Node(node) => (node.total.weight, node.self_amount.weight),
            What::Others { weight, .. } => (*weight, 0),
        }
    }
}

/// A tree as text: the shares, then the names, each under its caller (inverted: under its callee). A node that is the
/// only child stands straight under the node that it belongs to.
pub(crate) fn tree_text(view: &View<'_>, options: &TreeOptions, screen: Screen) -> String {
    let chosen = chosen(view, options);
    let heading = if options.inverted { " TIME  CALLED FROM" } else { "TOTAL    SELF  FUNCTION" };
    let mut text = Style::Bold.paint(heading, screen) + "\n";
    for row in &chosen.rows {
        text.push_str(&line(row, options, screen));
    }
    if chosen.is_cut {
        text.push_str("There are more nodes (--limit 0 shows all)\n");
    }
    text
}

fn line(row: &TreeRow<'_>, options: &TreeOptions, screen: Screen) -> String {
    let (total, own) = row.weights();
    let scale = options.scale;
    let number = |weight: u64| {
        let style = Style::of_share(scale.share(weight));
        style.paint(&format!("{:>6}", scale.percent(weight)), screen)
    };
    let numbers =
        if options.inverted { number(total) } else { format!("{}  {}", number(total), number(own)) };
    let taken = if options.inverted { 8 } else { 16 };
    let room = screen.width.map(|width| width.saturating_sub(taken).max(24));
    let guides = guides(row, room, screen);
    let room = room.map(|room| room.saturating_sub(guides.chars().count()));
    let line =
        format!("{numbers}  {}{}", Style::Dim.paint(&guides, screen), label(row, options, room, screen));
    format!("{}\n", line.trim_end())
}

/// The guides and the mark of the branch, in at most half of the room: of deep trees the near part.
fn guides(row: &TreeRow<'_>, room: Option<usize>, screen: Screen) -> String {
    let mut guides = format!("{}{}", row.guides, row.branch_mark());
    let count = guides.chars().count();
    if let Some(most) = room.map(|room| room / 2).filter(|&most| count > most) {
        guides = format!("…{}", guides.chars().skip(count - most + 1).collect::<String>());
    }
    if screen.unicode { guides } else { ascii(&guides) }
}

fn ascii(guides: &str) -> String {
    let sign = |char| match char {
        '│' => '|',
        '├' | '└' => '`',
        '─' => '-',
        '…' => '~',
        other => other,
    };
    guides.chars().map(sign).collect()
}

fn label(row: &TreeRow<'_>, options: &TreeOptions, room: Option<usize>, screen: Screen) -> String {
    let node = match &row.what {
        What::Node(node) => node,
        What::Others { count, .. } => {
            return Style::Dim.paint(&format!("({})", counted(*count as u64, "other")), screen);
        }
    };
    let name = options.names.show(node.name);
    let inlined = if node.is_inlined { " (inlined)" } else { "" };
    let lib = node.lib.filter(|_| !row.is_of_same_lib).map(|lib| format!("  {}", printable(lib)));
    let note = format!("{inlined}{}", lib.unwrap_or_default());
    let Some(room) = room else { return name + &note };
    // A name is worth more than the note on where it is.
    let left = room.saturating_sub(name.chars().count());
    let note = if note.chars().count() <= left { note } else { String::new() };
    cut(&name, room, screen.unicode) + &Style::Dim.paint(&note, screen)
}
