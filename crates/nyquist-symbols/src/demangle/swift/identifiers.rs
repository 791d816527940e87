//! Identifiers: names with their lengths, words of earlier names, letters beyond ASCII.

use super::node::{Node, NodeKind, NodeTrait};
use super::reader::MangledNameReader;

impl MangledNameReader<'_> {
    /// `4main`, `0aB3` (words by their letters, the last one in upper case), `00` and Punycode.
    pub(super) fn identifier(&mut self) -> Option<Node> {
        let (mut has_words, mut is_punycode) = (false, false);
        if self.next_if(b'0') {
            is_punycode = self.next_if(b'0');
            has_words = !is_punycode;
        }
        let mut name = String::new();
        loop {
            while has_words && self.peek().is_ascii_alphabetic() {
                let letter = self.next()?;
                has_words = letter.is_ascii_lowercase();
                name.push_str(self.words.0.get(usize::from(letter.to_ascii_lowercase() - b'a'))?);
            }
            if self.next_if(b'0') {
                break;
            }
            let len = self.natural().filter(|&len| len > 0)?;
            if is_punycode {
                self.next_if(b'_');
            }
            let end = self.at.checked_add(len)?;
            let part = std::str::from_utf8(self.text.get(self.at..end)?).ok()?;
            self.at = end;
            if is_punycode {
                name.push_str(&from_punycode(part)?);
            } else {
                self.words.take(part);
                name.push_str(part);
            }
            if !has_words {
                break;
            }
        }
        if name.is_empty() {
            return None;
        }
        let node = self.node(NodeKind::Identifier, name)?;
        self.substitutable(&node)?;
        Some(node)
    }

    /// `L`: a name that is private to a file, local to a function, or derived from another name.
    pub(super) fn local_identifier(&mut self) -> Option<Node> {
        if self.next_if(b'l') {
            self.pop(NodeKind::Identifier)?;
            return Some(Node::plain(NodeKind::Discriminator));
        }
        if self.next_if(b'L') {
            self.pop(NodeKind::Identifier)?;
            let name = self.pop_name()?;
            return Some(Node { kind: NodeKind::Declaration, ..name });
        }
        if matches!(self.peek(), b'a'..=b'j' | b'A'..=b'J') {
            let letter = char::from(self.next()?);
            let name = self.pop_name()?;
            return self.node(NodeKind::Declaration, format!("related decl '{letter}' for {}", name.text));
        }
        let number = self.index()?;
        let name = self.pop_name()?;
        let text = format!("{} #{}", name.text, number + 1);
        self.node(NodeKind::Declaration, text).map(|node| node.with(NodeTrait::Local))
    }

    /// `o`: the name of an operator, each sign of which is encoded as a letter.
    pub(super) fn operator_identifier(&mut self) -> Option<Node> {
        const SIGNS: &[u8; 26] = b"& @/= >    <*!|+?%-~   ^ .";
        let name = self.pop(NodeKind::Identifier)?;
        let sign = |letter: char| match letter {
            'a'..='z' => Some(char::from(SIGNS[letter as usize - 'a' as usize])).filter(|sign| *sign != ' '),
            letter if !letter.is_ascii() => Some(letter),
            _ => None,
        };
        let text = name.text.chars().map(sign).collect::<Option<String>>()?;
        matches!(self.next()?, b'i' | b'p' | b'P').then_some(())?;
        self.node(NodeKind::Declaration, text)
    }
}

/// Punycode (RFC 3492) with `_` for `-`, and letters of upper case for digits.
fn from_punycode(text: &str) -> Option<String> {
    const BASE: u32 = 36;
    const MIN: u32 = 1;
    const MAX: u32 = 26;
    const SKEW: u32 = 38;
    let (plain, rest) = text.rsplit_once('_').unwrap_or(("", text));
    let mut letters: Vec<char> = plain.chars().collect();
    let (mut code, mut at, mut bias) = (128_u32, 0_u32, 72_u32);
    let mut digits = rest.bytes();
    while digits.len() > 0 {
        let before = at;
        let mut weight = 1_u32;
        for step in (BASE..).step_by(BASE as usize) {
            let digit = match digits.next()? {
                byte @ b'a'..=b'z' => byte - b'a',
                byte @ b'A'..=b'J' => byte - b'A' + 26,
                _ => return None,
            };
            at = at.checked_add(u32::from(digit).checked_mul(weight)?)?;
            let threshold = step.saturating_sub(bias).clamp(MIN, MAX);
            if u32::from(digit) < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
        }
        let count = letters.len() as u32 + 1;
        let mut delta = (at - before) / if before == 0 { 700 } else { 2 };
        delta += delta / count;
        let mut steps = 0;
        while delta > (BASE - MIN) * MAX / 2 {
            delta /= BASE - MIN;
            steps += BASE;
        }
        bias = steps + (BASE - MIN + 1) * delta / (delta + SKEW);
        code = code.checked_add(at / count)?;
        at %= count;
        // ASCII characters that identifiers must not contain are encoded in the range of surrogates.
        let letter = if (0xd800..0xd880).contains(&code) { code - 0xd800 } else { code };
        letters.insert(at as usize, char::from_u32(letter)?);
        at += 1;
    }
    Some(letters.into_iter().collect())
}
