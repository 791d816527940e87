//! Functions that the compiler derives from others: specialisations, and thunks that call another function in
//! a different way.

use super::node::{Node, NodeKind};
use super::reader::MangledNameReader;

impl MangledNameReader<'_> {
    fn attribute(&mut self, text: String) -> Option<Node> {
        self.node(NodeKind::Attribute, text)
    }

    fn of_entity(&mut self, prefix: &str) -> Option<Node> {
        let of = self.pop_entity()?;
        self.entity(format!("{prefix}{}", of.text))
    }

    /// `T`
    pub(super) fn thunk(&mut self) -> Option<Node> {
        let letter = self.next()?;
        let text = match letter {
            b'A' => "partial apply forwarder for ",
            b'a' => "partial apply ObjC forwarder for ",
            b'o' => "@objc ",
            b'O' => "@nonobjc ",
            b'D' => "dynamic ",
            b'd' => "super ",
            b'E' => "distributed thunk ",
            b'F' => "distributed accessor for ",
            b'm' => "merged ",
            b'u' => "async function pointer to ",
            b'I' => "dynamically replaceable thunk for ",
            b'X' => "dynamically replaceable variable for ",
            b'x' => "dynamically replaceable key for ",
            b'Q' | b'Y' => {
                let kind = if letter == b'Q' { "await" } else { "suspend" };
                let number = self.index()? + 1;
                return self.attribute(format!("({number}) {kind} resume partial function for "));
            }
            b'w' => match self.next()? {
                b'b' => "back deployment thunk for ",
                b'B' => "back deployment fallback for ",
                _ => return None,
            },
            b'c' => return self.of_entity("curry thunk of "),
            b'j' => return self.of_entity("dispatch thunk of "),
            b'q' => return self.of_entity("method descriptor for "),
            b'S' => return self.of_entity("protocol self-conformance witness for "),
            b'V' => {
                let (base, derived) = (self.pop_entity()?, self.pop_entity()?);
                return self
                    .entity(format!("vtable thunk for {} dispatching to {}", base.text, derived.text));
            }
            b'W' => {
                let of = self.pop_entity()?;
                let conformance = self.conformance()?;
                let text = format!("protocol witness for {} in conformance {}", of.text, conformance.text);
                return self.entity(text);
            }
            b'R' | b'r' | b'y' => return self.reabstraction(letter),
            b'g' | b'B' => return self.specialization("generic specialization"),
            b'G' => return self.specialization("generic not re-abstracted specialization"),
            b's' => return self.specialization("generic pre-specialization"),
            b'i' => return self.specialization("inlined generic function"),
            b'f' => return self.function_specialization(),
            b'K' | b'k' => return self.key_path(letter == b'K'),
            b'v' => {
                let number = self.index()?;
                let kind = if self.next_if(b'r') { "read-only object" } else { "variable" };
                return self.attribute(format!("outlined {kind} #{number} of "));
            }
            _ => return None,
        };
        self.attribute(text.to_owned())
    }

    fn reabstraction(&mut self, letter: u8) -> Option<Node> {
        self.pop(NodeKind::Signature);
        if letter == b'y' {
            self.pop_type()?;
        }
        let (to, from) = (self.pop_type()?, self.pop_type()?);
        let helper = if letter == b'r' { "" } else { " helper" };
        self.entity(format!("reabstraction thunk{helper} from {} to {}", from.text, to.text))
    }

    /// The attributes of a specialisation: whether it is in the library's interface, and which pass has made
    /// it.
    fn specialization_attributes(&mut self) -> Option<()> {
        for flag in [b'm', b'q', b'a', b'r'] {
            self.next_if(flag);
        }
        self.next()?.is_ascii_digit().then_some(())
    }

    fn specialization(&mut self, kind: &str) -> Option<Node> {
        self.specialization_attributes()?;
        let types = self.pop_types()?;
        self.attribute(format!("{kind} {} of ", Self::list_of(&types)))
    }

    /// A function with changed or constant parameters.
    fn function_specialization(&mut self) -> Option<Node> {
        self.specialization_attributes()?;
        // The values of constant parameters are below, with those of the last parameter on top.
        let mut values = Vec::new();
        while !self.next_if(b'_') {
            values.push(self.specialized_parameter()?);
        }
        if !self.next_if(b'n') {
            self.specialized_parameter()?;
        }
        for value in values.into_iter().rev() {
            match value {
                ConstantParameter::None => {}
                ConstantParameter::Name => {
                    self.pop(NodeKind::Identifier)?;
                }
                ConstantParameter::Closure => {
                    while self.pop_type().is_some() {}
                    self.pop(NodeKind::Identifier)?;
                }
            }
        }
        self.attribute("function signature specialization of ".to_owned())
    }

    fn specialized_parameter(&mut self) -> Option<ConstantParameter> {
        match self.next()? {
            b'n' | b's' | b'r' | b'i' => {}
            b'c' => return Some(ConstantParameter::Closure),
            b'p' => match self.next()? {
                b'f' | b'g' => return Some(ConstantParameter::Name),
                b's' => {
                    self.next()?;
                    return Some(ConstantParameter::Name);
                }
                b'i' | b'd' => {
                    self.natural()?;
                }
                _ => return None,
            },
            b'e' | b'd' | b'g' | b'o' | b'x' => {
                while matches!(self.peek(), b'D' | b'G' | b'O' | b'X') {
                    self.at += 1;
                }
            }
            _ => return None,
        }
        Some(ConstantParameter::None)
    }

    fn key_path(&mut self, is_getter: bool) -> Option<Node> {
        self.next_if(b'q');
        while self.pop_type().is_some() {}
        self.pop(NodeKind::Signature);
        let of = self.pop(NodeKind::Entity)?;
        let kind = if is_getter { "getter" } else { "setter" };
        self.entity(format!("key path {kind} for {}", of.text))
    }
}

/// The node of a constant parameter.
enum ConstantParameter {
    None,
    Name,
    Closure,
}
