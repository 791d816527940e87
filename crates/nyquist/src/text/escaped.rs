//! Text that may be written to a terminal: text from outside is escaped, and the colours are this
//! program's own.

use nyquist_formats::hidden;
use std::borrow::Cow;
use std::ops::{Add, AddAssign};

/// Escaped text. Only [`Style::paint`](super::Style::paint) adds terminal codes, after escaping, so no
/// text that is made from a string can contain any. If such a text is converted to a string and back, the
/// codes are escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(String);

impl Text {
    /// The escaped text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds text at the end.
    pub(crate) fn push(&mut self, text: impl Into<Self>) {
        self.0.push_str(&text.into().0);
    }

    /// Removes spaces at the end.
    pub(crate) fn trim_end(mut self) -> Self {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    /// The text between two terminal codes.
    pub(super) fn within(before: &str, text: &str, after: &str) -> Self {
        Self(format!("{before}{}{after}", Self::from(text).0))
    }
}

/// Newlines and tabs are kept, because they are this program's layout. In names they are escaped by
/// [`one_line`].
impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(hidden::escape_but(text, &['\n', '\t']).into_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl<T: Into<Text>> Add<T> for Text {
    type Output = Self;

    fn add(mut self, text: T) -> Self {
        self.push(text);
        self
    }
}

impl<T: Into<Text>> AddAssign<T> for Text {
    fn add_assign(&mut self, text: T) {
        self.push(text);
    }
}

/// A name, or another text from outside, with all hidden characters escaped, including newlines and tabs.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    hidden::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Screen, Style};

    #[test]
    fn codes_are_ours_or_escaped() {
        let screen = Screen { width: Some(80), colour: true, unicode: true };
        let painted = Style::Hot.paint("a\u{1b}[0mb", screen);
        assert_eq!(painted.as_str(), "\u{1b}[31ma\\x1b[0mb\u{1b}[0m");
        let text = Text::from("\u{202e}x\n") + "y\u{9b}" + painted.clone();
        assert_eq!(text.as_str(), format!("\\u{{202e}}x\ny\\u{{9b}}{}", painted.as_str()));
        assert!(!Text::from(painted.as_str()).as_str().contains('\u{1b}'));
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(one_line("a\nb\tc"), "a\\nb\\tc");
    }
}
