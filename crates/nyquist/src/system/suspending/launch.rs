//! The launched command, and the message about one that did not end by itself.

pub(crate) use crate::system::recorder::launch::{ChildExit, RunningChild};
pub(crate) use crate::system::recorder::{Command, EndReason};

use crate::system::recorder::launch::ExitStatus;

/// The exit status of this program after a command that has ended so.
pub(crate) fn exit_status(status: ExitStatus) -> u32 {
    status.shell_code()
}

/// A line about how the command was ended, if it did not end by itself.
pub(crate) fn end_message(command: &str, status: ExitStatus) -> Option<String> {
    status.remark().map(|remark| format!("`{command}` {remark}"))
}
