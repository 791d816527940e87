//! Other processes.

pub(crate) use nyquist_record::linux::{process_has_ended, process_state, processes_named};

/// The name of a process, for the user; empty if it has ended.
pub(crate) fn process_label(pid: u32) -> String {
    let name = nyquist_system::read_kernel_text(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}
