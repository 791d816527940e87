//! The call tree and the inverted tree.

use super::context::{Report, TREE_PERCENT, TREE_ROWS};
use crate::number::counted;
use crate::scale::Scale;
use crate::text::{Names, Screen, Style, Text, cut_name, one_line};
use nyquist_analysis::schema::{NodeRow, Rows};
use nyquist_analysis::{Tree, TreeNode, View, own_functions};
use nyquist_profile::FuncId;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The part of a tree to show, and its form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeOptions {
    pub(crate) inverted: bool,
    /// The only function that may be a root.
    pub(crate) root: Option<FuncId>,
    /// The least weight of a node.
    pub(crate) min_weight: u64,
    /// The maximum number of levels.
    pub(crate) max_depth: usize,
    /// The maximum number of nodes; those of the greatest weight are kept.
    pub(crate) limit: usize,
    pub(crate) scale: Scale,
    pub(crate) names: Names,
}

impl TreeOptions {
    fn roots<'v>(&self, tree: &Tree<'v>) -> Vec<TreeNode<'v>> {
        let mut roots = tree.roots();
        roots.retain(|node| self.root.is_none_or(|root| node.func == root));
        roots
    }
}

/// The nodes that pass the options, with their depths, each before its children.
pub(crate) fn tree_nodes<'v>(view: &'v View<'v>, options: &TreeOptions) -> Vec<(usize, TreeNode<'v>)> {
    let rows = chosen(view, options).rows.into_iter();
    rows.filter_map(|row| match row.what {
        LineSubject::Node(node) => Some((row.depth, node)),
        LineSubject::Others { .. } => None,
    })
    .collect()
}

/// A tree as text: the shares, then the names, each below its caller (inverted: below its callee). An only
/// child is directly below its parent, without further indentation.
pub(super) fn text(report: &Report<'_>, inverted: bool) -> Text {
    let (options, screen) = (options(report, inverted), report.screen);
    let mut chosen = chosen(report.view, &options);
    let is_whole = inverted || report.args.limit == Some(0);
    let is_shortened = !is_whole && begin_at_own_code(&mut chosen.rows, report.view, options.min_weight);
    let heading = if inverted { " TIME  CALLED FROM" } else { "TOTAL    SELF  FUNCTION" };
    let mut text = Style::Bold.paint(heading, screen) + "\n";
    for row in &chosen.rows {
        text.push(line(row, &options, screen));
    }
    if chosen.is_cut {
        text.push("There are more nodes (--limit 0 shows all)\n");
    } else if is_shortened {
        text.push("What calls the program's own code is left out (--limit 0 shows it)\n");
    }
    text
}

/// Leaves out what only starts the program or a thread: above each root's first function of the program's own code, the
/// callers that are alone on their level and have no time of their own. Returns whether there were any.
fn begin_at_own_code(rows: &mut Vec<TreeRow<'_>>, view: &View<'_>, min_weight: u64) -> bool {
    let is_own = own_functions(view.profile());
    let before = rows.len();
    let mut left = std::mem::take(rows).into_iter().peekable();
    while let Some(root) = left.next() {
        let mut chain = vec![root];
        while let Some(only) = left.next_if(|row| {
            let above = chain.last().and_then(TreeRow::node);
            let passes_on = above.is_some_and(|node| {
                !is_own[node.func.index()] && node.self_amount.weight < min_weight.max(1)
            });
            row.depth > 0 && row.branch == Branch::Chain && row.node().is_some() && passes_on
        }) {
            chain.push(only);
        }
        let is_start = |row: &TreeRow<'_>| row.node().is_some_and(|node| is_own[node.func.index()]);
        let is_main = |row: &TreeRow<'_>| row.node().is_some_and(|node| node.name == "main");
        let start = chain.iter().position(is_start).or_else(|| chain.iter().position(is_main)).unwrap_or(0);
        let mut shown = chain.split_off(start);
        if let Some(root) = chain.first() {
            // It takes the root's place.
            (shown[0].branch, shown[0].guides) = (root.branch, root.guides.clone());
            shown[0].is_of_same_lib = false;
        }
        rows.extend(shown);
        while let Some(row) = left.next_if(|row| row.depth > 0) {
            rows.push(row);
        }
    }
    rows.len() < before
}

/// The nodes of a tree.
#[derive(Debug, Serialize)]
pub(super) struct TreeAnswer<'v> {
    nodes: Vec<NodeRow<'v>>,
    /// Whether the limit left out nodes that are heavy enough.
    is_cut: bool,
}

