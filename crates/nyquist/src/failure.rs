//! The message to the user about a failure: one sentence, hints, an exit status.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;
use std::{io, iter};

/// The status of a failed command.
pub(crate) const FAILED: u8 = 1;

/// An error for the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One sentence without a full stop.
    pub(crate) message: String,
    /// The hints, a line each.
    pub(crate) hints: Vec<String>,
    /// The exit status.
    pub(crate) status: u8,
}

impl Failure {
    /// A failure with the status [`FAILED`].
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let mut message = without_error_numbers(message.into());
        // The system's messages are sentences on Windows.
        if message.ends_with('.') && !message.ends_with("..") {
            message.pop();
        }
        Self { message, hints: Vec::new(), status: FAILED }
    }

    /// `what` failed because of the system's error.
    pub(crate) fn io(what: impl Display, error: &io::Error) -> Self {
        Self::new(format!("{what}: {}", io_reason(error))).limited_by(error)
    }

    /// A file could not be written.
    pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Self {
        Self::io(format_args!("cannot write {}", path.display()), error)
    }

    /// `what` failed because of `error` and everything that caused it.
    pub(crate) fn because(what: impl Display, error: &(dyn Error + 'static)) -> Self {
        let mut message = what.to_string();
        for cause in causes(error).map(ToString::to_string) {
            // An error that already includes its cause's text would repeat it.
            if !message.contains(&cause) {
                message = format!("{message}: {cause}");
            }
        }
        Self::new(message).limited_by(error)
    }

    /// Adds the hint for a limit of this process, if an error or one of its causes is that limit.
    #[must_use]
    pub(crate) fn limited_by(self, error: &(dyn Error + 'static)) -> Self {
        let hint = causes(error).filter_map(|cause| cause.downcast_ref()).find_map(limit_hint);
        hint.into_iter().fold(self, Self::hint)
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets the exit status.
    #[must_use]
    pub(crate) fn status(self, status: u8) -> Self {
        Self { status, ..self }
    }
}

/// An error, and everything that caused it.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| cause(error))
}

/// What caused an error. The system's error that another one contains is no source of that.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let contained = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match contained {
        Some(contained) => Some(contained),
        None => error.source(),
    }
}

/// The hint if a limit of this process is the reason.
fn limit_hint(error: &io::Error) -> Option<&'static str> {
    if has_too_many_open_files(error) {
        return Some("raise the limit of open files (`ulimit -n 1024`)");
    }
    (error.kind() == io::ErrorKind::FileTooLarge).then_some("the size of files is limited here (`ulimit -f`)")
}

/// The standard library has no kind for it.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn has_too_many_open_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn has_too_many_open_files(_: &io::Error) -> bool {
    false
}

/// Removes the `(os error 2)` that the standard library adds to the operating system's message.
pub(crate) fn without_error_numbers(message: String) -> String {
    match message.split_once(" (os error ") {
        Some((before, after)) => {
            let rest = after.split_once(')').map_or("", |(_, rest)| rest);
            without_error_numbers(format!("{before}{rest}"))
        }
        None => message,
    }
}

/// The error of a file, worded as in a shell.
pub(crate) fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    // The messages of Windows are sentences.
    let text = text.split(" (os error").next().unwrap_or_default().trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_what_failed() {
        let error = std::io::Error::other("the disk is on fire");
        assert_eq!(Failure::because("cannot read x", &error).message, "cannot read x: the disk is on fire");
    }

    #[test]
    fn error_numbers_are_left_out() {
        let check = |message: &str, expected: &str| assert_eq!(Failure::new(message).message, expected);
        check("cannot run x: No such file (os error 2)", "cannot run x: No such file");
        check("a (os error 1), b (os error 2): c", "a, b: c");
        check("cut (os error", "cut (os error");
        check("cut (os error 1", "cut");
        check("`a` cannot be run: File not found. (os error 2)", "`a` cannot be run: File not found");
        check("and so on...", "and so on...");
    }

    #[cfg(any(target_os = "linux", target_os = "macos"))]
    #[test]
    fn a_limit_is_said_to_be_one() {
        use rustix::io::Errno;
        let check = |errno: Errno, part: &str| {
            let error = io::Error::from(errno);
            let inside = io::Error::other(io::Error::from(errno));
            let failures = [
                Failure::because("cannot do it", &error),
                Failure::io("cannot do it", &error),
                Failure::because("cannot do it", &inside),
            ];
            for failure in failures {
                assert!(failure.hints[0].contains(part), "{failure:?}");
            }
        };
        check(Errno::MFILE, "ulimit -n");
        check(Errno::FBIG, "ulimit -f");
        let other = Failure::io("cannot do it", &io::Error::other("Too many open files"));
        assert!(other.hints.is_empty(), "words are not the reason");
    }

    #[test]
    fn an_operating_systems_error_is_said_in_words() {
        let check =
            |text: &str, expected: &str| assert_eq!(io_reason(&std::io::Error::other(text)), expected);
        check("No such file or directory (os error 2)", "no such file or directory");
        check("File not found. (os error 2)", "file not found");
    }
}
