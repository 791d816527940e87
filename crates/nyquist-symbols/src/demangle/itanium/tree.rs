//! The parts of a C++ name, as a tree in which parts that occur more than once are shared.

/// The place of a part in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// Consecutive places of parts in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    start: u32,
    len: u32,
}

/// What follows a function's parameters, or a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
    /// The qualifier of the object: nothing, `&` or `&&`.
    pub(super) reference: &'static str,
}

/// The abbreviations of classes of the standard library: the letter, the name that a programmer writes, the whole
/// name, and the name of its constructors.
pub(super) const ABBREVIATIONS: [(u8, &str, &str, &str); 6] = [
    (b'a', "std::allocator", "std::allocator", "allocator"),
    (b'b', "std::basic_string", "std::basic_string", "basic_string"),
    (
        b's',
        "std::string",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "basic_string",
    ),
    (b'i', "std::istream", "std::basic_istream<char, std::char_traits<char> >", "basic_istream"),
    (b'o', "std::ostream", "std::basic_ostream<char, std::char_traits<char> >", "basic_ostream"),
    (b'd', "std::iostream", "std::basic_iostream<char, std::char_traits<char> >", "basic_iostream"),
];

/// A part of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'a> {
    /// Words that are printed as they are.
    Text(&'a str),
    /// A class of the standard library, by its place in [`ABBREVIATIONS`], and whether its whole name is printed.
    Abbreviated(u8, bool),
    /// A name in a scope.
    Nested(NodeId, NodeId),
    /// A name in a function.
    Local(NodeId, NodeId),
    /// The scope of what is in a function's default argument, counted from the last one on.
    DefaultArgument(u64),
    /// A name with an ABI tag.
    Tagged(NodeId, &'a str),
    /// A template with its arguments.
    Template(NodeId, List),
    /// The arguments of a parameter pack, all of which are printed.
    Pack(List),
    /// A template's parameter by its number. It stands for an argument of the function in which it is printed, because
    /// a name can refer to a type with parameters that was in the name of another function.
    Parameter(u64),
    /// A pattern for each argument of the packs in it.
    Expansion(NodeId),
    Constructor(NodeId),
    Destructor(NodeId),
    /// An operator that converts to a type.
    Conversion(NodeId),
    Operator(&'static str),
    /// A user-defined literal's operator.
    LiteralOperator(NodeId),
    Lambda(List, u64),
    UnnamedType(u64),
    StructuredBinding(List),
    /// Words before a part, such as `vtable for`.
    Prefixed(&'static str, NodeId),
    /// The construction virtual table for the first in the second.
    ConstructionTable(NodeId, NodeId),
    /// A temporary to which the reference with a name is bound.
    Temporary(NodeId, u64),
    Encoding {
        name: NodeId,
        result: Option<NodeId>,
        parameters: List,
        qualifiers: Qualifiers,
        /// The arguments of the template that the function is made of.
        arguments: List,
    },
    /// A copy of a function that the compiler has made, with the end of its symbol.
    Clone(NodeId, &'a str),
    Qualified(NodeId, Qualifiers),
    /// A type with a qualifier of a compiler.
    VendorQualified(NodeId, NodeId),
    Pointer(NodeId),
    Reference(NodeId),
    RvalueReference(NodeId),
    /// A type with a word behind it.
    Suffixed(NodeId, &'static str),
    Function {
        result: NodeId,
        parameters: List,
        qualifiers: Qualifiers,
        exceptions: Exceptions,
    },
    Array(NodeId, Option<NodeId>),
    Vector(NodeId, NodeId),
    /// A pointer to a class's member of a type.
    MemberPointer(NodeId, NodeId),
    /// A type of a width in bits, such as `_BitInt(7)`.
    Sized(&'static str, NodeId),
    Decltype(NodeId),
    /// An integer, whether it is negative, and its suffix.
    Integer(&'a str, bool, &'static str),
    /// A value of a type that has no literals of its own.
    Value(NodeId, &'a str, bool),
    /// A floating-point number of a type, as hexadecimal digits.
    Float(NodeId, &'a str),
    /// A function's parameter, from one on; 0 is `this`.
    FunctionParameter(u64),
    Unary(&'static str, NodeId),
    Postfix(NodeId, &'static str),
    Binary(&'static str, NodeId, NodeId),
    /// Parts joined by a token without blanks, as an object and its member.
    Joined(NodeId, &'static str, NodeId),
    Index(NodeId, NodeId),
    Conditional([NodeId; 3]),
    Call(NodeId, List),
    Cast(NodeId, List),
    NamedCast(&'static str, NodeId, NodeId),
    /// An operator that is a word, with its operand in parentheses.
    Word(&'static str, NodeId),
    /// How many arguments the packs in it have.
    SizeOfPack(NodeId),
    Braced(Option<NodeId>, List),
    /// A `new` expression: its type and its initial values.
    New(&'static str, NodeId, Option<List>),
    /// A fold expression: whether it is a left one, the operator, the pack, and the initial value.
    Fold(bool, &'static str, NodeId, Option<NodeId>),
}

/// What a function's type says of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceptions {
    Any,
    Noexcept(Option<NodeId>),
    Throw(List),
}

/// A name that was parsed.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    lists: Vec<NodeId>,
}

impl<'a> Tree<'a> {
    pub(super) fn add(&mut self, node: Node<'a>) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len() + self.lists.len()
    }

    pub(super) fn get(&self, id: NodeId) -> Node<'a> {
        self.nodes.get(id.0 as usize).copied().unwrap_or(Node::Text(""))
    }

    pub(super) fn add_list(&mut self, parts: &[NodeId]) -> List {
        let start = self.lists.len() as u32;
        self.lists.extend_from_slice(parts);
        List { start, len: parts.len() as u32 }
    }

    pub(super) fn list(&self, list: List) -> &[NodeId] {
        let start = list.start as usize;
        self.lists.get(start..start + list.len as usize).unwrap_or_default()
    }

    /// The name that a class's constructors have.
    pub(super) fn base_name(&self, mut id: NodeId) -> NodeId {
        // Each step leads to an earlier part.
        loop {
            id = match self.get(id) {
                Node::Nested(_, name)
                | Node::Local(_, name)
                | Node::Template(name, _)
                | Node::Tagged(name, _) => name,
                _ => return id,
            };
        }
    }
}
