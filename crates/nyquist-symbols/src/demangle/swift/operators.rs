//! The effect of each operator, and how declarations are shown.

use super::node::{Node, NodeKind, NodeTrait};
use super::reader::MangledNameReader;
use super::stack::{joined, joined_by};

impl MangledNameReader<'_> {
    /// Reads the next operator or identifier, and returns the node that it pushes.
    pub(super) fn operator(&mut self) -> Option<Node> {
        if self.peek().is_ascii_digit() {
            return self.identifier();
        }
        match self.next()? {
            b'A' => self.substitution(),
            b'B' => self.builtin(),
            b'C' => self.nominal(NodeTrait::Class),
            b'O' | b'V' | b'P' | b'a' => self.nominal(NodeTrait::None),
            b'E' => self.extension(),
            b'F' => self.function(),
            b'G' => self.bound_generic(),
            b'H' => self.conformance_reference(),
            b'I' => self.implementation_type(),
            b'K' => Some(Node::plain(NodeKind::Annotation)),
            b'L' => self.local_identifier(),
            b'M' => self.metadata(),
            b'N' => self.of_type("type metadata for "),
            b'Q' => self.archetype(),
            b'R' => self.requirement(),
            b'S' => self.standard_substitution(),
            b'T' => self.thunk(),
            b'W' => self.witness(),
            b'X' => self.special_type(),
            b'Y' => self.annotation(),
            b'Z' => {
                let entity = self.pop_entity()?;
                let text = format!("static {}", entity.text);
                self.entity(text)
            }
            b'c' => self.function_type(),
            b'd' => Some(Node::plain(NodeKind::Variadic)),
            b'f' => self.function_entity(),
            b'g' => {
                self.index()?;
                self.pop(NodeKind::Conformance)?;
                Some(Node::plain(NodeKind::Retroactive))
            }
            // The whole name is a type, or a parameter is shared or owned.
            b'D' | b'h' | b'n' => self.pop_type(),
            b'i' => self.subscript(),
            b'l' => self.signature(false),
            b'm' => self.made_of_type("", ".Type"),
            b'o' => self.operator_identifier(),
            b'p' => self.protocols(),
            b'q' => self.parameter(),
            b'r' => self.signature(true),
            b's' => Some(Node::new(NodeKind::Module, "Swift".into())),
            b't' => self.tuple(),
            b'u' => {
                self.pop(NodeKind::Signature)?;
                self.pop_type()
            }
            b'v' => self.variable(),
            b'w' => self.value_witness(),
            b'x' => Some(Node::new(NodeKind::Type, "A".into())),
            b'y' => Some(Node::plain(NodeKind::EmptyList)),
            b'z' => self.made_of_type("inout ", ""),
            b'_' => Some(Node::plain(NodeKind::First)),
            _ => None,
        }
    }

    pub(super) fn entity(&mut self, text: String) -> Option<Node> {
        self.node(NodeKind::Entity, text)
    }

    /// `context.name`. If the context is a function, the result says that the name is in it.
    fn member(context: &Node, name: &str) -> String {
        if context.trait_ == NodeTrait::Body {
            return format!("{name} in {}", context.text);
        }
        format!("{}.{name}", context.text)
    }

    /// A class, structure, enumeration, protocol or alias.
    pub(super) fn nominal(&mut self, what: NodeTrait) -> Option<Node> {
        let name = self.pop_name()?;
        let context = self.pop_context()?;
        let node = self.node(NodeKind::Type, Self::member(&context, &name.text))?.with(what);
        self.substitutable(&node)?;
        Some(node)
    }

    fn extension(&mut self) -> Option<Node> {
        self.pop(NodeKind::Signature);
        let module = self.pop_module()?;
        let extended = self.pop_type()?;
        let node = self.entity(format!("(extension in {}):{}", module.text, extended.text))?;
        Some(node.with(if extended.trait_ == NodeTrait::Class { NodeTrait::Class } else { NodeTrait::None }))
    }

    /// The labels of a function of this type: `(_:at:)`.
    fn labels(&mut self, of: Option<&Node>) -> Option<String> {
        let count = of.filter(|of| of.trait_ == NodeTrait::Function).and_then(|of| of.count);
        if self.pop(NodeKind::EmptyList).is_some() {
            return Some("_:".repeat(count.unwrap_or(0)));
        }
        let mut labels = Vec::new();
        for _ in 0..count.unwrap_or(0) {
            let label =
                self.stack.pop_if(|node| matches!(node.kind, NodeKind::Identifier | NodeKind::First))?;
            labels.push(if label.kind == NodeKind::First {
                Node::new(NodeKind::First, "_".into())
            } else {
                label
            });
        }
        Some(joined_by(labels.iter().rev(), "", ":"))
    }

    fn function(&mut self) -> Option<Node> {
        self.pop(NodeKind::Signature);
        let of = self.function_type()?;
        let labels = self.labels(Some(&of))?;
        let name = self.pop_name()?;
        let context = self.pop_context()?;
        let text = Self::member(&context, &format!("{}({labels})", name.text));
        self.entity(text).map(|node| node.with(NodeTrait::Body))
    }

    fn variable(&mut self) -> Option<Node> {
        let of = self.pop_type()?;
        self.labels(Some(&of).filter(|of| of.trait_ == NodeTrait::Function && self.has_labels()))?;
        let name = self.pop_name()?;
        let context = self.pop_context()?;
        self.accessor(Self::member(&context, &name.text))
    }

    /// Whether labels are on top, and not the name of the entity that has them.
    fn has_labels(&self) -> bool {
        matches!(self.stack.last(), Some(node) if matches!(node.kind, NodeKind::EmptyList | NodeKind::First))
    }

    fn subscript(&mut self) -> Option<Node> {
        self.pop(NodeKind::Discriminator);
        let of = self.pop_type()?;
        let labels = self.labels(Some(&of))?;
        let context = self.pop_context()?;
        self.accessor(Self::member(&context, &format!("subscript({labels})")))
    }

    fn accessor(&mut self, of: String) -> Option<Node> {
        let kind = match self.next()? {
            b'm' => "materializeForSet",
            b's' => "setter",
            b'g' => "getter",
            b'G' => "global getter",
            b'w' => "willset",
            b'W' => "didset",
            b'r' => "read",
            b'y' => "read2",
            b'M' => "modify",
            b'x' => "modify2",
            b'i' => "init",
            b'a' => match self.next()? {
                b'u' => "unsafeMutableAddressor",
                b'O' => "owningMutableAddressor",
                b'o' => "nativeOwningMutableAddressor",
                b'p' => "nativePinningMutableAddressor",
                _ => return None,
            },
            b'l' => match self.next()? {
                b'u' => "unsafeAddressor",
                b'O' => "owningAddressor",
                b'o' => "nativeOwningAddressor",
                b'p' => "nativePinningAddressor",
                _ => return None,
            },
            b'p' => return self.entity(of),
            _ => return None,
        };
        self.entity(format!("{of}.{kind}")).map(|node| node.with(NodeTrait::Body))
    }

    /// `f`: functions that the compiler makes, closures and constructors.
    fn function_entity(&mut self) -> Option<Node> {
        let letter = self.next()?;
        let node = match letter {
            b'D' | b'Z' | b'd' | b'E' | b'e' => {
                let name = match letter {
                    b'D' => "__deallocating_deinit",
                    b'Z' => "__isolated_deallocating_deinit",
                    b'd' => "deinit",
                    b'E' => "__ivar_destroyer",
                    _ => "__ivar_initializer",
                };
                let context = self.pop_context()?;
                self.entity(Self::member(&context, name))
            }
            b'C' | b'c' => self.constructor(letter == b'C'),
            b'U' | b'u' => {
                let number = self.index()? + 1;
                self.pop_type()?;
                let context = self.pop_context()?;
                let kind = if letter == b'U' { "closure" } else { "implicit closure" };
                self.entity(format!("{kind} #{number} in {}", context.text))
            }
            b'A' => {
                let number = self.index()?;
                let context = self.pop_context()?;
                self.entity(format!("default argument {number} of {}", context.text))
            }
            b'i' | b'P' | b'W' => {
                let kind = match letter {
                    b'i' => "variable initialization expression",
                    b'P' => "property wrapper backing initializer",
                    _ => "property wrapper init from projected value",
                };
                let context = self.pop_context()?;
                self.entity(format!("{kind} of {}", context.text))
            }
            _ => None,
        };
        node.map(|node| node.with(NodeTrait::Body))
    }

    fn constructor(&mut self, allocates: bool) -> Option<Node> {
        self.pop(NodeKind::Discriminator);
        let of = self.pop_type()?;
        let labels = self.labels(Some(&of))?;
        let context = self.pop_context()?;
        let is_class = allocates && context.trait_ == NodeTrait::Class;
        let name = if is_class { "__allocating_init" } else { "init" };
        self.entity(Self::member(&context, &format!("{name}({labels})")))
    }

    /// `A`: one or several substitutions, each with the number of times that it is pushed.
    fn substitution(&mut self) -> Option<Node> {
        let mut repeat = None;
        loop {
            let letter = self.peek();
            if letter.is_ascii_alphabetic() {
                self.at += 1;
                let retained =
                    self.substitutions.get(usize::from(letter.to_ascii_lowercase() - b'a'))?.clone();
                self.push_again(&retained, repeat.take())?;
                if letter.is_ascii_uppercase() {
                    return Some(retained);
                }
                self.push(retained)?;
            } else if self.next_if(b'_') {
                let number = repeat.take().map_or(26, |number: usize| number.saturating_add(27));
                return self.substitutions.get(number).cloned();
            } else {
                repeat = Some(self.natural()?);
            }
        }
    }

    /// Pushes a node `times` times, except for the last time.
    pub(super) fn push_again(&mut self, node: &Node, times: Option<usize>) -> Option<()> {
        const MAX_TIMES: usize = 2048;
        let times = times.unwrap_or(1);
        if times > MAX_TIMES {
            return None;
        }
        (1..times).try_for_each(|_| self.push(node.clone()))
    }

    pub(super) fn of_type(&mut self, prefix: &str) -> Option<Node> {
        let of = self.pop_type()?;
        self.entity(format!("{prefix}{}", of.text))
    }

    pub(super) fn made_of_type(&mut self, prefix: &str, suffix: &str) -> Option<Node> {
        let of = self.pop_type()?;
        self.node(NodeKind::Type, format!("{prefix}{}{suffix}", of.text))
    }

    /// `M`: functions and tables of type metadata.
    fn metadata(&mut self) -> Option<Node> {
        let what = match self.next()? {
            b'a' => "type metadata accessor for ",
            b'r' => "type metadata completion function for ",
            b'i' => "type metadata instantiation function for ",
            b'u' => "method lookup function for ",
            b'U' => "ObjC metadata update function for ",
            b'f' => "full type metadata for ",
            b'L' => "lazy cache variable for type metadata for ",
            b'm' => "metaclass for ",
            b'n' => "nominal type descriptor for ",
            b'p' => "protocol descriptor for ",
            b'P' => "generic type metadata pattern for ",
            b'b' => "canonical specialized generic type metadata accessor for ",
            b'c' => {
                let conformance = self.conformance()?;
                return self.entity(format!("protocol conformance descriptor for {}", conformance.text));
            }
            _ => return None,
        };
        self.of_type(what)
    }

    /// `W`: tables of functions, and code that the compiler has moved into separate functions.
    fn witness(&mut self) -> Option<Node> {
        let letter = self.next()?;
        match letter {
            b'V' => self.of_type("value witness table for "),
            b'P' | b'p' | b'I' | b'a' => {
                let conformance = self.conformance()?;
                let kind = match letter {
                    b'P' => "protocol witness table",
                    b'p' => "protocol witness table pattern",
                    b'I' => "instantiation function for generic protocol witness table",
                    _ => "protocol witness table accessor",
                };
                self.entity(format!("{kind} for {}", conformance.text))
            }
            b'l' => {
                let conformance = self.conformance()?;
                self.pop_type()?;
                self.entity(format!("lazy protocol witness table accessor for {}", conformance.text))
            }
            b'O' => self.outlined(),
            b'Z' => {
                let mut names = Vec::new();
                while self.pop(NodeKind::First).is_some() {
                    names.push(self.pop_name()?);
                }
                names.reverse();
                let context = self.pop_context()?;
                let text = Self::member(&context, &joined(&names));
                self.entity(format!("one-time initialization function for {text}"))
            }
            _ => None,
        }
    }

    fn outlined(&mut self) -> Option<Node> {
        let what = match self.next()? {
            b'y' => "copy",
            b'e' => "consume",
            b'r' => "retain",
            b's' => "release",
            b'b' | b'B' => "init with take",
            b'c' | b'C' => "init with copy",
            b'd' | b'D' => "assign with take",
            b'f' | b'F' => "assign with copy",
            b'h' | b'H' => "destroy",
            b'g' => "enum get tag",
            b'i' => "enum tag store",
            b'j' => "enum project data",
            _ => return None,
        };
        self.pop(NodeKind::Signature);
        self.of_type(&format!("outlined {what} of "))
    }

    fn value_witness(&mut self) -> Option<Node> {
        let kind = match [self.next()?, self.next()?] {
            [b'a', b'l'] => "allocateBuffer",
            [b'c', b'a'] => "assignWithCopy",
            [b't', b'a'] => "assignWithTake",
            [b'd', b'e'] => "deallocateBuffer",
            [b'x', b'x'] => "destroy",
            [b'X', b'X'] => "destroyBuffer",
            [b'X', b'x'] => "destroyArray",
            [b'C', b'P'] => "initializeBufferWithCopyOfBuffer",
            [b'C', b'p'] => "initializeBufferWithCopy",
            [b'c', b'p'] => "initializeWithCopy",
            [b'T', b'K'] => "initializeBufferWithTakeOfBuffer",
            [b'T', b'k'] => "initializeBufferWithTake",
            [b't', b'k'] => "initializeWithTake",
            [b'p', b'r'] => "projectBuffer",
            [b'x', b's'] => "storeExtraInhabitant",
            [b'x', b'g'] => "getExtraInhabitantIndex",
            [b'C', b'c'] => "initializeArrayWithCopy",
            [b'T', b't'] => "initializeArrayWithTakeFrontToBack",
            [b't', b'T'] => "initializeArrayWithTakeBackToFront",
            [b'u', b'g'] => "getEnumTag",
            [b'u', b'p'] => "destructiveProjectEnumData",
            [b'u', b'i'] => "destructiveInjectEnumTag",
            [b'e', b't'] => "getEnumTagSinglePayload",
            [b's', b't'] => "storeEnumTagSinglePayload",
            _ => return None,
        };
        self.of_type(&format!("{kind} value witness for "))
    }

    /// The types in brackets, as in the name of a function.
    pub(super) fn list_of(types: &[Node]) -> String {
        format!("<{}>", joined(types))
    }
}
