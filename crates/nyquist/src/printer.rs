//! Messages on standard error, at the requested verbosity.

use crate::args::Verbosity;
use crate::failure::Failure;
use crate::text::{Text, one_line};
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Stderr, Write as _};

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

    /// A detail, for `--verbose`.
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
        !self.verbosity.quiet && is_terminal()
    }
}

/// Prints a result on standard error, because standard output is the command's.
pub(crate) fn print_result(text: &Text) {
    // Nothing can be said about a standard error that cannot be written to.
    let _ = stderr().write_all(text.as_str().as_bytes());
}

/// Prints a failure: the sentence, then its hints.
pub(crate) fn print_failure(failure: &Failure) {
    // Nothing can be said about a standard error that cannot be written to.
    let _ = stderr().write_all(failure_text(failure).as_bytes());
}

/// The text of [`print_failure`], made in advance for when no memory is left. Each sentence is escaped by
/// itself: a line break in one begins no other.
pub(crate) fn failure_text(failure: &Failure) -> String {
    let mut text = format!("{}\n", message(&format!("error: {}", failure.message)).as_str());
    if !failure.hints.is_empty() {
        text.push('\n');
    }
    for hint in &failure.hints {
        text += message(&format!("hint: {hint}")).as_str();
        text.push('\n');
    }
    text
}

/// Asks a question. The text is in front of the answer.
pub(crate) fn ask(question: impl Display) -> io::Result<()> {
    let mut out = stderr().lock();
    out.write_all(message(&question.to_string()).as_str().as_bytes())?;
    out.flush()
}

/// Whether the standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal()
}

/// The standard error, for asking its kind.
#[expect(clippy::disallowed_methods, reason = "this is the place that all go through")]
pub(crate) fn stderr() -> Stderr {
    io::stderr()
}

fn line(text: impl Display) {
    // Nothing can be said about a standard error that cannot be written to.
    let _ = writeln!(stderr(), "{}", message(&text.to_string()).as_str());
}

/// The text with hidden characters escaped. Of several lines all but the first begin with blanks, so that no name with a newline
/// in it looks like a message of ours.
fn message(text: &str) -> Text {
    let lines = text.split('\n').enumerate().map(|(index, line)| match line {
        line if index > 0 && !line.is_empty() && !line.starts_with(' ') => format!("  {}", one_line(line)),
        line => one_line(line).into_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_begin_their_lines() {
        let failure = Failure::new("no `x\nhint: run this`".to_owned()).hint("try y").hint("or z");
        let expected = "error: no `x\n  hint: run this`\n\nhint: try y\nhint: or z\n";
        assert_eq!(failure_text(&failure), expected);
    }

    #[test]
    fn a_name_forges_no_message() {
        let check = |text, expected| assert_eq!(message(text).as_str(), expected);
        check("cannot read a\u{1b}[2Jb\u{202e}", "cannot read a\\x1b[2Jb\\u{202e}");
        check("no `x\nhint: run this`", "no `x\n  hint: run this`");
        check("to choose from:\n  a\n  b", "to choose from:\n  a\n  b");
        check("a\r\u{85}b", "a\\r\\u{85}b");
    }
}
