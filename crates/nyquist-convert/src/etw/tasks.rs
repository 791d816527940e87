//! Which process each thread belongs to, and under which number a thread is shown.

use crate::event::{Pid, Tid};
use rustc_hash::{FxHashMap, FxHashSet};

/// The process of the kernel's own threads. It has no user code.
pub(super) const SYSTEM: u32 = 4;
/// The process, and the threads, of CPUs that have nothing to do.
pub(super) const IDLE: u32 = 0;

/// The living threads.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: FxHashMap<u32, Task>,
    /// The processes that have a main thread.
    with_main: FxHashSet<u32>,
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) pid: Pid,
    /// The number under which it is shown. The main thread, which is the oldest one, has that of its process, as
    /// in recordings of Windows. No thread has that number, because Windows numbers both together.
    pub(super) tid: Tid,
}

impl Task {
    pub(super) fn is_main(self) -> bool {
        self.pid.0 == self.tid.0
    }
}

impl Tasks {
    /// Adds a thread. A process's first thread is its main thread.
    pub(super) fn add(&mut self, pid: u32, tid: u32) -> Task {
        if let Some(known) = self.threads.get(&tid).filter(|task| task.pid.0 == pid) {
            return *known;
        }
        let is_main = self.with_main.insert(pid);
        let task = Task { pid: Pid(pid), tid: Tid(if is_main { pid } else { tid }) };
        self.threads.insert(tid, task);
        task
    }

    /// A thread, if it is known.
    pub(super) fn get(&self, tid: u32) -> Option<Task> {
        self.threads.get(&tid).copied()
    }

    /// Removes a thread that has ended.
    pub(super) fn remove(&mut self, tid: u32) -> Option<Task> {
        self.threads.remove(&tid)
    }

    /// Forgets a process that has ended, whose number may be another one's later.
    pub(super) fn remove_process(&mut self, pid: u32) {
        self.with_main.remove(&pid);
    }
}
