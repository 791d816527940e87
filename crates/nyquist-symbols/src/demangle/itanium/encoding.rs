//! Parses whole symbols: functions with their parameters, variables, and what compilers make for them.

use super::names::NameFacts;
use super::parser::Parser;
use super::tree::{Node, NodeId};

/// What precedes the symbols of code that runs before and after `main` for a file.
const FILE_CODE: [(&str, &str); 2] =
    [("I", "global constructors keyed to "), ("D", "global destructors keyed to ")];

impl<'a> Parser<'a> {
    /// A whole symbol.
    pub(super) fn symbol(&mut self) -> Option<NodeId> {
        if self.take("_GLOBAL_") {
            return self.file_code();
        }
        if !self.take("_Z") {
            self.expect("__Z")?;
        }
        let mut symbol = self.encoding(true)?;
        while self.peek() == b'.' {
            let end = self.clone_suffix()?;
            symbol = self.add(Node::Clone(symbol, end));
        }
        self.rest().is_empty().then_some(symbol)
    }

    fn file_code(&mut self) -> Option<NodeId> {
        if !matches!(self.peek(), b'_' | b'.' | b'$') {
            return None;
        }
        self.at += 1;
        let (_, words) = FILE_CODE.into_iter().find(|(letter, _)| self.take(letter))?;
        self.expect("_")?;
        let of = if self.rest().starts_with("_Z") {
            self.symbol()?
        } else {
            let name = self.take_while(|_| true);
            self.text_node(name)
        };
        Some(self.add(Node::Prefixed(words, of)))
    }

    /// The end of the symbol of a copy: letters, with numbers behind them.
    fn clone_suffix(&mut self) -> Option<&'a str> {
        let (start, rest) = (self.at, self.rest());
        self.expect(".")?;
        let is_letter = |letter: u8| letter.is_ascii_alphabetic() || letter == b'_';
        if self.take_while(|letter| is_letter(letter) || letter.is_ascii_digit()).is_empty() {
            return None;
        }
        while self.peek() == b'.' && self.peek_at(1).is_ascii_digit() {
            self.at += 1;
            self.take_while(|letter| letter.is_ascii_digit());
        }
        rest.get(..self.at - start)
    }

    /// A function or a variable. Within other names, functions have no result's type.
    pub(super) fn encoding(&mut self, has_result: bool) -> Option<NodeId> {
        let outer = std::mem::take(&mut self.arguments);
        let encoding = self.nested(|parser| parser.own_encoding(has_result));
        self.arguments = outer;
        encoding
    }

    fn own_encoding(&mut self, has_result: bool) -> Option<NodeId> {
        if matches!(self.peek(), b'G' | b'T') {
            return self.special();
        }
        let mut facts = NameFacts::default();
        let name = self.name(Some(&mut facts))?;
        let arguments = self.arguments;
        if matches!(self.peek(), 0 | b'E' | b'.') {
            return Some(name);
        }
        let result = if facts.is_template && !facts.has_no_result { Some(self.ty()?) } else { None };
        let parameters = self.parameters()?;
        if self.take("Q") {
            self.expression()?;
        }
        let result = result.filter(|_| has_result);
        Some(self.add(Node::Encoding { name, result, parameters, qualifiers: facts.qualifiers, arguments }))
    }

    fn special(&mut self) -> Option<NodeId> {
        const OF_TYPES: [(&str, &str); 5] = [
            ("TV", "vtable for "),
            ("TT", "VTT for "),
            ("TI", "typeinfo for "),
            ("TS", "typeinfo name for "),
            ("TF", "typeinfo fn for "),
        ];
        const OF_NAMES: [(&str, &str); 3] = [
            ("TW", "TLS wrapper function for "),
            ("TH", "TLS init function for "),
            ("GV", "guard variable for "),
        ];
        const OF_SYMBOLS: [(&str, &str); 4] = [
            ("GA", "hidden alias for "),
            ("GTt", "transaction clone for "),
            ("GTn", "non-transaction clone for "),
            ("GI", "initializer for module "),
        ];
        if let Some((_, words)) = OF_TYPES.into_iter().find(|(code, _)| self.take(code)) {
            let of = self.ty()?;
            return Some(self.add(Node::Prefixed(words, of)));
        }
        if let Some((_, words)) = OF_NAMES.into_iter().find(|(code, _)| self.take(code)) {
            let of = self.name(Some(&mut NameFacts::default()))?;
            return Some(self.add(Node::Prefixed(words, of)));
        }
        if let Some((_, words)) = OF_SYMBOLS.into_iter().find(|(code, _)| self.take(code)) {
            let of = self.encoding(true)?;
            return Some(self.add(Node::Prefixed(words, of)));
        }
        self.thunk_or_other()
    }

    fn thunk_or_other(&mut self) -> Option<NodeId> {
        if self.take("TA") {
            let of = self.template_argument()?;
            return Some(self.add(Node::Prefixed("template parameter object for ", of)));
        }
        if self.take("TC") {
            let whole = self.ty()?;
            self.take_while(|letter| letter.is_ascii_digit());
            self.expect("_")?;
            let part = self.ty()?;
            return Some(self.add(Node::ConstructionTable(part, whole)));
        }
        if self.take("GR") {
            let name = self.name(Some(&mut NameFacts::default()))?;
            let number = if self.rest().is_empty() { 0 } else { self.sequence_id()? };
            return Some(self.add(Node::Temporary(name, number as u64)));
        }
        self.expect("T")?;
        let words = match self.peek() {
            b'h' => "non-virtual thunk to ",
            b'v' => "virtual thunk to ",
            b'c' => "covariant return thunk to ",
            _ => return None,
        };
        let offsets = if self.take("c") { 2 } else { 1 };
        for _ in 0..offsets {
            self.call_offset()?;
        }
        let of = self.encoding(true)?;
        Some(self.add(Node::Prefixed(words, of)))
    }

    /// How far a thunk moves the object's address.
    fn call_offset(&mut self) -> Option<()> {
        let is_virtual = self.peek() == b'v';
        if !is_virtual && self.peek() != b'h' {
            return None;
        }
        self.at += 1;
        for _ in 0..if is_virtual { 2 } else { 1 } {
            self.take("n");
            self.number()?;
            self.expect("_")?;
        }
        Some(())
    }
}
