//! What is on the stack of a mangled name.

use super::{MAX_MADE, MAX_NODES, Reader};
use std::rc::Rc;

/// What something on the stack can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name as it is written: of a module, of a declaration, a label.
    Identifier,
    /// A name that can be only a declaration's: private, local, or of an operator.
    Declaration,
    /// What tells private declarations without a name apart.
    Discriminator,
    Module,
    /// What is no type: a function, a variable, an accessor, a closure, an extension.
    Entity,
    Type,
    /// `y`
    EmptyList,
    /// `_`, behind the first element of a list.
    First,
    Signature,
    Requirement,
    /// What is said of a function type beside its types: that it throws, for example.
    Annotation,
    Variadic,
    Conformance,
    Retroactive,
    /// What is said before the whole name.
    Attribute,
}

/// One thing on the stack.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) text: Rc<str>,
    /// Of a tuple, how many elements it has; of a function type, how many parameters.
    pub(super) count: Option<usize>,
    pub(super) trait_: Trait,
}

/// What else decides how something is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trait {
    #[default]
    None,
    /// Of a type: it is a class, whose objects are allocated.
    Class,
    /// Of a type: it is that of functions.
    Function,
    /// Of an entity: what is declared in it is local to it.
    Body,
    /// Of a declaration: it is local, and has a number.
    Local,
}

impl Node {
    pub(super) fn new(kind: Kind, text: Rc<str>) -> Self {
        Self { kind, text, count: None, trait_: Trait::None }
    }

    pub(super) fn plain(kind: Kind) -> Self {
        Self::new(kind, "".into())
    }

    pub(super) fn with(self, trait_: Trait) -> Self {
        Self { trait_, ..self }
    }

    /// Whether declarations can be in it.
    pub(super) fn is_path(&self) -> bool {
        matches!(self.kind, Kind::Identifier | Kind::Module | Kind::Entity | Kind::Type)
    }
}

impl Reader<'_> {
    pub(super) fn push(&mut self, node: Node) -> Option<()> {
        self.stack.push(node);
        (self.stack.len() <= MAX_NODES).then_some(())
    }

    pub(super) fn substitutable(&mut self, node: &Node) -> Option<()> {
        self.substitutions.push(node.clone());
        (self.substitutions.len() <= MAX_NODES).then_some(())
    }

    /// Takes what is on top, if it is of that kind.
    pub(super) fn pop(&mut self, kind: Kind) -> Option<Node> {
        self.stack.pop_if(|node| node.kind == kind)
    }

    pub(super) fn pop_type(&mut self) -> Option<Node> {
        self.pop(Kind::Type)
    }

    pub(super) fn pop_name(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| matches!(node.kind, Kind::Identifier | Kind::Declaration))
    }

    pub(super) fn pop_module(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| matches!(node.kind, Kind::Identifier | Kind::Module))
    }

    pub(super) fn pop_entity(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| matches!(node.kind, Kind::Entity | Kind::Type))
    }

    pub(super) fn pop_context(&mut self) -> Option<Node> {
        self.stack.pop_if(|node| node.is_path())
    }

    /// The elements of a list, the last one of which is on top.
    pub(super) fn pop_list(&mut self, pop: impl Fn(&mut Self) -> Option<Node>) -> Option<Vec<Node>> {
        let mut elements = Vec::new();
        if self.pop(Kind::EmptyList).is_some() {
            return Some(elements);
        }
        loop {
            let is_first = self.pop(Kind::First).is_some();
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

    /// Something new, of a text that is made.
    pub(super) fn node(&mut self, kind: Kind, text: String) -> Option<Node> {
        Some(Node::new(kind, self.made(text)?))
    }
}

/// Texts with commas between them. It ends where it is longer than any name may be: copies cost nothing on the stack.
pub(super) fn joined(nodes: &[Node]) -> String {
    joined_by(nodes.iter(), ", ", "")
}

/// Texts with something between them, and something behind each; as far as [`joined`] goes.
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
