//! How processes end, as numbers.

use std::io;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

impl ExitStatus {
    /// The meaning of a status of wait(2).
    pub(crate) fn of_wait(status: i32) -> Self {
        match (status & 0x7f) as u8 {
            0 => Self::Code((status >> 8 & 0xff) as u8),
            signal => Self::Signal(signal),
        }
    }

    /// The status of a shell: the code, or 128 and the number of the signal.
    pub fn shell_code(self) -> u32 {
        match self {
            Self::Code(code) => code.into(),
            Self::Signal(signal) => 128 + u32::from(signal),
        }
    }

    /// What is unusual about it, to be shown to the user.
    pub fn remark(self) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(format!("was ended by signal {signal}")),
        }
    }
}

/// The exit status of a shell for a program that cannot be executed: 127 if it was not found, 126 otherwise.
pub(crate) fn exit_code(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_become_those_of_shells() {
        let check =
            |status: i32, expected: u32| assert_eq!(ExitStatus::of_wait(status).shell_code(), expected);
        check(0, 0);
        check(42 << 8, 42);
        check(255 << 8, 255);
        check(2, 130);
        check(9, 137);
        // With the flag of a core dump.
        check(0x80 | 0x0b, 139);
        assert_eq!(ExitStatus::of_wait(11).remark().as_deref(), Some("was ended by signal 11"));
        assert_eq!(ExitStatus::of_wait(256).remark(), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_127() {
        assert_eq!(exit_code(&io::ErrorKind::NotFound.into()), 127);
        assert_eq!(exit_code(&io::ErrorKind::PermissionDenied.into()), 126);
    }
}
