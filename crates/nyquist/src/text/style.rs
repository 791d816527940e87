//! Colours of text on terminals that show them.

use super::{Screen, Text};

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without a style.
    #[default]
    Plain,
    /// Headings.
    Bold,
    /// Less important text.
    Dim,
    /// A large share, or slower than before.
    Hot,
    /// A significant share.
    Warm,
    /// Faster than before.
    Good,
}

impl Style {
    /// The style of a share of the whole, from 0 to 1.
    pub(crate) fn of_share(share: f64) -> Self {
        match share {
            share if share >= 0.1 => Self::Hot,
            share if share >= 0.01 => Self::Warm,
            _ => Self::Plain,
        }
    }

    /// The text with the codes of its style (ECMA-48, "SGR"), if the screen has colours.
    pub(crate) fn paint(self, text: &str, screen: Screen) -> Text {
        let code = match self {
            _ if !screen.colour || text.is_empty() => return text.into(),
            Self::Plain => return text.into(),
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Hot => "31",
            Self::Warm => "33",
            Self::Good => "32",
        };
        Text::within(&format!("\u{1b}[{code}m"), text, "\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_plain_text() {
        assert_eq!(Style::Hot.paint("x", Screen::PLAIN).as_str(), "x");
        let terminal = Screen { width: Some(80), colour: true, unicode: true };
        assert_eq!(Style::Hot.paint("x", terminal).as_str(), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Style::Plain.paint("x", terminal).as_str(), "x");
    }
}
