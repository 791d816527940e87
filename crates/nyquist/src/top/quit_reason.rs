//! The reasons for the end of watching.

use crate::failure::FAILED;
use nyquist_record::linux::launch::ExitStatus;
use nyquist_record::linux::signals::EndSignal;

/// The reason for the end of watching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuitReason {
    /// The user quits.
    Quit,
    /// A signal came.
    Signal(EndSignal),
    /// The watched processes have ended. The status of a command is known.
    Ended(Option<ExitStatus>),
    /// The terminal was closed, or a thread has ended unexpectedly.
    Gone,
}

impl QuitReason {
    /// The exit status.
    pub(super) fn status(self) -> u8 {
        match self {
            Self::Quit | Self::Ended(None) => 0,
            Self::Signal(signal) => 128_u8.saturating_add(signal.number() as u8),
            Self::Ended(Some(status)) => status.shell_code(),
            Self::Gone => FAILED,
        }
    }
}

/// The end of a process, in words.
pub(super) fn ended(status: Option<ExitStatus>) -> String {
    match status {
        None => "has ended".to_owned(),
        Some(ExitStatus::Code(code)) => format!("ended with status {code}"),
        Some(ExitStatus::Signal(signal)) => format!("was ended by signal {signal}"),
    }
}
