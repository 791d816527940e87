//! The threads that wait: where, and since when.

use crate::event::{Pid, Tid, Timestamp};
use nyquist_profile::StackId;
use rustc_hash::FxHashMap;

/// A thread's wait that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OffCpuInterval {
    pub(crate) pid: Pid,
    pub(crate) since: Timestamp,
    pub(crate) stack: Option<StackId>,
}

/// All waits that have not ended.
#[derive(Debug, Default)]
pub(crate) struct OffCpuIntervals {
    waiting: FxHashMap<Tid, OffCpuInterval>,
}

impl OffCpuIntervals {
    pub(crate) fn begin(&mut self, tid: Tid, wait: OffCpuInterval) {
        self.waiting.insert(tid, wait);
    }

    pub(crate) fn end(&mut self, tid: Tid) -> Option<OffCpuInterval> {
        if self.waiting.is_empty() { None } else { self.waiting.remove(&tid) }
    }

    /// Ends all, in the order of threads.
    pub(crate) fn end_all(&mut self) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits: Vec<_> = self.waiting.drain().collect();
        waits.sort_unstable_by_key(|(tid, _)| *tid);
        waits
    }
}
