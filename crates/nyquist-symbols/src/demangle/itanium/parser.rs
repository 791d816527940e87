//! The state of a parser of C++ names, and the reading of their smallest parts.

use super::tree::{Exceptions, List, Node, NodeId, Qualifiers, Tree};

/// How deeply a name may nest before it is left mangled.
const MAX_DEPTH: u32 = 128;
/// The most parts of a name. Each comes from at least one letter, and parts that are used again are shared.
const MAX_PARTS: usize = 1 << 17;

/// Parses a name from left to right.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) tree: Tree<'a>,
    /// What `S_`, `S0_` and so on stand for.
    pub(super) substitutions: Vec<NodeId>,
    /// The arguments of the function template, which `T_`, `T0_` and so on stand for.
    pub(super) arguments: List,
    /// Whether arguments may follow a template parameter.
    pub(super) parameters_have_arguments: bool,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            tree: Tree::default(),
            substitutions: Vec::new(),
            arguments: List::default(),
            parameters_have_arguments: true,
            depth: 0,
        }
    }

    /// Parses a part that may contain others, if it is not nested too deeply.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH || self.tree.len() > MAX_PARTS {
            return None;
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The letter at a distance; zero beyond the end.
    pub(super) fn peek_at(&self, distance: usize) -> u8 {
        self.text.as_bytes().get(self.at + distance).copied().unwrap_or_default()
    }

    pub(super) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// Takes some letters if they come next.
    pub(super) fn take(&mut self, letters: &str) -> bool {
        let is_next = self.rest().starts_with(letters);
        self.at += if is_next { letters.len() } else { 0 };
        is_next
    }

    /// The same, of which the name cannot be without.
    pub(super) fn expect(&mut self, letters: &str) -> Option<()> {
        self.take(letters).then_some(())
    }

    /// Takes letters for as long as a condition holds.
    pub(super) fn take_while(&mut self, holds: impl Fn(u8) -> bool) -> &'a str {
        let len = self.rest().bytes().take_while(|letter| holds(*letter)).count();
        let taken = self.rest().get(..len).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.take_while(|letter| letter.is_ascii_digit()).parse().ok()
    }

    /// A number that is left out if it is zero, up to an underscore.
    pub(super) fn sequence_number(&mut self) -> Option<u64> {
        let number = if self.peek().is_ascii_digit() { self.number()?.checked_add(1)? } else { 0 };
        self.expect("_")?;
        Some(number)
    }

    /// The same of base 36.
    pub(super) fn sequence_id(&mut self) -> Option<usize> {
        let digits = self.take_while(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
        self.expect("_")?;
        if digits.is_empty() {
            return Some(0);
        }
        usize::from_str_radix(digits, 36).ok()?.checked_add(1)
    }

    /// A name with its length before it.
    pub(super) fn source_name(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.number()?).ok()?;
        let name = self.rest().get(..len).filter(|name| !name.is_empty())?;
        self.at += len;
        Some(
            if name.starts_with("_GLOBAL__N")
                || name.starts_with("_GLOBAL_.N")
                || name.starts_with("_GLOBAL_$N")
            {
                "(anonymous namespace)"
            } else {
                name
            },
        )
    }

    pub(super) fn add(&mut self, node: Node<'a>) -> NodeId {
        self.tree.add(node)
    }

    pub(super) fn text_node(&mut self, text: &'a str) -> NodeId {
        self.add(Node::Text(text))
    }

    /// Adds a part that can be referred to.
    pub(super) fn add_substitution(&mut self, id: NodeId) -> NodeId {
        self.substitutions.push(id);
        id
    }

    /// Parts up to an `E`.
    pub(super) fn list_to_end(&mut self, parse: impl Fn(&mut Self) -> Option<NodeId>) -> Option<List> {
        let mut parts = Vec::new();
        while !self.take("E") {
            parts.push(parse(self)?);
        }
        Some(self.tree.add_list(&parts))
    }

    pub(super) fn cv_qualifiers(&mut self) -> Qualifiers {
        let is_restrict = self.take("r");
        let is_volatile = self.take("V");
        Qualifiers { is_restrict, is_volatile, is_const: self.take("K"), reference: "" }
    }

    /// The parameters of a function, up to an `E`, the qualifier of a reference before it, or the end.
    pub(super) fn parameters(&mut self) -> Option<List> {
        let mut parameters = Vec::new();
        if self.peek() == b'v' && self.ends_parameters(1) {
            self.at += 1;
            return Some(self.tree.add_list(&parameters));
        }
        while !self.ends_parameters(0) {
            parameters.push(self.ty()?);
        }
        Some(self.tree.add_list(&parameters))
    }

    fn ends_parameters(&self, distance: usize) -> bool {
        match self.peek_at(distance) {
            0 | b'E' | b'.' | b'Q' => true,
            b'R' | b'O' => self.peek_at(distance + 1) == b'E',
            _ => false,
        }
    }

    /// The arguments of a template. `is_function` is whether `T_` refers to them in what follows.
    pub(super) fn template_arguments(&mut self, is_function: bool) -> Option<List> {
        self.expect("I")?;
        let arguments = self.list_to_end(|parser| parser.nested(Self::template_argument))?;
        if is_function {
            self.arguments = arguments;
        }
        Some(arguments)
    }

    pub(super) fn template_argument(&mut self) -> Option<NodeId> {
        match self.peek() {
            b'X' => {
                self.at += 1;
                let expression = self.expression()?;
                self.expect("E")?;
                Some(expression)
            }
            b'J' | b'I' => {
                self.at += 1;
                let list = self.list_to_end(|parser| parser.nested(Self::template_argument))?;
                Some(self.add(Node::Pack(list)))
            }
            b'L' => self.literal(),
            _ => self.ty(),
        }
    }

    /// A reference to a template parameter.
    pub(super) fn template_parameter(&mut self) -> Option<NodeId> {
        self.expect("T")?;
        let number = self.sequence_number()?;
        Some(self.add(Node::Parameter(number)))
    }

    /// What a function's type says of exceptions.
    pub(super) fn exceptions(&mut self) -> Option<Exceptions> {
        if self.take("Do") {
            return Some(Exceptions::Noexcept(None));
        }
        if self.take("DO") {
            let condition = self.expression()?;
            self.expect("E")?;
            return Some(Exceptions::Noexcept(Some(condition)));
        }
        if self.take("Dw") {
            return Some(Exceptions::Throw(self.list_to_end(Self::ty)?));
        }
        Some(Exceptions::Any)
    }
}
