//! The events of processes and threads.

use nyquist_convert::event::{EventKind, Pid, Tid};

/// The event of a thread that was started by another one.
pub(super) fn fork((pid, tid): (u32, u32), (parent_pid, parent_tid): (u32, u32)) -> EventKind {
    EventKind::Fork { pid: Pid(pid), tid: Tid(tid), parent_pid: Pid(parent_pid), parent_tid: Tid(parent_tid) }
}

/// The event of a name.
pub(super) fn name((pid, tid): (u32, u32), name: String, exec: bool) -> EventKind {
    EventKind::Name { pid: Pid(pid), tid: Tid(tid), name, exec }
}

/// The event of a thread's CPU time.
pub(super) fn total((pid, tid): (u32, u32), cpu_time_ns: u64) -> EventKind {
    EventKind::Total { pid: Pid(pid), tid: Tid(tid), cpu_time_ns }
}
