//! The launched command, and the message about one that did not end by itself.

pub(crate) use nyquist_record::linux::launch::{ChildExit, RunningChild};
pub(crate) use nyquist_record::linux::{Command, EndReason};

use nyquist_record::linux::launch::ExitStatus;

/// The signals that end programs and have well-known names.
const NAMES: [(i32, &str); 10] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL, illegal instruction"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT, aborted"),
    (libc::SIGBUS, "SIGBUS, bus error"),
    (libc::SIGFPE, "SIGFPE, arithmetic error"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGSEGV, "SIGSEGV, segmentation fault"),
    (libc::SIGTERM, "SIGTERM"),
];

/// The exit status of this program after a command that has ended so.
pub(crate) fn exit_status(status: ExitStatus) -> u32 {
    status.shell_code().into()
}

/// A line about the signal that has ended the command. There is none if a shell prints none either: after
/// Ctrl-C, and if the reader of the command's output has closed it.
pub(crate) fn end_message(command: &str, status: ExitStatus) -> Option<String> {
    let ExitStatus::Signal(signal) = status else { return None };
    let number = i32::from(signal);
    if [libc::SIGINT, libc::SIGPIPE].contains(&number) {
        return None;
    }
    let name = NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| format!(" ({name})"));
    Some(format!("`{command}` was ended by signal {number}{}", name.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_ends_the_command_is_named() {
        let check =
            |status, expected: Option<&str>| assert_eq!(end_message("./app", status).as_deref(), expected);
        check(ExitStatus::Signal(11), Some("`./app` was ended by signal 11 (SIGSEGV, segmentation fault)"));
        check(ExitStatus::Signal(34), Some("`./app` was ended by signal 34"));
        check(ExitStatus::Signal(2), None);
        check(ExitStatus::Signal(13), None);
        check(ExitStatus::Code(139), None);
    }
}
