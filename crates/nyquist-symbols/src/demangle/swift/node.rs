//! The kinds of nodes on the stack of a mangled name.

use std::rc::Rc;

/// The kind of a node, which determines how it can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A plain name: of a module, of a declaration, or a label.
    Identifier,
    /// A name that can only be that of a declaration: private, local, or of an operator.
    Declaration,
    /// The discriminator of private declarations without a name.
    Discriminator,
    Module,
    /// An entity that is no type: a function, a variable, an accessor, a closure, an extension.
    Entity,
    Type,
    /// `y`
    EmptyList,
    /// `_`, after the first element of a list.
    First,
    Signature,
    Requirement,
    /// An annotation of a function type, such as that it throws.
    Annotation,
    Variadic,
    Conformance,
    Retroactive,
    /// An attribute before the whole name.
    Attribute,
}

/// A node on the stack.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) text: Rc<str>,
    /// The number of elements of a tuple, or of parameters of a function type.
    pub(super) count: Option<usize>,
    pub(super) trait_: NodeTrait,
}

/// Another property that determines how a node is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeTrait {
    #[default]
    None,
    /// A type that is a class, whose objects are allocated.
    Class,
    /// A type that is a function type.
    Function,
    /// An entity whose inner declarations are local to it.
    Body,
    /// A declaration that is local, and has a number.
    Local,
}

impl Node {
    pub(super) fn new(kind: NodeKind, text: Rc<str>) -> Self {
        Self { kind, text, count: None, trait_: NodeTrait::None }
    }

    pub(super) fn plain(kind: NodeKind) -> Self {
        Self::new(kind, "".into())
    }

    pub(super) fn with(self, trait_: NodeTrait) -> Self {
        Self { trait_, ..self }
    }

    /// Whether declarations can be in it.
    pub(super) fn is_path(&self) -> bool {
        matches!(self.kind, NodeKind::Identifier | NodeKind::Module | NodeKind::Entity | NodeKind::Type)
    }
}
