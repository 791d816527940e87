//! The form of functions' names: short or full, without characters that control a terminal.

use super::one_line;
use nyquist_analysis::short_name;
use std::borrow::Cow;

/// The form of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Names {
    /// Without generic arguments and parameters.
    #[default]
    Short,
    /// Unchanged.
    Full,
}

impl Names {
    /// The same as a function.
    pub(crate) fn form(self) -> fn(&str) -> Cow<'_, str> {
        match self {
            Self::Short => |name| Cow::Owned(Self::Short.show(name)),
            Self::Full => |name| Cow::Owned(Self::Full.show(name)),
        }
    }

    /// The name for display, with hidden characters escaped.
    pub(crate) fn show(self, name: &str) -> String {
        let name = match self {
            Self::Short => short_name(name),
            Self::Full => Cow::Borrowed(name),
        };
        one_line(&name).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_does_not_command_the_terminal() {
        assert_eq!(Names::Full.show("a\u{1b}[31mb\n"), "a\\x1b[31mb\\n");
    }
}
