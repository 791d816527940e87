//! The types in Swift's mangled names.

use super::node::{Node, NodeKind, NodeTrait};
use super::reader::MangledNameReader;
use super::stack::{joined, joined_by};

impl MangledNameReader<'_> {
    /// `S`: names of Swift's own types, and of the modules that C's declarations are in.
    pub(super) fn standard_substitution(&mut self) -> Option<Node> {
        match self.peek() {
            b'o' | b'C' => {
                let name = if self.next()? == b'o' { "__C" } else { "__C_Synthesized" };
                return Some(Node::new(NodeKind::Module, name.into()));
            }
            b'g' => {
                self.at += 1;
                let of = self.pop_type()?;
                let of = if of.trait_ == NodeTrait::Function
                    || of.text.contains(' ') && !of.text.ends_with([']', ')', '>'])
                {
                    format!("({})?", of.text)
                } else {
                    format!("{}?", of.text)
                };
                let node = self.node(NodeKind::Type, of)?;
                self.substitutable(&node)?;
                return Some(node);
            }
            _ => {}
        }
        let times = self.natural();
        let name =
            if self.next_if(b'c') { concurrency_type(self.next()?)? } else { standard_type(self.next()?)? };
        let node = self.node(NodeKind::Type, format!("Swift.{name}"))?;
        self.push_again(&node, times)?;
        Some(node)
    }

    pub(super) fn builtin(&mut self) -> Option<Node> {
        let name = match self.next()? {
            b'b' => "BridgeObject".to_owned(),
            b'B' => "UnsafeValueBuffer".to_owned(),
            b'c' => "RawUnsafeContinuation".to_owned(),
            b'D' => "DefaultActorStorage".to_owned(),
            b'd' => "NonDefaultDistributedActorStorage".to_owned(),
            b'e' => "Executor".to_owned(),
            b'f' => format!("FPIEEE{}", self.width()?),
            b'i' => format!("Int{}", self.width()?),
            b'I' => "IntLiteral".to_owned(),
            b'j' => "Job".to_owned(),
            b'P' => "PackIndex".to_owned(),
            b'O' => "UnknownObject".to_owned(),
            b'o' => "NativeObject".to_owned(),
            b'p' => "RawPointer".to_owned(),
            b't' => "SILToken".to_owned(),
            b'w' => "Word".to_owned(),
            b'v' => {
                let width = self.width()?;
                let of = self.pop_type()?;
                format!("Vec{width}x{}", of.text)
            }
            _ => return None,
        };
        self.node(NodeKind::Type, format!("Builtin.{name}"))
    }

    fn width(&mut self) -> Option<usize> {
        let width = self.natural()?;
        self.next_if(b'_').then_some(width)
    }

    pub(super) fn tuple(&mut self) -> Option<Node> {
        let elements = self.pop_list(|reader| {
            reader.pop(NodeKind::Variadic);
            let label = reader.pop(NodeKind::Identifier);
            let of = reader.pop_type()?;
            match label {
                Some(label) => reader.node(NodeKind::Type, format!("{}: {}", label.text, of.text)),
                None => Some(of),
            }
        })?;
        let node = self.node(NodeKind::Type, format!("({})", joined(&elements)))?;
        Some(Node { count: Some(elements.len()), ..node })
    }

    /// A function type, from its parameters and its result.
    pub(super) fn function_type(&mut self) -> Option<Node> {
        while self.pop(NodeKind::Annotation).is_some() {}
        let parameters = self.parameters()?;
        let result = self.parameters()?;
        let in_brackets = |node: &Node| match node.count {
            Some(_) if node.trait_ == NodeTrait::None => node.text.to_string(),
            _ => format!("({})", node.text),
        };
        let count = match parameters.count {
            Some(count) if parameters.trait_ == NodeTrait::None => count,
            _ => 1,
        };
        let node = self.node(NodeKind::Type, format!("{} -> {}", in_brackets(&parameters), result.text))?;
        Some(Node { count: Some(count), trait_: NodeTrait::Function, ..node })
    }

    /// One type, a tuple of several, or none.
    fn parameters(&mut self) -> Option<Node> {
        if self.pop(NodeKind::EmptyList).is_some() {
            return Some(Node { count: Some(0), ..Node::new(NodeKind::Type, "()".into()) });
        }
        self.pop_type()
    }

    /// `Y`: an annotation of a function type or a parameter.
    pub(super) fn annotation(&mut self) -> Option<Node> {
        match self.next()? {
            b'a' | b'b' | b'A' | b'T' | b'C' => Some(Node::plain(NodeKind::Annotation)),
            b'c' | b'K' => {
                self.pop_type()?;
                Some(Node::plain(NodeKind::Annotation))
            }
            b'j' => {
                self.next()?;
                Some(Node::plain(NodeKind::Annotation))
            }
            b'i' | b'k' | b't' | b'u' => self.pop_type(),
            _ => None,
        }
    }

    pub(super) fn bound_generic(&mut self) -> Option<Node> {
        let lists = self.generic_arguments()?;
        let of = self.pop_type()?;
        let arguments = lists.concat();
        let text = match (&*of.text, &*arguments) {
            ("Swift.Array", [element]) => format!("[{}]", element.text),
            ("Swift.Dictionary", [key, value]) => format!("[{} : {}]", key.text, value.text),
            ("Swift.Optional", [wrapped]) => format!("{}?", wrapped.text),
            _ => format!("{}{}", of.text, Self::list_of(&arguments)),
        };
        let node = self.node(NodeKind::Type, text)?.with(of.trait_);
        self.substitutable(&node)?;
        Some(node)
    }

    /// The types for the parameters of each level of a generic type, the outermost first.
    pub(super) fn generic_arguments(&mut self) -> Option<Vec<Vec<Node>>> {
        while self.pop(NodeKind::Retroactive).is_some() {}
        let mut lists = Vec::new();
        loop {
            let mut list: Vec<Node> = std::iter::from_fn(|| self.pop_type()).collect();
            list.reverse();
            lists.push(list);
            if self.pop(NodeKind::EmptyList).is_some() {
                lists.reverse();
                return Some(lists);
            }
            self.pop(NodeKind::First)?;
        }
    }

    /// `X`
    pub(super) fn special_type(&mut self) -> Option<Node> {
        match self.next()? {
            b'E' | b'A' | b'f' | b'K' | b'U' | b'L' | b'B' | b'C' | b'G' => self.function_type(),
            b'o' | b'w' | b'b' | b'D' => self.pop_type(),
            b'u' => self.made_of_type("unowned ", ""),
            b'M' | b'm' => {
                self.next()?;
                self.made_of_type("", ".Type")
            }
            b'p' => self.made_of_type("", ".Type"),
            b'c' => {
                let of = self.pop_type()?;
                let protocols = self.protocols()?;
                self.node(NodeKind::Type, format!("{} & {}", of.text, protocols.text))
            }
            b'l' => {
                let protocols = self.protocols()?;
                let is_any = &*protocols.text == "Any";
                let text = if is_any { "Swift.AnyObject".to_owned() } else { protocols.text.to_string() };
                self.node(NodeKind::Type, text)
            }
            b'P' => {
                loop {
                    let is_first = self.pop(NodeKind::First).is_some();
                    self.pop(NodeKind::Requirement)?;
                    if is_first {
                        break;
                    }
                }
                self.pop_type()
            }
            b'X' => {
                self.pop(NodeKind::Signature)?;
                self.pop_types()?;
                self.pop_types()?;
                Some(Node::new(NodeKind::Type, "{ box }".into()))
            }
            b'x' => {
                self.pop_types()?;
                Some(Node::new(NodeKind::Type, "{ box }".into()))
            }
            b'Y' => self.nominal(NodeTrait::None),
            b'e' => Some(Node::new(NodeKind::Type, "<error type>".into())),
            b'S' => match self.next()? {
                b'q' => self.made_of_type("", "?"),
                b'a' => self.made_of_type("[", "]"),
                b'p' => self.made_of_type("(", ")"),
                b'D' => {
                    let (value, key) = (self.pop_type()?, self.pop_type()?);
                    self.node(NodeKind::Type, format!("[{} : {}]", key.text, value.text))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A type that conforms to some protocols.
    pub(super) fn protocols(&mut self) -> Option<Node> {
        let protocols = self.pop_list(Self::pop_protocol)?;
        let text =
            if protocols.is_empty() { "Any".to_owned() } else { joined_by(protocols.iter(), " & ", "") };
        self.node(NodeKind::Type, text)
    }

    pub(super) fn pop_protocol(&mut self) -> Option<Node> {
        if let Some(of) = self.pop_type() {
            return Some(of);
        }
        let name = self.pop_name()?;
        let context = self.pop_context()?;
        self.node(NodeKind::Type, format!("{}.{}", context.text, name.text))
    }

    /// `I`: the implementation type of a function, of which only the convention is shown.
    pub(super) fn implementation_type(&mut self) -> Option<Node> {
        if self.next_if(b's') {
            self.generic_arguments()?;
            self.pop(NodeKind::Signature)?;
        }
        if self.next_if(b'I') {
            self.generic_arguments()?;
        }
        self.pop(NodeKind::Signature);
        self.next_if(b'P');
        self.next_if(b'e');
        if matches!(self.peek(), b'd' | b'l' | b'f' | b'r') {
            self.at += 1;
        }
        let convention = match self.next()? {
            b'y' => "@callee_unowned",
            b'g' => "@callee_guaranteed",
            b'x' => "@callee_owned",
            b't' => "@convention(thin)",
            _ => return None,
        };
        self.take_any(b"BCMJKW");
        self.take_any(b"AGI");
        self.take_any(b"h");
        self.take_any(b"H");
        let mut types = 0_usize;
        while self.take_any(b"iclbnxygevpm") {
            self.take_any(b"w");
            types += 1;
        }
        while self.take_any(b"rodouak") {
            self.take_any(b"w");
            types += 1;
        }
        while self.next_if(b'Y') {
            types += usize::from(self.take_any(b"iclbnxygevpm"));
        }
        if self.next_if(b'z') {
            types += usize::from(self.take_any(b"rodouak"));
            self.take_any(b"w");
        }
        self.next_if(b'_').then_some(())?;
        for _ in 0..types {
            self.pop_type()?;
        }
        Some(Node::new(NodeKind::Type, convention.into()).with(NodeTrait::Function))
    }

    fn take_any(&mut self, letters: &[u8]) -> bool {
        let is_one = letters.contains(&self.peek());
        self.at += usize::from(is_one);
        is_one
    }
}

fn standard_type(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'A' => "AutoreleasingUnsafeMutablePointer",
        b'a' => "Array",
        b'B' => "BinaryFloatingPoint",
        b'b' => "Bool",
        b'D' => "Dictionary",
        b'd' => "Double",
        b'E' => "Encodable",
        b'e' => "Decodable",
        b'F' => "FloatingPoint",
        b'f' => "Float",
        b'G' => "RandomNumberGenerator",
        b'H' => "Hashable",
        b'h' => "Set",
        b'I' => "DefaultIndices",
        b'i' => "Int",
        b'J' => "Character",
        b'j' => "Numeric",
        b'K' => "BidirectionalCollection",
        b'k' => "RandomAccessCollection",
        b'L' => "Comparable",
        b'l' => "Collection",
        b'M' => "MutableCollection",
        b'm' => "RangeReplaceableCollection",
        b'N' => "ClosedRange",
        b'n' => "Range",
        b'O' => "ObjectIdentifier",
        b'P' => "UnsafePointer",
        b'p' => "UnsafeMutablePointer",
        b'Q' => "Equatable",
        b'q' => "Optional",
        b'R' => "UnsafeBufferPointer",
        b'r' => "UnsafeMutableBufferPointer",
        b'S' => "String",
        b's' => "Substring",
        b'T' => "Sequence",
        b't' => "IteratorProtocol",
        b'U' => "UnsignedInteger",
        b'u' => "UInt",
        b'V' => "UnsafeRawPointer",
        b'v' => "UnsafeMutableRawPointer",
        b'W' => "UnsafeRawBufferPointer",
        b'w' => "UnsafeMutableRawBufferPointer",
        b'X' => "RangeExpression",
        b'x' => "Strideable",
        b'Y' => "RawRepresentable",
        b'y' => "StringProtocol",
        b'Z' => "SignedInteger",
        b'z' => "BinaryInteger",
        _ => return None,
    })
}

fn concurrency_type(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'A' => "Actor",
        b'C' => "CheckedContinuation",
        b'c' => "UnsafeContinuation",
        b'E' => "CancellationError",
        b'e' => "UnownedSerialExecutor",
        b'F' => "Executor",
        b'f' => "SerialExecutor",
        b'G' => "TaskGroup",
        b'g' => "ThrowingTaskGroup",
        b'h' => "TaskExecutor",
        b'I' => "AsyncIteratorProtocol",
        b'i' => "AsyncSequence",
        b'J' => "UnownedJob",
        b'M' => "MainActor",
        b'P' => "TaskPriority",
        b'S' => "AsyncStream",
        b's' => "AsyncThrowingStream",
        b'T' => "Task",
        b't' => "UnsafeCurrentTask",
        _ => return None,
    })
}
