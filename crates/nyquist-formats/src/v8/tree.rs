//! The tree of calls of V8's profiles, whose nodes become stacks.

use std::ops::Range;

use nyquist_profile::{FrameId, FuncKind, StackId};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::import::{CodePosition, Importer};

/// A node of the tree of calls. DevTools' traces have parents, and files have children.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub id: u64,
    #[serde(default)]
    pub parent: Option<u64>,
    #[serde(default)]
    pub children: Vec<u64>,
    pub call_frame: CallFrame,
    /// The lines at which it was sampled, with the numbers of samples.
    #[serde(default)]
    pub position_ticks: Vec<PositionTick>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct PositionTick {
    /// From 1 on.
    line: f64,
    ticks: f64,
}

impl Node {
    /// A node that is a part of another document. `None` if it is invalid.
    pub(crate) fn deserialize_from(value: &serde_json::Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CallFrame {
    pub function_name: String,
    pub url: String,
    /// Counts from 0 in files. -1 if there is none.
    pub line_number: Option<f64>,
    /// Counts from 0 in files. -1 if there is none.
    pub column_number: Option<f64>,
}

/// The nodes' stacks.
#[derive(Default)]
pub(crate) struct Tree {
    pub(super) stacks: Vec<NodeStack>,
    /// The stacks of the nodes' lines, each with the number of samples of its node up to and including this line.
    lines: Vec<(u64, StackId)>,
    /// Where the stacks of nodes with small ids are, which V8's own are. 0 for none, and otherwise one more.
    small: Vec<u32>,
    /// Ids below it are small: a multiple of the number of nodes, so that memory is linear in them.
    small_end: u64,
    /// Where the stacks of other nodes are.
    large: FxHashMap<u64, usize>,
}

pub(super) struct NodeStack {
    /// `None` for the root, which is no function.
    stack: Option<StackId>,
    pub(super) is_idle: bool,
    /// Its part of [`Tree::lines`].
    lines: Range<u32>,
}

impl Tree {
    /// The tree of these nodes.
    pub(crate) fn of(importer: &mut Importer, nodes: &[Node]) -> Self {
        let mut tree = TreeBuilder::default();
        for node in nodes {
            tree.add(importer, node);
        }
        tree.finish(importer)
    }

    /// The stack of a node. `None` for the root and for unknown nodes.
    pub(crate) fn stack(&self, node: u64) -> Option<StackId> {
        self.stacks.get(self.place(node)?)?.stack
    }

    /// Where the stack of a node is.
    pub(super) fn place(&self, node: u64) -> Option<usize> {
        let number = usize::try_from(node).ok().and_then(|node| self.small.get(node)).copied().unwrap_or(0);
        (number as usize).checked_sub(1).or_else(|| self.large.get(&node).copied())
    }

    /// The stack of one of a node's samples, by its number. A file does not state the line of each sample, but
    /// only the number of samples for each line. So samples are assigned in the order of the lines.
    pub(super) fn of_sample(&self, node: &NodeStack, number: u64) -> Option<StackId> {
        let lines = &self.lines[node.lines.start as usize..node.lines.end as usize];
        let place = lines.partition_point(|&(until, _)| until <= number);
        lines.get(place).or(lines.last()).map(|&(_, stack)| stack).or(node.stack)
    }

    /// Adds the stack of a node, in place of that of another one with the same id.
    fn insert(&mut self, node: u64, stack: NodeStack) {
        let place = self.stacks.len();
        self.stacks.push(stack);
        let Some(number) = u32::try_from(place + 1).ok().filter(|_| node < self.small_end) else {
            self.large.insert(node, place);
            return;
        };
        let at = node as usize;
        if at >= self.small.len() {
            self.small.resize(at + 1, 0);
        }
        self.small[at] = number;
    }
}

/// A node without its texts.
struct ReadNode {
    id: u64,
    frame: FrameId,
    is_root: bool,
    is_idle: bool,
    /// Its part of [`TreeBuilder::lines`].
    lines: Range<u32>,
}

/// Nodes in any order, of which each is read once.
#[derive(Default)]
pub(super) struct TreeBuilder {
    nodes: Vec<ReadNode>,
    /// The frames of the nodes' lines, each with the number of samples up to and including this line.
    lines: Vec<(u64, FrameId)>,
    /// The parents of nodes, by ids.
    parents: FxHashMap<u64, u64>,
}

impl TreeBuilder {
    /// Adds a node.
    pub(super) fn add(&mut self, importer: &mut Importer, node: &Node) {
        self.parents.extend(node.parent.map(|parent| (node.id, parent)));
        self.parents.extend(node.children.iter().map(|&child| (child, node.id)));
        let code = code_of(&node.call_frame);
        let frame = importer.frame(&code);
        // A larger number would need 100 gigabytes.
        let count = |lines: &Vec<_>| u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let start = count(&self.lines);
        let mut until = 0_u64;
        for tick in
            node.position_ticks.iter().filter(|tick| !node.call_frame.url.is_empty() && tick.line >= 1.0)
        {
            until = until.saturating_add(tick.ticks as u64);
            let line = CodePosition { line: Some(tick.line as u32), column: None, ..code };
            self.lines.push((until, importer.frame(&line)));
        }
        let name = &node.call_frame.function_name;
        let (is_root, is_idle) = (name == "(root)", name == "(idle)");
        self.nodes.push(ReadNode { id: node.id, frame, is_root, is_idle, lines: start..count(&self.lines) });
    }

    /// The stacks. Nodes that are not reachable from a root, or form a cycle, are left out.
    pub(super) fn finish(self, importer: &mut Importer) -> Tree {
        const IDS_OF_A_NODE: u64 = 8;
        let Self { nodes, lines, parents } = self;
        let small_end = (nodes.len() as u64).saturating_mul(IDS_OF_A_NODE);
        let mut tree = Tree { small_end, ..Tree::default() };
        let mut children = Children::of(&nodes, &parents);
        let mut waiting: Vec<usize> = (0..nodes.len()).rev().collect();
        waiting.retain(|&at| !parents.contains_key(&nodes[at].id));
        while let Some(at) = waiting.pop() {
            let node = &nodes[at];
            let prefix = parents.get(&node.id).and_then(|&parent| tree.stack(parent));
            let stack = tree.stack_of(importer, prefix, (node, &lines));
            tree.insert(node.id, stack);
            waiting.extend(children.take(node.id));
        }
        tree
    }
}

impl Tree {
    /// The stack of a node on top of `prefix`, with those of its lines.
    fn stack_of(
        &mut self,
        importer: &mut Importer,
        prefix: Option<StackId>,
        (node, lines): (&ReadNode, &[(u64, FrameId)]),
    ) -> NodeStack {
        let start = self.lines.len() as u32;
        if node.is_root && prefix.is_none() {
            return NodeStack { stack: None, is_idle: false, lines: start..start };
        }
        let stack = Some(importer.stack(prefix, node.frame));
        for &(until, frame) in &lines[node.lines.start as usize..node.lines.end as usize] {
            self.lines.push((until, importer.stack(prefix, frame)));
        }
        NodeStack { stack, is_idle: node.is_idle, lines: start..self.lines.len() as u32 }
    }
}

/// The children of nodes, by their parents' ids.
struct Children(Vec<(u64, usize)>);

impl Children {
    /// Marks children that were taken.
    const TAKEN: usize = usize::MAX;

    fn of(nodes: &[ReadNode], parents: &FxHashMap<u64, u64>) -> Self {
        let child = |(at, node): (usize, &ReadNode)| Some((*parents.get(&node.id)?, at));
        let mut children: Vec<_> = nodes.iter().enumerate().filter_map(child).collect();
        children.sort_unstable();
        Self(children)
    }

    /// The children of a node, the last one first. None if they were taken, by another node of the same id or in a
    /// circle.
    fn take(&mut self, parent: u64) -> impl Iterator<Item = usize> + '_ {
        let start = self.0.partition_point(|child| child.0 < parent);
        let is_there = self.0.get(start).is_some_and(|child| child.1 != Self::TAKEN);
        let count = self.0[start..].iter().take_while(|child| is_there && child.0 == parent).count();
        self.0[start..start + count]
            .iter_mut()
            .rev()
            .map(|child| std::mem::replace(&mut child.1, Self::TAKEN))
    }
}

/// The code of a call frame.
fn code_of(frame: &CallFrame) -> CodePosition<'_> {
    let url = &frame.url;
    // The line of a call frame is that of its function.
    let position = |number: Option<f64>| {
        number
            .filter(|&number| number >= 0.0 && !url.is_empty())
            .map(|number| (number as u32).saturating_add(1))
    };
    CodePosition {
        name: if frame.function_name.is_empty() { "(anonymous)" } else { &frame.function_name },
        file: Some(url),
        start_line: position(frame.line_number),
        line: position(frame.line_number),
        column: position(frame.column_number),
        // `(program)` and the runtime's own functions have no place in the source.
        kind: if url.is_empty() { FuncKind::Native } else { FuncKind::JavaScript },
        ..CodePosition::default()
    }
}
