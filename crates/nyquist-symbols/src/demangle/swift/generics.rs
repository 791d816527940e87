//! Parameters of generic types and functions, their requirements, and conformances of types to protocols.

use super::node::{Node, NodeKind};
use super::reader::MangledNameReader;
use super::stack::joined_by;

impl MangledNameReader<'_> {
    /// The name of a parameter: a letter, and from the second level on its number.
    fn parameter_name(&mut self) -> Option<String> {
        let (mut depth, mut index) = (0, 0);
        if self.next_if(b'd') {
            depth = self.index()? + 1;
            index = self.index()?;
        } else if !self.next_if(b'z') {
            if self.next_if(b's') {
                return Some("Self".to_owned());
            }
            index = self.index()? + 1;
        }
        let mut name = String::new();
        let mut rest = index;
        loop {
            name.push(char::from(b'A' + (rest % 26) as u8));
            rest /= 26;
            if rest == 0 {
                break;
            }
        }
        if depth > 0 {
            name.push_str(&depth.to_string());
        }
        Some(name)
    }

    pub(super) fn parameter(&mut self) -> Option<Node> {
        let name = self.parameter_name()?;
        self.node(NodeKind::Type, name)
    }

    /// `l`, and `r` with the number of parameters at each level.
    pub(super) fn signature(&mut self, has_counts: bool) -> Option<Node> {
        while has_counts && !self.next_if(b'l') {
            if !self.next_if(b'z') {
                self.index()?;
            }
        }
        while self.pop(NodeKind::Requirement).is_some() {}
        Some(Node::plain(NodeKind::Signature))
    }

    /// `R`: the kind of a requirement, and its subject.
    pub(super) fn requirement(&mut self) -> Option<Node> {
        const OF_PARAMETER: u8 = b' ';
        let kind = match self.peek() {
            kind @ (b'c' | b'C' | b'b' | b'B' | b't' | b'T' | b's' | b'S' | b'm' | b'M' | b'l' | b'L'
            | b'p' | b'P' | b'Q') => {
                self.at += 1;
                kind
            }
            // Packs, values and inverted conformances have their own kinds.
            b'V' | b'v' | b'h' | b'i' | b'I' | b'j' | b'J' => return None,
            _ => OF_PARAMETER,
        };
        match kind {
            b'c' | b't' | b'm' | b'p' => {
                let base = self.parameter_name()?;
                let of = self.associated(&base)?;
                self.substitutable(&of)?;
            }
            b'C' | b'T' | b'M' | b'P' => {
                let base = self.parameter_name()?;
                let of = self.associated_path(&base)?;
                self.substitutable(&of)?;
            }
            b'B' | b'S' | b'L' | b'Q' => {
                self.pop_type()?;
            }
            _ => {
                self.parameter_name()?;
            }
        }
        match kind {
            OF_PARAMETER | b'p' | b'P' | b'Q' => {
                self.pop_protocol()?;
            }
            b'm' | b'M' | b'l' | b'L' => match self.next()? {
                b'U' | b'R' | b'N' | b'C' | b'D' | b'T' | b'B' => {}
                b'e' | b'm' | b'S' => {
                    self.index()?;
                }
                b'E' | b'M' => {
                    self.index()?;
                    self.index()?;
                }
                _ => return None,
            },
            _ => {
                self.pop_type()?;
            }
        }
        Some(Node::plain(NodeKind::Requirement))
    }

    fn associated_name(&mut self) -> Option<Node> {
        self.pop_type();
        self.pop(NodeKind::Identifier)
    }

    fn associated(&mut self, base: &str) -> Option<Node> {
        let name = self.associated_name()?;
        self.node(NodeKind::Type, format!("{base}.{}", name.text))
    }

    fn associated_path(&mut self, base: &str) -> Option<Node> {
        let mut names = Vec::new();
        loop {
            let is_first = self.pop(NodeKind::First).is_some();
            names.push(self.associated_name()?);
            if is_first {
                break;
            }
        }
        let path = format!("{base}.{}", joined_by(names.iter().rev(), ".", ""));
        self.node(NodeKind::Type, path)
    }

    /// `Q`: associated types, opaque types, packs.
    pub(super) fn archetype(&mut self) -> Option<Node> {
        let node = match self.next()? {
            b'a' => {
                let name = self.pop(NodeKind::Identifier)?;
                let of = self.pop_type()?;
                self.node(NodeKind::Type, format!("{}.{}", of.text, name.text))?
            }
            letter @ (b'x' | b'X') => {
                // The type is below the names.
                let node = if letter == b'x' { self.associated("")? } else { self.associated_path("")? };
                let of = self.pop_type()?;
                self.node(NodeKind::Type, format!("{}{}", of.text, node.text))?
            }
            b'y' => {
                let base = self.parameter_name()?;
                self.associated(&base)?
            }
            b'Y' => {
                let base = self.parameter_name()?;
                self.associated_path(&base)?
            }
            b'z' => self.associated("A")?,
            b'Z' => self.associated_path("A")?,
            b'O' => {
                let of = self.pop_context()?;
                return self.entity(format!("opaque return type of {}", of.text));
            }
            b'o' => {
                self.index()?;
                self.generic_arguments()?;
                let of = self.pop_entity()?;
                self.node(NodeKind::Type, format!("<<{}>>", of.text))?
            }
            b'r' | b'u' => return self.node(NodeKind::Type, "some".to_owned()),
            b'R' | b'U' => {
                self.index()?;
                return self.node(NodeKind::Type, "some".to_owned());
            }
            b'p' => {
                self.pop_type()?;
                return self.made_of_type("repeat ", "");
            }
            b'e' => {
                self.index()?;
                return self.made_of_type("each ", "");
            }
            b'P' => {
                let types = self.pop_types()?;
                return self.node(NodeKind::Type, format!("Pack{{{}}}", super::stack::joined(&types)));
            }
            _ => return None,
        };
        self.substitutable(&node)?;
        Some(node)
    }

    /// The conformance of a type to a protocol: `Type : Protocol`.
    pub(super) fn conformance(&mut self) -> Option<Node> {
        self.pop(NodeKind::Signature);
        self.pop_module()?;
        let protocol = self.pop_protocol()?;
        let of = self.pop_type()?;
        self.node(NodeKind::Conformance, format!("{} : {}", of.text, protocol.text))
    }

    /// `H`: conformances that generic types need.
    pub(super) fn conformance_reference(&mut self) -> Option<Node> {
        match self.next()? {
            b'P' | b'p' => self.pop_protocol().map(|_| Node::plain(NodeKind::Module)),
            b'C' => {
                self.pop_list(|reader| reader.pop(NodeKind::Conformance))?;
                // The place where the conformance is declared: with the type, with the protocol, or in a
                // named module.
                let module = self.pop_module()?;
                if !module.text.is_empty() {
                    self.pop_protocol()?;
                }
                self.pop_type()?;
                Some(Node::plain(NodeKind::Conformance))
            }
            b'D' => {
                self.index()?;
                self.pop_protocol()?;
                self.pop_type()?;
                Some(Node::plain(NodeKind::Conformance))
            }
            b'I' => {
                self.index()?;
                self.pop_protocol()?;
                self.pop(NodeKind::Conformance)
            }
            b'A' => {
                self.index()?;
                self.pop_protocol()?;
                self.pop_type()?;
                self.pop(NodeKind::Conformance)
            }
            _ => None,
        }
    }
}
