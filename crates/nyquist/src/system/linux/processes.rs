//! Other processes.

pub(crate) use nyquist_record::linux::{process_has_ended, process_state, processes_named};

/// The name of a process, for the user; empty if it has ended.
pub(crate) fn process_label(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}
