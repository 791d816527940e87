//! Parses the expressions in types and in templates' arguments.

use super::operators::{self, Kind, Operator};
use super::parser::Parser;
use super::tree::{Node, NodeId};

impl<'a> Parser<'a> {
    /// An expression.
    pub(super) fn expression(&mut self) -> Option<NodeId> {
        self.nested(Self::any_expression)
    }

    fn any_expression(&mut self) -> Option<NodeId> {
        let (first, second) = (self.peek(), self.peek_at(1));
        match (first, second) {
            (b'L', _) => return self.literal(),
            (b'T', _) => return self.template_parameter(),
            (b'0'..=b'9', _) => return self.base_name(),
            _ => {}
        }
        let code = self.rest().get(..2)?;
        match code {
            "fp" | "fL" => self.function_parameter(),
            "fl" | "fr" | "fR" => self.fold(code),
            "sr" => self.scoped_name(),
            "on" | "dn" => self.base_name(),
            "sp" => {
                self.at += 2;
                let pattern = self.expression()?;
                Some(self.add(Node::Expansion(pattern)))
            }
            "sZ" | "sP" => self.size_of_pack(code),
            "cv" => self.cast(),
            "tl" | "il" => self.braced(code),
            "gs" => self.global(),
            _ => {
                let operator = operators::find(code)?;
                self.at += 2;
                self.operation(operator)
            }
        }
    }

    /// `fL` with its nesting is taken for `fp` of other scopes.
    fn function_parameter(&mut self) -> Option<NodeId> {
        if self.take("fpT") {
            return Some(self.add(Node::FunctionParameter(0)));
        }
        if self.take("fL") {
            if !self.peek().is_ascii_digit() {
                self.at -= 2;
                return self.fold("fL");
            }
            self.number()?;
        } else {
            self.at += 1;
        }
        self.expect("p")?;
        self.cv_qualifiers();
        let number = self.sequence_number()?.checked_add(1)?;
        Some(self.add(Node::FunctionParameter(number)))
    }

    fn fold(&mut self, code: &str) -> Option<NodeId> {
        self.at += 2;
        let (_, text, _) = operators::find(self.rest().get(..2)?)?;
        self.at += 2;
        let first = self.expression()?;
        Some(match code {
            "fl" => self.add(Node::Fold(true, text, first, None)),
            "fr" => self.add(Node::Fold(false, text, first, None)),
            _ => {
                let second = self.expression()?;
                let is_left = code == "fL";
                let (pack, initial) = if is_left { (second, first) } else { (first, second) };
                self.add(Node::Fold(is_left, text, pack, Some(initial)))
            }
        })
    }

    fn size_of_pack(&mut self, code: &str) -> Option<NodeId> {
        self.at += 2;
        let pack = if code == "sP" {
            let list = self.list_to_end(Self::template_argument)?;
            self.add(Node::Pack(list))
        } else if self.peek() == b'T' {
            self.template_parameter()?
        } else {
            self.function_parameter()?
        };
        Some(self.add(Node::SizeOfPack(pack)))
    }

    fn cast(&mut self) -> Option<NodeId> {
        self.expect("cv")?;
        let had = std::mem::replace(&mut self.parameters_have_arguments, false);
        let to = self.ty()?;
        self.parameters_have_arguments = had;
        let values = if self.take("_") {
            self.list_to_end(Self::expression)?
        } else {
            let value = self.expression()?;
            self.tree.add_list(&[value])
        };
        Some(self.add(Node::Cast(to, values)))
    }

    fn braced(&mut self, code: &str) -> Option<NodeId> {
        self.at += 2;
        let ty = if code == "tl" { Some(self.ty()?) } else { None };
        let values = self.list_to_end(Self::expression)?;
        Some(self.add(Node::Braced(ty, values)))
    }

    fn global(&mut self) -> Option<NodeId> {
        self.expect("gs")?;
        let name = self.expression()?;
        Some(self.add(Node::Prefixed("::", name)))
    }

