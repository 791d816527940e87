//! The tree of calls of V8's profiles, whose nodes become stacks.

use nyquist_profile::{FuncKind, StackId};
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
    /// The stacks of its lines, each with the number of samples up to and including this line.
    lines: Vec<(u64, StackId)>,
}

impl NodeStack {
    /// The stack of one of its samples, by its number. A file does not state the line of each sample, but
    /// only the number of samples for each line. So samples are assigned in the order of the lines.
    pub(super) fn of_sample(&self, number: u64) -> Option<StackId> {
        let place = self.lines.partition_point(|&(until, _)| until <= number);
        self.lines.get(place).or(self.lines.last()).map(|&(_, stack)| stack).or(self.stack)
    }
}

impl Tree {
    /// The stack of a node. `None` for the root and for unknown nodes.
    pub(crate) fn stack(&self, node: u64) -> Option<StackId> {
        self.find(node)?.stack
    }

    /// Where the stack of a node is.
    pub(super) fn place(&self, node: u64) -> Option<usize> {
        let number = usize::try_from(node).ok().and_then(|node| self.small.get(node)).copied().unwrap_or(0);
        (number as usize).checked_sub(1).or_else(|| self.large.get(&node).copied())
    }

    fn find(&self, node: u64) -> Option<&NodeStack> {
        self.stacks.get(self.place(node)?)
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

    /// Adds nodes in any order. Nodes that are not reachable from a root, or form a cycle, are left out.
    pub(crate) fn add(&mut self, importer: &mut Importer, nodes: &[Node]) {
        const IDS_OF_A_NODE: u64 = 8;
        self.small_end = self.small_end.saturating_add((nodes.len() as u64).saturating_mul(IDS_OF_A_NODE));
        let mut parents: FxHashMap<u64, u64> = FxHashMap::default();
        for node in nodes {
            parents.extend(node.parent.map(|parent| (node.id, parent)));
            parents.extend(node.children.iter().map(|&child| (child, node.id)));
        }
        let mut children: FxHashMap<u64, Vec<&Node>> = FxHashMap::default();
        let mut waiting: Vec<&Node> = Vec::new();
        for node in nodes.iter().rev() {
            match parents.get(&node.id) {
                Some(parent) if self.place(*parent).is_none() => {
                    children.entry(*parent).or_default().push(node);
                }
                _ => waiting.push(node),
            }
        }
        while let Some(node) = waiting.pop() {
            let parent = parents.get(&node.id).and_then(|&parent| self.find(parent));
            let stack = add_node(importer, parent.and_then(|parent| parent.stack), node);
            self.insert(node.id, stack);
            waiting.extend(children.remove(&node.id).unwrap_or_default());
        }
    }
}

fn add_node(importer: &mut Importer, prefix: Option<StackId>, node: &Node) -> NodeStack {
    let code = &node.call_frame;
    let is_root = code.function_name == "(root)" && prefix.is_none();
    if is_root {
        return NodeStack { stack: None, is_idle: false, lines: Vec::new() };
    }
    let name = if code.function_name.is_empty() { "(anonymous)" } else { &code.function_name };
    let url = &code.url;
    // The line of a call frame is that of its function.
    let position = |number: Option<f64>| {
        number
            .filter(|&number| number >= 0.0 && !url.is_empty())
            .map(|number| (number as u32).saturating_add(1))
    };
    let code_of = CodePosition {
        name,
        file: Some(url),
        start_line: position(code.line_number),
        line: position(code.line_number),
        column: position(code.column_number),
        // `(program)` and the runtime's own functions have no place in the source.
        kind: if url.is_empty() { FuncKind::Native } else { FuncKind::JavaScript },
        ..CodePosition::default()
    };
    let frame = importer.frame(&code_of);
    let stack = Some(importer.stack(prefix, frame));
    let mut until = 0_u64;
    let ticks = node.position_ticks.iter().filter(|tick| !url.is_empty() && tick.line >= 1.0);
    let lines = ticks.map(|tick| {
        until = until.saturating_add(tick.ticks as u64);
        let frame = importer.frame(&CodePosition { line: Some(tick.line as u32), column: None, ..code_of });
        (until, importer.stack(prefix, frame))
    });
    NodeStack { stack, is_idle: code.function_name == "(idle)", lines: lines.collect() }
}
