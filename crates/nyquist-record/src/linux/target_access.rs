//! Access to the memory and the files of recorded processes. A program can have a file system of its own, which never
//! answers: then another process waits for it, and not a thread of the recorder.

use std::sync::OnceLock;

use nyquist_convert::Targets;
use nyquist_convert::event::Pid;

use super::sys::ptrace;

static TARGETS: OnceLock<Targets> = OnceLock::new();

/// Sets how processes are accessed from now on. Without it, this process does it itself. Only the first call counts.
pub fn access_by(targets: Targets) {
    let _ = TARGETS.set(targets);
}

/// Copies memory of a process from an address on, as far as it is readable, and waits for it. Returns the number of bytes.
pub fn read_here(pid: Pid, address: u64, out: &mut [u8]) -> usize {
    ptrace::read_memory(pid.0, address, out)
}

/// The same, without waiting for what the process withholds.
pub(crate) fn read(pid: u32, address: u64, out: &mut [u8]) -> usize {
    match TARGETS.get() {
        Some(targets) => targets.read_memory(Pid(pid), address, out),
        None => ptrace::read_memory(pid, address, out),
    }
}

/// Access to files.
pub(crate) fn targets() -> Targets {
    TARGETS.get().cloned().unwrap_or_default()
}
