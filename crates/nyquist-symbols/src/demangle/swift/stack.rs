//! The stack of a mangled name.

use super::node::{Node, NodeKind};
use super::reader::{MAX_MADE, MAX_NODES, MangledNameReader};

impl MangledNameReader<'_> {
    pub(super) fn push(&mut self, node: Node) -> Option<()> {
        self.stack.push(node);
        (self.stack.len() <= MAX_NODES).then_some(())
    }

    pub(super) fn substitutable(&mut self, node: &Node) -> Option<()> {
        self.substitutions.push(node.clone());
        (self.substitutions.len() <= MAX_NODES).then_some(())
    }

    /// Pops the top node, if it has this kind.
    pub(super) fn pop(&mut self, kind: NodeKind) -> Option<Node> {
        self.stack.pop_if(|node| node.kind == kind)
    }

    pub(super) fn pop_type(&mut self) -> Option<Node> {
        self.pop(NodeKind::Type)
    }

    pub(super) fn pop_name(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| matches!(node.kind, NodeKind::Identifier | NodeKind::Declaration))
    }

    pub(super) fn pop_module(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| matches!(node.kind, NodeKind::Identifier | NodeKind::Module))
    }

    pub(super) fn pop_entity(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| matches!(node.kind, NodeKind::Entity | NodeKind::Type))
    }

    pub(super) fn pop_context(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| node.is_path())
    }

    /// The elements of a list, the last one of which is on top.
    pub(super) fn pop_list(&mut self, pop: impl Fn(&mut Self) -> Option<Node>) -> Option<Vec<Node>> {
        let mut elements = Vec::new();
        if self.pop(NodeKind::EmptyList).is_some() {
            return Some(elements);
        }
        loop {
            let is_first = self.pop(NodeKind::First).is_some();
            elements.push(pop(self)?);
            if is_first {
                elements.reverse();
                return Some(elements);
            }
        }
    }

    pub(super) fn pop_types(&mut self) -> Option<Vec<Node>> {
        self.pop_list(Self::pop_type)
    }

    /// A new node with this text.
    pub(super) fn node(&mut self, kind: NodeKind, text: String) -> Option<Node> {
        Some(Node::new(kind, self.store_text(text)?))
    }
}

/// Texts with commas between them. It stops at the longest length of a name, because the copies on the stack
/// cost nothing.
pub(super) fn joined(nodes: &[Node]) -> String {
    joined_by(nodes.iter(), ", ", "")
}

/// Texts with `between` between them, and `behind` after each, up to the same length as [`joined`].
pub(super) fn joined_by<'a>(nodes: impl Iterator<Item = &'a Node>, between: &str, behind: &str) -> String {
    let mut text = String::new();
    for node in nodes {
        if text.len() > MAX_MADE {
            break;
        }
        if !text.is_empty() {
            text.push_str(between);
        }
        text.extend([&*node.text, behind]);
    }
    text
}
