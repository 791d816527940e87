//! Rows of the profile that are reused by the next thread or process of the same name.

use crate::event::{Pid, Tid, Timestamp};
use crate::processes::process::{MAX_COMM, Process};
use nyquist_profile::{ProcessIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The rows whose threads and processes have ended, by name. If several have the same name, the first one is
/// reused.
#[derive(Debug, Default)]
pub(crate) struct RowPool {
    processes: FxHashMap<String, BTreeSet<ProcessIndex>>,
    threads: FxHashMap<(ProcessIndex, ThreadName), BTreeSet<ThreadIndex>>,
}

/// The key of a thread's row. Main threads only reuse rows of main threads, whatever their names.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ThreadName {
    Main,
    Other(String),
}

impl RowPool {
    /// Makes the row of a thread that has ended available to another thread.
    pub(crate) fn give_back_thread(&mut self, process: &Process, id: (Pid, Tid)) {
        let row = process.threads.get(&id.1).and_then(|thread| thread.index);
        if let (Some(process_row), Some(row)) = (process.index, row) {
            self.threads.entry((process_row, thread_name(process, id))).or_default().insert(row);
        }
    }

    /// Makes the row of a process that has ended available to another process.
    pub(crate) fn give_back_process(&mut self, process: &Process) {
        if let Some(row) = process.index {
            self.processes.entry(process.full_name()).or_default().insert(row);
        }
    }

    /// Whether a thread, or its process if it is the main thread, needs another row when it takes a new name.
    /// It does if its row was another thread's before, or if there is a row of the new name. Its samples so
    /// far then stay under the old name, as do those of children that became other programs.
    pub(crate) fn has_other_row(&self, process: &Process, (pid, tid): (Pid, Tid), new_name: &str) -> bool {
        if pid.0 == tid.0 {
            let is_new = process.index.is_some() && process.full_name() != new_name;
            return process.reuses_row || (is_new && self.has_process(new_name));
        }
        let Some(thread) = process.threads.get(&tid) else { return false };
        let is_new = thread.index.is_some() && thread.name != new_name;
        thread.reuses_row || (is_new && self.has_thread(process, new_name))
    }

    /// Whether a row of a process of this name exists. The name may be the first part of a longer one,
    /// because the kernel truncates names.
    fn has_process(&self, name: &str) -> bool {
        let is_cut = name.len() >= MAX_COMM;
        let is_named = |other: &str| other == name || (is_cut && other.starts_with(name));
        self.processes.iter().any(|(other, rows)| !rows.is_empty() && is_named(other))
    }

    fn has_thread(&self, process: &Process, name: &str) -> bool {
        let rows = process.index.and_then(|row| self.threads.get(&(row, ThreadName::Other(name.to_owned()))));
        rows.is_some_and(|rows| !rows.is_empty())
    }

    /// Makes the row of a thread available to others of its old name, because the thread is about to get
    /// another row. If it is the main thread, the same is done with its process.
    pub(crate) fn give_back(&mut self, process: &mut Process, (pid, tid): (Pid, Tid)) {
        if pid.0 != tid.0 {
            self.give_back_thread(process, (pid, tid));
            return forget_row(process, tid);
        }
        self.give_back_process(process);
        let tids: Vec<Tid> = process.threads.keys().copied().collect();
        for tid in tids {
            self.give_back_thread(process, (pid, tid));
            forget_row(process, tid);
        }
        process.index = None;
        process.reuses_row = false;
    }

    /// Gives a process without a row a free row of its name, if one exists.
    pub(crate) fn take_process(&mut self, process: &mut Process) {
        if process.index.is_none() && !self.processes.is_empty() {
            let rows = self.processes.get_mut(&process.full_name());
            process.index = rows.and_then(BTreeSet::pop_first);
            process.reuses_row = process.index.is_some();
        }
    }

    /// Gives a thread without a row a free row of its name in its process, if one exists.
    pub(crate) fn take_thread(&mut self, process: &mut Process, id: (Pid, Tid), now: Timestamp) {
        let Some(process_row) = process.index.filter(|_| !self.threads.is_empty()) else { return };
        // Registers the thread, so that its name is known from here on.
        process.thread(id.1, now);
        let rows = self.threads.get_mut(&(process_row, thread_name(process, id)));
        let row = rows.and_then(BTreeSet::pop_first);
        let thread = process.thread(id.1, now);
        thread.index = row;
        thread.reuses_row = row.is_some();
    }
}

fn forget_row(process: &mut Process, tid: Tid) {
    if let Some(thread) = process.threads.get_mut(&tid) {
        thread.index = None;
        thread.reuses_row = false;
    }
}

fn thread_name(process: &Process, (pid, tid): (Pid, Tid)) -> ThreadName {
    match process.threads.get(&tid) {
        Some(thread) if pid.0 != tid.0 => ThreadName::Other(thread.name.clone()),
        _ => ThreadName::Main,
    }
}
