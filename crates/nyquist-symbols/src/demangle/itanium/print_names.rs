//! Prints names and expressions, which unlike types are in one piece.

use std::fmt;

use super::print::Printer;
use super::tree::{List, Node, NodeId, Qualifiers};

impl<'a> Printer<'_, 'a> {
    /// Prints a part that is no type of two pieces.
    pub(super) fn other(&mut self, node: Node<'a>) -> fmt::Result {
        match node {
            Node::Text(text) => self.text(text),
            Node::Abbreviated(which, is_whole) => self.abbreviated(which, is_whole),
            Node::Nested(a, b) | Node::Local(a, b) => self.all((a, "::", b)),
            Node::DefaultArgument(number) => self.numbered("{default arg#", number, "}"),
            Node::Tagged(name, tag) => {
                self.whole(name)?;
                self.text("[abi:")?;
                self.text(tag)?;
                self.text("]")
            }
            Node::Template(name, arguments) => self.template(name, arguments),
            Node::Pack(list) => self.list(list),
            Node::Expansion(pattern) => self.expansion(pattern),
            Node::Constructor(name) => self.whole(name),
            Node::Destructor(name) => self.prefixed("~", name),
            Node::Conversion(ty) => self.prefixed("operator ", ty),
            Node::Operator(text) => self.operator(text),
            Node::LiteralOperator(name) => self.prefixed("operator\"\" ", name),
            Node::Lambda(parameters, number) => {
                self.text("{lambda(")?;
                self.in_scope(None, |printer| printer.list(parameters))?;
                self.numbered(")#", number, "}")
            }
            Node::UnnamedType(number) => self.numbered("{unnamed type#", number, "}"),
            Node::StructuredBinding(names) => self.enclosed("[", names, "]"),
            Node::Prefixed(words, of) => self.prefixed(words, of),
            Node::ConstructionTable(part, whole) => {
                self.prefixed("construction vtable for ", part)?;
                self.prefixed("-in-", whole)
            }
            Node::Temporary(name, number) => {
                self.numbered("reference temporary #", number, " for ")?;
                self.whole(name)
            }
            Node::Encoding { name, result, parameters, qualifiers, arguments } => self
                .in_scope(Some(arguments), |printer| {
                    printer.encoding((name, result), parameters, qualifiers)
                }),
            Node::Clone(symbol, end) => {
                self.whole(symbol)?;
                self.text(" [clone ")?;
                self.text(end)?;
                self.text("]")
            }
            node => self.expression(node),
        }
    }

    fn prefixed(&mut self, words: &str, of: NodeId) -> fmt::Result {
        self.text(words)?;
        self.whole(of)
    }

    fn numbered(&mut self, before: &str, number: u64, behind: &str) -> fmt::Result {
        self.text(before)?;
        self.number(number)?;
        self.text(behind)
    }

    fn enclosed(&mut self, before: &str, list: List, behind: &str) -> fmt::Result {
        self.text(before)?;
        self.list(list)?;
        self.text(behind)
    }

    fn all(&mut self, (first, between, second): (NodeId, &str, NodeId)) -> fmt::Result {
        self.whole(first)?;
        self.prefixed(between, second)
    }

    fn template(&mut self, name: NodeId, arguments: List) -> fmt::Result {
        self.whole(name)?;
        self.text(if self.last() == b'<' { " <" } else { "<" })?;
        self.list(arguments)?;
        // So that old compilers can read it.
        self.text(if self.last() == b'>' { " >" } else { ">" })
    }

    fn operator(&mut self, text: &str) -> fmt::Result {
        self.text("operator")?;
        if text.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            self.text(" ")?;
        }
        self.text(text)
    }

    fn encoding(
        &mut self,
        (name, result): (NodeId, Option<NodeId>),
        parameters: List,
        qualifiers: Qualifiers,
    ) -> fmt::Result {
        if let Some(result) = result {
            self.left(result)?;
            self.text(if self.has_right(result) { "" } else { " " })?;
        }
        self.whole(name)?;
        self.enclosed("(", parameters, ")")?;
        if let Some(result) = result {
            self.right(result)?;
        }
        self.qualifiers(qualifiers)
    }

    fn expression(&mut self, node: Node<'a>) -> fmt::Result {
        match node {
            Node::Vector(ty, len) => {
                self.whole(ty)?;
                self.prefixed(" __vector(", len)?;
                self.text(")")
            }
            Node::Sized(words, bits) if words == "_Float" => self.prefixed(words, bits),
            Node::Sized(words, bits) => {
                self.text(words)?;
                self.parenthesized(bits)
            }
            Node::Decltype(expression) => {
                self.text("decltype ")?;
                self.parenthesized(expression)
            }
            Node::Integer(digits, is_negative, suffix) => {
                self.text(if is_negative { "-" } else { "" })?;
                self.text(digits)?;
                self.text(suffix)
            }
            Node::Value(ty, digits, is_negative) => {
                self.parenthesized(ty)?;
                self.text(if is_negative { "-" } else { "" })?;
                self.text(digits)
            }
            Node::Float(ty, digits) => {
                self.parenthesized(ty)?;
                self.text("[")?;
                self.text(digits)?;
                self.text("]")
            }
            Node::FunctionParameter(0) => self.text("this"),
            Node::FunctionParameter(number) => self.numbered("{parm#", number, "}"),
            Node::SizeOfPack(pack) => match self.pack_len(pack) {
                Some(len) => self.number(len as u64),
                None => {
                    self.text("sizeof...")?;
                    self.parenthesized(pack)
                }
            },
            node => self.operation(node),
        }
    }

    fn operation(&mut self, node: Node<'a>) -> fmt::Result {
        match node {
            Node::Unary("&", of) => self.address(of),
            Node::Unary(sign, of) => {
                self.text(sign)?;
                self.operand(of)
            }
            Node::Postfix(of, sign) => {
                self.operand(of)?;
                self.text(sign)
            }
            Node::Binary(">", a, b) => {
                // So that it is not taken for the end of the arguments.
                self.text("(")?;
                self.binary(a, ">", b)?;
                self.text(")")
            }
            Node::Binary(sign, a, b) | Node::Joined(a, sign, b) => self.binary(a, sign, b),
            Node::Index(of, index) => {
                self.operand(of)?;
                self.prefixed("[", index)?;
                self.text("]")
            }
            Node::Conditional([condition, yes, no]) => {
                self.binary(condition, "?", yes)?;
                self.text(" : ")?;
                self.operand(no)
            }
            Node::Call(function, arguments) => {
                match self.get(function) {
                    // Its own parameters are not those of the call.
                    Node::Encoding { name, .. } => self.operand(name)?,
                    _ => self.operand(function)?,
                }
                self.enclosed("(", arguments, ")")
            }
            Node::Cast(ty, values) => {
                self.parenthesized(ty)?;
                self.enclosed("(", values, ")")
            }
            Node::NamedCast(word, ty, of) => {
                self.text(word)?;
                self.prefixed("<", ty)?;
                self.text(">")?;
                self.parenthesized(of)
            }
            Node::Word(word, of) => {
                self.text(word)?;
                self.parenthesized(of)
            }
            node => self.rare(node),
        }
    }

    fn rare(&mut self, node: Node<'a>) -> fmt::Result {
        match node {
            Node::Braced(ty, values) => {
                if let Some(ty) = ty {
                    self.whole(ty)?;
                }
                self.enclosed("{", values, "}")
            }
            Node::New(word, ty, values) => {
                self.text(word)?;
                self.prefixed(" ", ty)?;
                values.map_or(Ok(()), |values| self.enclosed("(", values, ")"))
            }
            Node::Fold(is_left, sign, pack, initial) => self.fold((is_left, sign), pack, initial),
            _ => Err(fmt::Error),
        }
    }

    fn fold(&mut self, (is_left, sign): (bool, &str), pack: NodeId, initial: Option<NodeId>) -> fmt::Result {
        self.text("(")?;
        match (is_left, initial) {
            (true, None) => {
                self.text("...")?;
                self.text(sign)?;
                self.operand(pack)?;
            }
            (false, None) => {
                self.operand(pack)?;
                self.text(sign)?;
                self.text("...")?;
            }
            (_, Some(initial)) => {
                let (first, last) = if is_left { (initial, pack) } else { (pack, initial) };
                self.operand(first)?;
                self.text(sign)?;
                self.text("...")?;
                self.text(sign)?;
                self.operand(last)?;
            }
        }
        self.text(")")
    }

    /// The address of a function. That of a member is without its parameters.
    fn address(&mut self, of: NodeId) -> fmt::Result {
        self.text("&")?;
        match self.get(of) {
            Node::Encoding { name, qualifiers, .. }
                if matches!(self.get(name), Node::Nested(..)) && qualifiers == Qualifiers::default() =>
            {
                self.whole(name)
            }
            _ => self.operand(of),
        }
    }

    fn binary(&mut self, a: NodeId, sign: &str, b: NodeId) -> fmt::Result {
        self.operand(a)?;
        self.text(sign)?;
        self.operand(b)
    }

    /// Prints an operand, in parentheses unless it is a name.
    pub(super) fn operand(&mut self, id: NodeId) -> fmt::Result {
        match self.get(id) {
            Node::Nested(_, name) if matches!(self.get(name), Node::Template(..)) => self.parenthesized(id),
            Node::Nested(..) | Node::FunctionParameter(_) | Node::Text(_) | Node::Braced(..) => {
                self.whole(id)
            }
            _ => self.parenthesized(id),
        }
    }

    fn parenthesized(&mut self, id: NodeId) -> fmt::Result {
        self.text("(")?;
        self.whole(id)?;
        self.text(")")
    }
}
