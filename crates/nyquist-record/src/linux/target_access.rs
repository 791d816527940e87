//! Access to the memory and the files of recorded processes. A program can have a file system of its own, which never
//! answers: then another process waits for it, and not a thread of the recorder.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use nyquist_convert::event::{Pid, Tid};
use nyquist_convert::{MemoryCalls, ProcessFile, Targets};

use super::sys::ptrace;
use super::writable_memory;

/// The most bytes of mappings that are read at once.
const MAX_MAPPINGS_TEXT: u64 = 64 << 20;

static TARGETS: OnceLock<Targets> = OnceLock::new();

/// Sets how processes are accessed from now on. Without it, this process does it itself. Only the first call counts.
pub fn access_by(targets: Targets) {
    let _ = TARGETS.set(targets);
}

/// How a process reads the memory of others, and waits for it.
pub const MEMORY_CALLS: MemoryCalls = MemoryCalls {
    read: |pid, address, out| ptrace::read_memory(pid.0, address, out),
    writable_at: |pid, address| writable_memory::around(pid.0, address),
};

/// The same, without waiting for what the process withholds.
pub(crate) fn read(pid: u32, address: u64, out: &mut [u8]) -> usize {
    match TARGETS.get() {
        Some(targets) => targets.read_memory(Pid(pid), address, out),
        None => ptrace::read_memory(pid, address, out),
    }
}

/// The writable memory around an address of a process, as far as it is one mapping. For a stack pointer, this is the
/// thread's stack. Waits for nothing that the process withholds.
pub(crate) fn writable_memory_at(pid: u32, address: u64) -> Option<Range<u64>> {
    match TARGETS.get() {
        Some(targets) if targets.may_withhold(Pid(pid)) => targets.writable_at(Pid(pid), address),
        _ => writable_memory::around(pid, address),
    }
}

/// The text of the mappings of a process or a thread.
pub(crate) fn mappings(pid: u32) -> Vec<u8> {
    targets().mappings(Pid(pid), MAX_MAPPINGS_TEXT)
}

/// Whether a process, which is alive, denies this one access to its memory, as one with secrets does
/// (`PR_SET_DUMPABLE`).
pub(crate) fn denies_memory(pid: u32) -> bool {
    process_file(pid, None, ProcessFile::FirstMappings)
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether whoever looks at a process waits for it. The kernel's attaching to it would wait, too.
pub(crate) fn withholds_itself(pid: u32) -> bool {
    process_file(pid, None, ProcessFile::Stat).is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// Tells the user that a process gives no access to itself, unless that is known already.
pub(crate) fn note_silence(pid: u32) {
    targets().note_silence(Pid(pid));
}

/// A file of a process's folder in `/proc`, or of the folder of a thread.
pub(crate) fn process_file(pid: u32, tid: Option<u32>, file: ProcessFile) -> io::Result<Vec<u8>> {
    targets().process_file(Pid(pid), tid.map(Tid), file)
}

/// Whether a process is another user's, who may withhold what is read of it.
pub(crate) fn may_withhold(pid: u32) -> bool {
    targets().may_withhold(Pid(pid))
}

/// Access to files.
pub(crate) fn targets() -> Targets {
    TARGETS.get().cloned().unwrap_or_default()
}
