//! The threads that are looked at, and what was seen of them.

use std::collections::{BTreeMap, BTreeSet};

use nyquist_convert::event::Event;

use super::look::{Looked, WatchedThread};

/// The most threads that are looked at: of what is born beyond that, waits have no stacks.
const MOST_THREADS: usize = 20_000;

/// The threads that are looked at.
#[derive(Debug, Default)]
pub(super) struct WatchedThreads {
    threads: BTreeMap<u32, WatchedThread>,
    /// What was seen and not taken yet.
    pub(super) events: Vec<Event>,
    /// The threads that may not be looked at.
    refused: BTreeSet<u32>,
    /// Where stacks are copied to.
    scratch: Vec<u8>,
}

impl WatchedThreads {
    /// Adds a thread, if it is not known.
    pub(super) fn add(&mut self, pid: u32, tid: u32) {
        if self.threads.len() < MOST_THREADS && !self.threads.contains_key(&tid) {
            self.threads.insert(tid, WatchedThread::new(pid, tid));
        }
    }

    /// A thread has ended.
    pub(super) fn remove(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// A process has other memory than before.
    pub(super) fn forget_memory(&mut self, pid: u32) {
        self.threads.retain(|_, thread| !thread.is_of(pid));
    }

    /// The numbers of all threads.
    pub(super) fn tids(&self, tids: &mut Vec<u32>) {
        tids.clear();
        tids.extend(self.threads.keys());
    }

    /// Looks at a thread, and notes where it waits, if it does and that was not noted yet.
    pub(super) fn look(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        match thread.look(&mut self.scratch) {
            Looked::Gone => self.remove(tid),
            Looked::Refused => drop(self.refused.insert(tid)),
            Looked::Nothing => {}
            Looked::Waits(event) => self.events.push(event),
        }
    }

    /// How many threads there were that may not be looked at.
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }
}
