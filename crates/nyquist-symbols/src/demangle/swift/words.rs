//! The words in identifiers, which later identifiers can refer to.

/// How many words are remembered.
const MAX_WORDS: usize = 26;

/// The words of the identifiers so far.
#[derive(Default)]
pub(super) struct IdentifierWords<'a>(pub(super) Vec<&'a str>);

impl<'a> IdentifierWords<'a> {
    /// Remembers the words of a name. They begin with capital letters, or after underscores.
    pub(super) fn take(&mut self, name: &'a str) {
        let bytes = name.as_bytes();
        let mut start = None;
        for at in 0..=bytes.len() {
            let byte = bytes.get(at).copied().unwrap_or(b'_');
            let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(0);
            let is_end = byte == b'_' || !before.is_ascii_uppercase() && byte.is_ascii_uppercase();
            if let Some(begun) = start.filter(|_| is_end) {
                if at - begun >= 2 && self.0.len() < MAX_WORDS {
                    self.0.extend(name.get(begun..at));
                }
                start = None;
            }
            if start.is_none() && !byte.is_ascii_digit() && byte != b'_' {
                start = Some(at);
            }
        }
    }
}
