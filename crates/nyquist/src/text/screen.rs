//! The kind of an output: a terminal with a width and colours, or a pipe or file that gets plain text.

use std::env;
use std::ffi::OsString;
use std::io::IsTerminal;
use terminal_size::{Width, terminal_size};

/// The properties of an output that text can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// The terminal's width in characters; `None` for other outputs, for which nothing is cut.
    pub(crate) width: Option<usize>,
    /// Whether colours and bars are shown.
    pub(crate) colour: bool,
    /// Whether non-ASCII characters are shown unchanged.
    pub(crate) unicode: bool,
}

impl Screen {
    /// A pipe or a file.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { width: None, colour: false, unicode: true };

    /// A file, for which nothing is cut.
    pub(crate) fn of_file() -> Self {
        Self { width: None, colour: false, unicode: is_utf8(|name| env::var_os(name)) }
    }

    /// The kind of a stream of this process.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let plain = Self::of_file();
        if !stream.is_terminal() {
            return plain;
        }
        let unicode = plain.unicode;
        let columns = terminal_size().map_or(0, |(Width(columns), _)| columns);
        let width = if columns == 0 { 80 } else { usize::from(columns) };
        Self { width: Some(width), colour: wants_colour(|name| env::var_os(name)), unicode }
    }
}

/// Whether to use colours: not if the user refuses them (<https://no-color.org>) or the terminal has none.
fn wants_colour(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && variable("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the locale's characters are UTF-8: the first variable that is set decides (POSIX, "Locale").
fn is_utf8(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| variable(name));
    let locale =
        set.filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().to_lowercase()).next();
    locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    }

    #[test]
    fn colours_are_left_out_where_not_wanted() {
        let check = |set: &[_], expected| assert_eq!(wants_colour(variables(set)), expected, "{set:?}");
        check(&[], true);
        check(&[("NO_COLOR", "1")], false);
        check(&[("NO_COLOR", "")], true);
        check(&[("TERM", "dumb")], false);
        check(&[("TERM", "xterm-256color")], true);
    }

    #[test]
    fn the_locale_says_which_characters_there_are() {
        let check = |set: &[_], expected| assert_eq!(is_utf8(variables(set)), expected, "{set:?}");
        check(&[], false);
        check(&[("LANG", "de_DE.UTF-8")], true);
        check(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], false);
        check(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")], true);
    }
}
