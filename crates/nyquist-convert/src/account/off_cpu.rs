//! The threads that are off the CPU: since when, why and where.

use crate::event::{Pid, Tid, Timestamp, WaitReason};
use nyquist_profile::{StackId, well_known};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A thread's time off the CPU that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct OffCpuInterval {
    pub(crate) pid: Pid,
    pub(crate) since: Timestamp,
    pub(crate) cause: Cause,
    /// Where it waits, as far as that is known.
    pub(crate) stack: Option<StackId>,
}

/// Why a thread is off the CPU.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// It has left its CPU where its stack says.
    AtStack,
    /// Others had the CPU.
    Preempted,
    /// It waits, and nobody has seen for what.
    NotSeen,
    /// It waits for that, as was seen meanwhile by a look so long after the one before, in nanoseconds.
    Seen { reason: WaitReason, object: Option<Arc<str>>, holder: Option<Arc<str>>, looked_before_ns: u64 },
}

impl Cause {
    /// The innermost function of its stack, where it has one for that.
    pub(crate) fn label(&self) -> Option<String> {
        match self {
            Self::AtStack => None,
            Self::Preempted => Some(well_known::RUNNABLE.to_owned()),
            Self::NotSeen => Some(well_known::WAIT_NOT_SEEN.to_owned()),
            Self::Seen { reason, .. } => Some(well_known::waiting_for(reason.text())),
        }
    }

    /// Why, in a word or two, what for, and who held that.
    pub(crate) fn texts(&self) -> (&'static str, [Option<&Arc<str>>; 2]) {
        match self {
            Self::AtStack | Self::NotSeen => ("not seen", [None; 2]),
            Self::Preempted => ("CPU", [None; 2]),
            Self::Seen { reason, object, holder, .. } => (reason.text(), [object.as_ref(), holder.as_ref()]),
        }
    }

    /// So long a wait has a marker of its own, in nanoseconds. What was not seen has little to say.
    pub(crate) fn least_marked_ns(&self) -> u64 {
        match self {
            Self::Seen { .. } => 100_000,
            _ => 1_000_000,
        }
    }
}

/// All times off the CPU that have not ended.
#[derive(Debug, Default)]
pub(crate) struct OffCpuIntervals {
    waiting: FxHashMap<Tid, OffCpuInterval>,
    /// The threads that were seen on a CPU, or to leave one.
    known: FxHashSet<Tid>,
}

impl OffCpuIntervals {
    /// A thread has left its CPU.
    pub(crate) fn begin(&mut self, tid: Tid, wait: OffCpuInterval) {
        self.known.insert(tid);
        self.waiting.insert(tid, wait);
    }

    /// What is known of a thread's time off the CPU, which began `since` if it was never seen on one; `None` of a thread that was on
    /// a CPU when it was last heard of.
    pub(crate) fn get_mut(
        &mut self,
        (pid, tid): (Pid, Tid),
        since: Timestamp,
    ) -> Option<&mut OffCpuInterval> {
        if self.known.insert(tid) {
            self.waiting.insert(tid, OffCpuInterval { pid, since, cause: Cause::NotSeen, stack: None });
        }
        self.waiting.get_mut(&tid)
    }

    /// A thread is on a CPU.
    pub(crate) fn end(&mut self, tid: Tid) -> Option<OffCpuInterval> {
        self.waiting.remove(&tid)
    }

    /// The same, of a thread whose arrival may be the first that is heard of it.
    pub(crate) fn arrive(&mut self, tid: Tid) {
        self.known.insert(tid);
    }

    /// A thread has ended: one of its number that comes later is another one.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.known.remove(&tid);
    }

    /// Ends all, in the order of threads.
    pub(crate) fn end_all(&mut self) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits: Vec<_> = self.waiting.drain().collect();
        waits.sort_unstable_by_key(|(tid, _)| *tid);
        waits
    }
}
