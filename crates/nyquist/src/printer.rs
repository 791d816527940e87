//! Messages on standard error, at the requested verbosity.

use crate::failure::Failure;
use crate::text::{Screen, Text, one_line};
use crate::verbosity::Verbosity;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Stderr, Write as _};

/// Prints messages to the user. Standard output is reserved for data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    verbosity: Verbosity,
}

impl Printer {
    /// A printer with that verbosity.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        Self { verbosity }
    }

    /// Prints information that the user will want to know.
    pub(crate) fn say(self, text: impl Display) {
        if !self.verbosity.quiet {
            line(text);
        }
    }

    /// Prints a warning about something that the user should change.
    pub(crate) fn warn(self, text: impl Display) {
        self.say(format_args!("warning: {text}"));
    }

    /// A detail, for `--verbose`.
    pub(crate) fn detail(self, text: impl Display) {
        if self.verbosity.verbose {
            line(text);
        }
    }

    /// Whether nothing is printed, so that callers need not prepare it.
    pub(crate) fn is_silent(self) -> bool {
        self.verbosity.quiet
    }

    /// Whether progress may be shown on the terminal.
    pub(crate) fn shows_progress(self) -> bool {
        !self.verbosity.quiet && is_terminal()
    }
}

/// Prints a result on standard error, because standard output belongs to the command.
#[allow(dead_code, reason = "for commands that are for Linux")]
pub(crate) fn print_result(text: &Text) {
    // A failure to write to standard error cannot be reported.
    let _ = stderr().write_all(text.as_str().as_bytes());
}

impl Screen {
    /// The kind of the standard error.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn of_stderr() -> Self {
        Self::of(&stderr())
    }
}

/// Prints a failure: the sentence, then its hints.
pub(crate) fn print_failure(failure: &Failure) {
    // A failure to write to standard error cannot be reported.
    let _ = stderr().write_all(failure_text(failure).as_bytes());
}

/// The text of [`print_failure`], prepared in advance for use without memory. Each sentence is escaped
/// separately, so a line break in one cannot start another.
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

/// Asks the user a question. The answer is typed after the text.
pub(crate) fn ask(question: impl Display) -> io::Result<()> {
    let mut out = stderr().lock();
    out.write_all(message(&question.to_string()).as_str().as_bytes())?;
    out.flush()
}

/// Whether the standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal()
}

/// The standard error, for querying its kind.
#[expect(clippy::disallowed_methods, reason = "this is the place that all go through")]
pub(crate) fn stderr() -> Stderr {
    io::stderr()
}

fn line(text: impl Display) {
    // A failure to write to standard error cannot be reported.
    let _ = writeln!(stderr(), "{}", message(&text.to_string()).as_str());
}

/// The text with hidden characters escaped. All lines except the first begin with spaces, so that a name
/// with a newline cannot look like a message of this program.
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
