//! A writer that escapes hidden characters.

use nyquist_formats::hidden;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The form of an escaped character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As `\u{202e}`; newlines and tabs stay.
    Text,
    /// As `\u202e`, in JSON, whose own newlines stay.
    Json,
}

/// Escapes all text that is written to it. Bytes that are not UTF-8 are escaped, because some of them control
/// old terminals.
pub(super) struct Escaping<'a> {
    out: &'a mut dyn Write,
    form: Form,
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<'a> Escaping<'a> {
    pub(super) fn new(out: &'a mut dyn Write, form: Form) -> Self {
        Self { out, form, begun: Vec::new() }
    }

    /// Writes the complete output of `write`.
    pub(super) fn write_with(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        write(&mut self)?;
        let begun = std::mem::take(&mut self.begun);
        self.out.write_all(bytes_escaped(&begun).as_bytes())
    }

    fn escape(form: Form, text: &str) -> Cow<'_, str> {
        match form {
            Form::Text => hidden::escape_but(text, &['\n', '\t']),
            Form::Json => hidden::escape_json(text),
        }
    }
}

impl Write for Escaping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = if self.begun.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            self.begun.extend(bytes);
            Cow::Owned(std::mem::take(&mut self.begun))
        };
        let mut rest = &*all;
        loop {
            let (valid, wrong) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    (std::str::from_utf8(valid).unwrap_or_default(), Some((error.error_len(), after)))
                }
            };
            self.out.write_all(Self::escape(self.form, valid).as_bytes())?;
            match wrong {
                None => return Ok(bytes.len()),
                Some((None, after)) => {
                    self.begun = after.to_vec();
                    return Ok(bytes.len());
                }
                Some((Some(length), after)) => {
                    let (wrong, after) = after.split_at(length);
                    self.out.write_all(bytes_escaped(wrong).as_bytes())?;
                    rest = after;
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn bytes_escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(form: Form, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let write = |out: &mut dyn Write| pieces.iter().try_for_each(|piece| out.write_all(piece));
        Escaping::new(&mut out, form).write_with(write).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_character_is_escaped_wherever_it_is_cut() {
        let text = "a\u{202e}é\u{1b}[2J\n\tb\u{9b}\u{e0041}";
        for cut in 0..=text.len() {
            let (before, after) = text.as_bytes().split_at(cut);
            let expected = "a\\u{202e}é\\x1b[2J\n\tb\\u{9b}\\u{e0041}";
            assert_eq!(escaped(Form::Text, &[before, after]), expected, "{cut}");
        }
        let single: Vec<_> = text.as_bytes().chunks(1).collect();
        assert_eq!(escaped(Form::Json, &single), "a\\u202eé\\u001b[2J\n\\u0009b\\u009b\\udb40\\udc41");
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped_too() {
        assert_eq!(escaped(Form::Text, &[b"a\x9b31m", b"\xffb\xe2\x80"]), "a\\x9b31m\\xffb\\xe2\\x80");
    }
}
