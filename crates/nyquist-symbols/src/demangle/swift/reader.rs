//! The reader of a mangled name: its letters and numbers, and the stack that it fills.

use super::node::Node;
use super::words::IdentifierWords;
use std::rc::Rc;

/// The most bytes of text that are made while a name is parsed. Substitutions let a short hostile name grow
/// without bound.
pub(super) const MAX_MADE: usize = 1 << 20;

/// The most nodes on the stack, or among the substitutions.
pub(super) const MAX_NODES: usize = 64 << 10;

/// The reader of a mangled name.
pub(super) struct MangledNameReader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) stack: Vec<Node>,
    pub(super) substitutions: Vec<Node>,
    pub(super) words: IdentifierWords<'a>,
    /// How many bytes of names were made.
    pub(super) made: usize,
}

impl<'a> MangledNameReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            stack: Vec::new(),
            substitutions: Vec::new(),
            words: IdentifierWords::default(),
            made: 0,
        }
    }

    pub(super) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn next_if(&mut self, byte: u8) -> bool {
        let is_next = self.at < self.text.len() && self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    /// A number in decimal digits.
    pub(super) fn natural(&mut self) -> Option<usize> {
        let start = self.at;
        let mut number = 0_usize;
        while self.peek().is_ascii_digit() {
            let digit = usize::from(self.next()? - b'0');
            number = number.checked_mul(10)?.checked_add(digit)?;
        }
        (self.at > start).then_some(number)
    }

    /// `_` is 0, `0_` 1 and so on.
    pub(super) fn index(&mut self) -> Option<usize> {
        if self.next_if(b'_') {
            return Some(0);
        }
        let number = self.natural()?;
        self.next_if(b'_').then(|| number.saturating_add(1))
    }

    /// Stores the text of a new node, within the limit.
    pub(super) fn store_text(&mut self, text: String) -> Option<Rc<str>> {
        self.made += text.len();
        (self.made <= MAX_MADE).then(|| text.into())
    }
}