    fn operation(&mut self, (_, text, kind): Operator) -> Option<NodeId> {
        let node = match kind {
            Kind::Prefix | Kind::Delete => Node::Unary(text, self.expression()?),
            Kind::Postfix => {
                let word = self.text_node(text);
                return Some(word);
            }
            Kind::Step if self.take("_") => Node::Unary(text, self.expression()?),
            Kind::Step => Node::Postfix(self.expression()?, text),
            Kind::Binary => Node::Binary(text, self.expression()?, self.expression()?),
            Kind::Member => Node::Joined(self.expression()?, text, self.member_name()?),
            Kind::Index => Node::Index(self.expression()?, self.expression()?),
            Kind::Conditional => {
                Node::Conditional([self.expression()?, self.expression()?, self.expression()?])
            }
            Kind::Call => Node::Call(self.expression()?, self.list_to_end(Self::expression)?),
            Kind::NamedCast => Node::NamedCast(text, self.ty()?, self.expression()?),
            Kind::OfType => Node::Word(text, self.ty()?),
            Kind::OfValue => Node::Word(text, self.expression()?),
            Kind::New => return self.new_expression(text),
            Kind::NameOnly => return None,
        };
        Some(self.add(node))
    }

    fn member_name(&mut self) -> Option<NodeId> {
        if self.peek().is_ascii_digit() { self.base_name() } else { self.expression() }
    }

    fn new_expression(&mut self, text: &'static str) -> Option<NodeId> {
        while !self.take("_") {
            // Where the object is placed.
            self.expression()?;
        }
        let ty = self.ty()?;
        let values = if self.take("pi") {
            Some(self.list_to_end(Self::expression)?)
        } else {
            self.expect("E")?;
            None
        };
        Some(self.add(Node::New(text, ty, values)))
    }

    /// A name that is looked up in a scope which depends on a template's arguments.
    fn scoped_name(&mut self) -> Option<NodeId> {
        self.expect("sr")?;
        if self.peek() == b'N' && matches!(self.peek_at(1), b'T' | b'D') {
            self.at += 1;
            let mut scope = self.ty()?;
            while !self.take("E") {
                let name = self.simple_name()?;
                scope = self.add(Node::Nested(scope, name));
            }
            let name = self.base_name()?;
            return Some(self.add(Node::Nested(scope, name)));
        }
        let start = (self.at, self.substitutions.len());
        if self.peek().is_ascii_digit() {
            if let Some(name) = self.name_in_levels() {
                return Some(name);
            }
            self.at = start.0;
            self.substitutions.truncate(start.1);
        }
        // So GCC writes it.
        let scope = self.ty()?;
        let name = self.base_name()?;
        Some(self.add(Node::Nested(scope, name)))
    }

    /// The same whose scope is no type that can be referred to.
    fn name_in_levels(&mut self) -> Option<NodeId> {
        let mut scope = self.simple_name()?;
        while !self.take("E") {
            let name = self.simple_name()?;
            scope = self.add(Node::Nested(scope, name));
        }
        let name = self.base_name()?;
        Some(self.add(Node::Nested(scope, name)))
    }

    fn simple_name(&mut self) -> Option<NodeId> {
        let name = self.source_name()?;
        let name = self.text_node(name);
        if self.peek() == b'I' { self.with_arguments(name, None) } else { Some(name) }
    }

    /// The last part of a name that is looked up.
    fn base_name(&mut self) -> Option<NodeId> {
        if self.take("dn") {
            let class = if self.peek().is_ascii_digit() { self.simple_name()? } else { self.ty()? };
            return Some(self.add(Node::Destructor(class)));
        }
        if self.take("on") || self.peek().is_ascii_lowercase() {
            let name = self.operator_name(None)?;
            return if self.peek() == b'I' { self.with_arguments(name, None) } else { Some(name) };
        }
        self.simple_name()
    }

    /// A constant.
    pub(super) fn literal(&mut self) -> Option<NodeId> {
        self.expect("L")?;
        if self.take("_Z") || self.take("Z") {
            let symbol = self.encoding(true)?;
            self.expect("E")?;
            return Some(symbol);
        }
        let ty = self.ty()?;
        let is_negative = self.take("n");
        let value = self.take_while(|letter| letter != b'E');
        self.expect("E")?;
        Some(self.value(ty, value, is_negative))
    }

    fn value(&mut self, ty: NodeId, value: &'a str, is_negative: bool) -> NodeId {
        if value.is_empty() && !is_negative {
            return ty;
        }
        let Node::Text(name) = self.tree.get(ty) else {
            return self.add(Node::Value(ty, value, is_negative));
        };
        let node = match (name, value) {
            ("bool", "0") => Node::Text("false"),
            ("bool", "1") => Node::Text("true"),
            ("float" | "double" | "long double" | "__float128", _) => Node::Float(ty, value),
            _ => match operators::suffix(name) {
                Some(suffix) => Node::Integer(value, is_negative, suffix),
                None => Node::Value(ty, value, is_negative),
            },
        };
        self.add(node)
    }
}
