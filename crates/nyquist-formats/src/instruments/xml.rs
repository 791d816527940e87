//! As much XML as exports of tables are written in: elements, attributes, texts and entities. No DTDs, no namespaces.

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `<name a="b">`; followed by its [`End`](Self::End) even if it is written `<name/>`.
    Start {
        name: &'a str,
        /// What stands behind the name, to be asked by [`attribute`].
        attributes: &'a str,
    },
    /// `</name>`
    End { name: &'a str },
    /// What stands between tags, with its entities.
    Text(&'a str),
}

/// The tokens of a document. They end where it is cut off or is no XML.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The end of an element that is written as one tag.
    pending_end: Option<&'a str>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, pending_end: None }
    }

    /// Whether all of the document was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.trim().is_empty()
    }

    /// How much of the document is left, in bytes.
    pub(super) fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// Skips what is no element: declarations, comments, processing instructions. Gives whether there was anything.
    fn skip(&mut self) -> bool {
        for (begin, end) in [("<!--", "-->"), ("<?", "?>"), ("<!", ">")] {
            if self.rest.starts_with(begin) {
                let Some((_, rest)) = self.rest.split_once(end) else { return false };
                self.rest = rest;
                return true;
            }
        }
        false
    }

    fn tag(&mut self) -> Option<Token<'a>> {
        let end = tag_end(self.rest)?;
        let (tag, rest) = (&self.rest[1..end], &self.rest[end + 1..]);
        self.rest = rest;
        if let Some(name) = tag.strip_prefix('/') {
            return Some(Token::End { name: name.trim() });
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        self.pending_end = is_empty.then_some(name);
        Some(Token::Start { name, attributes })
    }
}

/// Where a tag ends: at the first `>` outside of quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    text.bytes().position(|byte| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => return quote.is_none() && byte == b'>',
        }
        false
    })
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.pending_end.take() {
            return Some(Token::End { name });
        }
        while self.skip() {}
        if self.rest.starts_with('<') {
            return self.tag();
        }
        let end = self.rest.find('<')?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Token::Text(text))
    }
}

/// The value of an attribute, as it is written.
pub(super) fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = after;
    }
}

/// A text with its entities replaced.
pub(super) fn unescape(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        unescaped.push_str(before);
        match after.split_once(';').and_then(|(entity, rest)| Some((character(entity)?, rest))) {
            Some((character, after)) => {
                unescaped.push(character);
                rest = after;
            }
            None => {
                unescaped.push('&');
                rest = after;
            }
        }
    }
    unescaped.push_str(rest);
    unescaped
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_texts_and_attributes_are_told_apart() {
        let tokens: Vec<_> = Tokens::new("<?xml?><!-- a > b --><a x='1>2' y=\"'\"><b/>t&amp;</a>").collect();
        let expected = [
            Token::Start { name: "a", attributes: "x='1>2' y=\"'\"" },
            Token::Start { name: "b", attributes: "" },
            Token::End { name: "b" },
            Token::Text("t&amp;"),
            Token::End { name: "a" },
        ];
        assert_eq!(tokens, expected);
        assert_eq!(attribute("x='1>2' y=\"'\"", "y"), Some("'"));
        assert_eq!(attribute("x='1' xy='2'", "y"), None);
    }

    #[test]
    fn entities_are_replaced() {
        let check = |text, expected: &str| assert_eq!(unescape(text), expected);
        check("a&lt;b&gt; &#65;&#x42;", "a<b> AB");
        check("& &nope; &#xffffffff; &", "& &nope; &#xffffffff; &");
    }

    #[test]
    fn what_is_cut_ends() {
        for text in ["<a", "<a x='", "<!-- ", "text", "<"] {
            assert_eq!(Tokens::new(text).next(), None, "{text}");
        }
    }
}
