//! Other processes.

pub(crate) use crate::system::recorder::{process_has_ended, processes_named};

/// The state of a process by the letters of Linux; none is known here.
pub(crate) fn process_state(_pid: u32) -> Option<char> {
    None
}

/// A process, for the user.
pub(crate) fn process_label(pid: u32) -> String {
    format!("process {pid}")
}
