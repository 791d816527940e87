//! The brackets of names of Rust and C++, distinguished from operators that look like them.

/// C++'s operators made of signs. Of those with a common prefix, the longest is first.
pub(super) const OPERATORS: [&str; 41] = [
    "<=>", "->*", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<", ">", "+", "-", "*", "/", "%", "^", "&", "|", "~",
    "!", "=", ",", "\"\"", "[",
];

/// The position of the bracket that closes the one at the start of the text.
pub(super) fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        index += skip_operator(text, index);
        let &byte = bytes.get(index)?;
        match byte {
            b'<' | b'(' | b'[' | b'{' => open.push(byte),
            b'>' if index > 0 && bytes[index - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => {
                // The sign of a comparison among C++'s template arguments has no partner.
                while byte != b'>' && open.last() == Some(&b'<') {
                    open.pop();
                }
                if partner(byte) != open.pop()? {
                    return None;
                }
                if open.is_empty() {
                    return Some(index);
                }
            }
            _ => {}
        }
        index += 1;
    }
    None
}

fn partner(closing: u8) -> u8 {
    match closing {
        b'>' => b'<',
        b')' => b'(',
        b']' => b'[',
        _ => b'{',
    }
}

/// The length in bytes of `operator<<` or a similar operator at that position.
fn skip_operator(text: &str, index: usize) -> usize {
    let after = text.get(index..).and_then(|rest| rest.strip_prefix("operator"));
    let sign = after.and_then(|after| OPERATORS.iter().find(|sign| after.starts_with(**sign)));
    sign.map_or(0, |sign| "operator".len() + sign.len())
}

/// Splits at the first such word outside of brackets.
pub(super) fn split_outside<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let mut from = 0;
    while let Some(next) = text.get(from..)?.find(|char: char| "<([{ ".contains(char)) {
        let at = from + next;
        if text[at..].starts_with(word) {
            return Some((&text[..at], &text[at + word.len()..]));
        }
        from = if text.as_bytes()[at] == b' ' { at + 1 } else { at + closing(&text[at..])? + 1 };
    }
    None
}