pub(super) fn answer<'v>(report: &Report<'v>, inverted: bool) -> TreeAnswer<'v> {
    let (rows, chosen) = (Rows::of(report.view), chosen(report.view, &options(report, inverted)));
    let node = |row: &TreeRow<'v>| row.node().map(|node| rows.node(row.depth, node));
    TreeAnswer { nodes: chosen.rows.iter().filter_map(node).collect(), is_cut: chosen.is_cut }
}

fn options(report: &Report<'_>, inverted: bool) -> TreeOptions {
    TreeOptions {
        inverted,
        root: None,
        min_weight: report.min_weight(TREE_PERCENT),
        max_depth: report.args.depth.map_or(usize::MAX, |depth| depth as usize),
        limit: report.limit(TREE_ROWS),
        scale: report.scale,
        names: report.names,
    }
}

/// A line of a tree.
struct TreeRow<'v> {
    depth: usize,
    what: LineSubject<'v>,
    branch: Branch,
    /// The vertical lines at its left.
    guides: String,
    /// Whether it is in the lib of the node above.
    is_of_same_lib: bool,
}

/// The subject of a line.
enum LineSubject<'v> {
    Node(TreeNode<'v>),
    /// Children that are too light to show.
    Others {
        count: usize,
        weight: u64,
    },
}

/// The branch from a node to the one above.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    /// The only child, or the only root: directly below.
    Chain,
    /// One of several, not the last.
    Middle,
    /// The last of several.
    Last,
}

/// The nodes that are shown, in order.
struct ShownNodes<'v> {
    rows: Vec<TreeRow<'v>>,
    /// Whether further nodes are heavy enough.
    is_cut: bool,
}

/// A candidate node.
struct Candidate<'v> {
    node: TreeNode<'v>,
    depth: usize,
    parent: Option<usize>,
    /// Whether it is shown.
    is_shown: bool,
    children: Children,
}

/// The children of a node, or the roots.
#[derive(Default)]
struct Children {
    retained: Vec<usize>,
    others: usize,
    others_weight: u64,
}

/// Expands nodes from the heaviest on, until the limit is reached.
#[derive(Default)]
struct Heaviest<'v> {
    nodes: Vec<Candidate<'v>>,
    roots: Children,
    /// The nodes that are not expanded yet. Among nodes of the same weight, the one found first is next.
    ahead: BinaryHeap<(u64, Reverse<usize>)>,
}

impl<'v> Heaviest<'v> {
    fn find(tree: &Tree<'v>, options: &TreeOptions) -> Self {
        let mut found = Self::default();
        found.roots = found.add(options.roots(tree), None, options);
        let mut count = 0;
        while count < options.limit
            && let Some((_, Reverse(index))) = found.ahead.pop()
        {
            count += 1;
            found.nodes[index].is_shown = true;
            let (node, depth) = (&found.nodes[index].node, found.nodes[index].depth);
            if node.has_children && depth + 1 < options.max_depth {
                let children = tree.children(node);
                found.nodes[index].children = found.add(children, Some(index), options);
            }
        }
        found
    }

    fn add(&mut self, nodes: Vec<TreeNode<'v>>, parent: Option<usize>, options: &TreeOptions) -> Children {
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        let mut children = Children::default();
        for node in nodes {
            let weight = node.total.weight;
            if weight < options.min_weight.max(1) {
                children.others += 1;
                children.others_weight = children.others_weight.saturating_add(weight);
                continue;
            }
            let index = self.nodes.len();
            children.retained.push(index);
            self.ahead.push((weight, Reverse(index)));
            self.nodes.push(Candidate {
                node,
                depth,
                parent,
                is_shown: false,
                children: Children::default(),
            });
        }
        children
    }

    /// Counts the nodes that were not reached as others. Returns whether there were any.
    fn give_up_rest(&mut self) -> bool {
        let is_cut = !self.ahead.is_empty();
        for (weight, Reverse(index)) in std::mem::take(&mut self.ahead) {
            let siblings = match self.nodes[index].parent {
                Some(parent) => &mut self.nodes[parent].children,
                None => &mut self.roots,
            };
            siblings.others += 1;
            siblings.others_weight = siblings.others_weight.saturating_add(weight);
        }
        is_cut
    }
}

