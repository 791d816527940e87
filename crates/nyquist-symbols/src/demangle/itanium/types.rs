//! Parses types.

use super::operators::{builtin, builtin_behind_d};
use super::parser::Parser;
use super::tree::{Exceptions, Node, NodeId, Qualifiers};

impl Parser<'_> {
    /// A type.
    pub(super) fn ty(&mut self) -> Option<NodeId> {
        self.nested(Self::any_type)
    }

    fn any_type(&mut self) -> Option<NodeId> {
        let letter = self.peek();
        if let Some(name) = builtin(letter) {
            self.at += 1;
            return Some(self.text_node(name));
        }
        let ty = match letter {
            b'r' | b'V' | b'K' => self.qualified_type()?,
            b'P' | b'R' | b'O' | b'C' | b'G' => self.modified_type(letter)?,
            b'F' => self.function_type(Qualifiers::default(), Exceptions::Any)?,
            b'A' => self.array_type()?,
            b'M' => self.member_pointer()?,
            b'D' => return self.type_behind_d(),
            b'U' if !matches!(self.peek_at(1), b'l' | b't') => self.vendor_qualified()?,
            b'u' => return self.vendor_type(),
            b'T' if !matches!(self.peek_at(1), b's' | b'u' | b'e') => return self.parameter_type(),
            b'S' if self.peek_at(1) != b't' => return self.substituted_type(),
            _ => self.class_type()?,
        };
        Some(self.add_substitution(ty))
    }

    fn class_type(&mut self) -> Option<NodeId> {
        if self.peek() == b'T' {
            self.at += 2;
        }
        self.name(None)
    }

    fn qualified_type(&mut self) -> Option<NodeId> {
        let qualifiers = self.cv_qualifiers();
        let is_function = self.peek() == b'F'
            || self.peek() == b'D' && matches!(self.peek_at(1), b'o' | b'O' | b'w' | b'x');
        if is_function {
            let exceptions = self.exceptions()?;
            return self.function_type(qualifiers, exceptions);
        }
        let ty = self.ty()?;
        Some(self.add(Node::Qualified(ty, qualifiers)))
    }

    fn modified_type(&mut self, letter: u8) -> Option<NodeId> {
        self.at += 1;
        let ty = self.ty()?;
        Some(self.add(match letter {
            b'P' => Node::Pointer(ty),
            b'R' => Node::Reference(ty),
            b'O' => Node::RvalueReference(ty),
            b'C' => Node::Suffixed(ty, " _Complex"),
            _ => Node::Suffixed(ty, " _Imaginary"),
        }))
    }

    fn function_type(&mut self, qualifiers: Qualifiers, exceptions: Exceptions) -> Option<NodeId> {
        self.take("Dx");
        self.expect("F")?;
        self.take("Y");
        let result = self.ty()?;
        let parameters = self.parameters()?;
        let qualifiers = Qualifiers { reference: self.reference_qualifier(), ..qualifiers };
        self.expect("E")?;
        Some(self.add(Node::Function { result, parameters, qualifiers, exceptions }))
    }

    fn array_type(&mut self) -> Option<NodeId> {
        self.expect("A")?;
        let len = if self.peek() == b'_' {
            self.at += 1;
            None
        } else {
            Some(self.dimension()?)
        };
        let ty = self.ty()?;
        Some(self.add(Node::Array(ty, len)))
    }

    /// A number or an expression, up to an underscore.
    fn dimension(&mut self) -> Option<NodeId> {
        let len = if self.peek().is_ascii_digit() {
            let digits = self.take_while(|letter| letter.is_ascii_digit());
            self.text_node(digits)
        } else {
            self.expression()?
        };
        self.expect("_")?;
        Some(len)
    }

    fn member_pointer(&mut self) -> Option<NodeId> {
        self.expect("M")?;
        let class = self.ty()?;
        let ty = self.ty()?;
        Some(self.add(Node::MemberPointer(class, ty)))
    }

    fn type_behind_d(&mut self) -> Option<NodeId> {
        let letter = self.peek_at(1);
        if let Some(name) = builtin_behind_d(letter) {
            self.at += 2;
            return Some(self.text_node(name));
        }
        let ty = match letter {
            b't' | b'T' => self.decltype()?,
            b'p' => {
                self.at += 2;
                let pattern = self.ty()?;
                self.add(Node::Expansion(pattern))
            }
            b'v' => self.vector_type()?,
            b'o' | b'O' | b'w' | b'x' => {
                let exceptions = self.exceptions()?;
                self.function_type(Qualifiers::default(), exceptions)?
            }
            b'F' | b'B' | b'U' => return self.sized_type(),
            // A constructor's or a destructor's name cannot be a type.
            _ => return None,
        };
        Some(self.add_substitution(ty))
    }

    fn sized_type(&mut self) -> Option<NodeId> {
        let words = match self.peek_at(1) {
            b'F' => "_Float",
            b'B' => "signed _BitInt",
            _ => "unsigned _BitInt",
        };
        self.at += 2;
        let bits = self.dimension()?;
        Some(self.add(Node::Sized(words, bits)))
    }

    fn vector_type(&mut self) -> Option<NodeId> {
        self.expect("Dv")?;
        let len = if self.take("_") {
            let len = self.expression()?;
            self.expect("_")?;
            len
        } else {
            self.dimension()?
        };
        let ty = self.ty()?;
        Some(self.add(Node::Vector(ty, len)))
    }

    pub(super) fn decltype(&mut self) -> Option<NodeId> {
        self.at += 2;
        let expression = self.expression()?;
        self.expect("E")?;
        Some(self.add(Node::Decltype(expression)))
    }

    fn vendor_qualified(&mut self) -> Option<NodeId> {
        self.expect("U")?;
        let name = self.source_name()?;
        let mut qualifier = self.text_node(name);
        if self.peek() == b'I' {
            qualifier = self.with_arguments(qualifier, None)?;
        }
        let ty = self.ty()?;
        Some(self.add(Node::VendorQualified(ty, qualifier)))
    }

    fn vendor_type(&mut self) -> Option<NodeId> {
        self.expect("u")?;
        let name = self.source_name()?;
        let mut ty = self.text_node(name);
        if self.peek() == b'I' {
            ty = self.with_arguments(ty, None)?;
        }
        Some(self.add_substitution(ty))
    }

    fn parameter_type(&mut self) -> Option<NodeId> {
        let parameter = self.template_parameter()?;
        self.add_substitution(parameter);
        if self.parameters_have_arguments && self.peek() == b'I' {
            let ty = self.with_arguments(parameter, None)?;
            return Some(self.add_substitution(ty));
        }
        Some(parameter)
    }

    fn substituted_type(&mut self) -> Option<NodeId> {
        let ty = self.substitution()?;
        if self.peek() != b'I' {
            return Some(ty);
        }
        let ty = self.with_arguments(ty, None)?;
        Some(self.add_substitution(ty))
    }
}
