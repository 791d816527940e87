//! How names of functions are shown: short or full, with nothing in them that acts on a terminal.

use super::one_line;
use nyquist_analysis::short_name;
use std::borrow::Cow;

/// How names are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Names {
    /// Without generic arguments and parameters.
    #[default]
    Short,
    /// As they are.
    Full,
}

impl Names {
    /// The name as it is shown, with hidden characters escaped.
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