/// Finds the nodes that are heavy enough, and sorts them.
fn chosen<'v>(view: &'v View<'v>, options: &TreeOptions) -> ShownNodes<'v> {
    let tree = if options.inverted { view.inverted_tree() } else { view.call_tree() };
    let mut found = Heaviest::find(&tree, options);
    let is_cut = found.give_up_rest();
    let (roots, mut nodes) = (found.roots, found.nodes.into_iter().map(Some).collect::<Vec<_>>());
    let mut rows = Vec::new();
    let mut ahead = children_rows(&roots, &mut nodes, None, options);
    while let Some((row, children)) = ahead.pop() {
        ahead.extend(children_rows(&children, &mut nodes, Some(&row), options));
        rows.push(row);
    }
    ShownNodes { rows, is_cut }
}

/// The lines of the children of a node, each with its own children, in reverse order.
fn children_rows<'v>(
    children: &Children,
    nodes: &mut [Option<Candidate<'v>>],
    parent: Option<&TreeRow<'v>>,
    options: &TreeOptions,
) -> Vec<(TreeRow<'v>, Children)> {
    let shown = children
        .retained
        .iter()
        .filter_map(|&index| nodes[index].take())
        .filter(|retained| retained.is_shown);
    let mut what: Vec<_> =
        shown.map(|retained| (LineSubject::Node(retained.node), retained.children)).collect();
    // Below a node without shown children, others would only repeat its weight.
    if !what.is_empty() && children.others_weight >= options.min_weight.max(1) {
        let others = LineSubject::Others { count: children.others, weight: children.others_weight };
        what.push((others, Children::default()));
    }
    let count = what.len();
    let lib = parent.and_then(|parent| parent.node()).and_then(|node| node.lib);
    let rows = what.into_iter().enumerate().map(|(index, (what, children))| {
        let row = TreeRow {
            depth: parent.map_or(0, |parent| parent.depth + 1),
            is_of_same_lib: matches!((&what, parent), (LineSubject::Node(node), Some(_)) if node.lib == lib),
            what,
            branch: match index + 1 {
                _ if count == 1 => Branch::Chain,
                place if place == count => Branch::Last,
                _ => Branch::Middle,
            },
            guides: parent.map(TreeRow::guides_below).unwrap_or_default(),
        };
        (row, children)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.reverse();
    rows
}

impl<'v> TreeRow<'v> {
    fn node(&self) -> Option<&TreeNode<'v>> {
        match &self.what {
            LineSubject::Node(node) => Some(node),
            LineSubject::Others { .. } => None,
        }
    }

    /// The guides of the node's children.
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
            LineSubject::Node(node) => (node.total.weight, node.self_amount.weight),
            LineSubject::Others { weight, .. } => (*weight, 0),
        }
    }
}

fn line(row: &TreeRow<'_>, options: &TreeOptions, screen: Screen) -> Text {
    let (total, own) = row.weights();
    let scale = options.scale;
    let number = |weight: u64| {
        let style = Style::of_share(scale.share(weight));
        style.paint(&format!("{:>6}", scale.percent(weight)), screen)
    };
    let numbers = if options.inverted { number(total) } else { number(total) + "  " + number(own) };
    let taken = if options.inverted { 8 } else { 16 };
    let room = screen.width.map(|width| width.saturating_sub(taken).max(24));
    let guides = guides(row, room, screen);
    let room = room.map(|room| room.saturating_sub(guides.chars().count()));
    let line = numbers + "  " + Style::Dim.paint(&guides, screen) + label(row, options, room, screen);
    line.trim_end() + "\n"
}

/// The guides and the mark of the branch, in at most half of the width. Deep trees show the part nearest
/// to the name.
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

fn label(row: &TreeRow<'_>, options: &TreeOptions, room: Option<usize>, screen: Screen) -> Text {
    let node = match &row.what {
        LineSubject::Node(node) => node,
        LineSubject::Others { count, .. } => {
            return Style::Dim.paint(&format!("({})", counted(*count as u64, "other")), screen);
        }
    };
    let name = options.names.show(node.name);
    let inlined = if node.is_inlined { " (inlined)" } else { "" };
    let lib = node.lib.filter(|_| !row.is_of_same_lib).map(|lib| format!("  {}", one_line(lib)));
    let note = format!("{inlined}{}", lib.unwrap_or_default());
    let Some(room) = room else { return Text::from(name + &note) };
    // A name is more important than the note on its place.
    let left = room.saturating_sub(name.chars().count());
    let note = if note.chars().count() <= left { note } else { String::new() };
    Text::from(cut_name(&name, room, screen.unicode)) + Style::Dim.paint(&note, screen)
}
