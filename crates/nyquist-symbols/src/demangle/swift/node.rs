//! The kinds of things that are on the stack of a mangled name.

use std::rc::Rc;

/// What something on the stack can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name as it is written: of a module, of a declaration, a label.
    Identifier,
    /// A name that can be only a declaration's: private, local, or of an operator.
    Declaration,
    /// What distinguishes private declarations without a name.
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
