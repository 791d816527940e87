//! The threads that are watched, and the waits that were recorded for them.

use std::collections::{BTreeMap, BTreeSet};

use nyquist_convert::event::Event;

use super::watched_thread::{CheckOutcome, WatchedThread};

/// The most threads that are watched. Waits of threads born beyond that have no stacks.
const MAX_THREADS: usize = 20_000;

/// The threads that are watched.
#[derive(Debug, Default)]
pub(super) struct WatchedThreads {
    threads: BTreeMap<u32, WatchedThread>,
    /// The recorded waits that were not collected yet.
    pub(super) events: Vec<Event>,
    /// The threads that this process may not read.
    refused: BTreeSet<u32>,
    /// The buffer that stacks are copied to.
    scratch: Vec<u8>,
}

impl WatchedThreads {
    /// Adds a thread if it is not known.
    pub(super) fn add(&mut self, pid: u32, tid: u32) {
        if self.threads.len() < MAX_THREADS && !self.threads.contains_key(&tid) {
            self.threads.insert(tid, WatchedThread::new(pid, tid));
        }
    }

    /// Removes a thread that has ended.
    pub(super) fn remove(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// Drops the threads of a process whose memory was replaced (exec).
    pub(super) fn forget_memory(&mut self, pid: u32) {
        self.threads.retain(|_, thread| !thread.is_of(pid));
    }

    /// The ids of all threads.
    pub(super) fn tids(&self, tids: &mut Vec<u32>) {
        tids.clear();
        tids.extend(self.threads.keys());
    }

    /// Reads a thread's state. Records where it waits, if it waits and that was not recorded yet.
    pub(super) fn check(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        match thread.check(&mut self.scratch) {
            CheckOutcome::Gone => self.remove(tid),
            CheckOutcome::Refused => drop(self.refused.insert(tid)),
            CheckOutcome::Nothing => {}
            CheckOutcome::Waits(event) => self.events.push(event),
        }
    }

    /// The number of threads that this process may not read.
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }
}
