//! What is said on standard error, at the volume that was asked for.

use crate::args::Verbosity;
use crate::failure::Failure;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

/// Talks to the user. Standard output is for data alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    verbosity: Verbosity,
}

impl Printer {
    /// A printer of that volume.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        Self { verbosity }
    }

    /// Something that the user will want to know.
    pub(crate) fn say(self, text: impl Display) {
        if !self.verbosity.quiet {
            line(text);
        }
    }

    /// Something that the user should do something about.
    pub(crate) fn warn(self, text: impl Display) {
        self.say(format_args!("warning: {text}"));
    }

    /// Something for those who want to know how it came about.
    pub(crate) fn detail(self, text: impl Display) {
        if self.verbosity.verbose {
            line(text);
        }
    }

    /// Whether nothing is said at all, so that it need not be known either.
    pub(crate) fn is_silent(self) -> bool {
        self.verbosity.quiet
    }

    /// Whether something that changes on the terminal may be shown.
    pub(crate) fn shows_progress(self) -> bool {
        !self.verbosity.quiet && io::stderr().is_terminal()
    }
}

/// Prints a failure: the sentence, then its hints.
pub(crate) fn print_failure(failure: &Failure) {
    line(rendered(failure).trim_end_matches('\n'));
}

/// A failure as it is printed.
pub(crate) fn rendered(failure: &Failure) -> String {
    let mut text = format!("error: {}\n", failure.message);
    if !failure.hints.is_empty() {
        text.push('\n');
    }
    for hint in &failure.hints {
        text += &format!("hint: {hint}\n");
    }
    text
}

fn line(text: impl Display) {
    // Nothing can be said about a standard error that cannot be written to.
    let _ = writeln!(io::stderr(), "{text}");
}
