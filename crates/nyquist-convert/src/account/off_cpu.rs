//! The threads that are off the CPU: since when, why and where.

use crate::event::{Pid, Tid, Timestamp, WaitReason};
use crate::processes::unseen_waits::WaitObservation;
use nyquist_object::Avma;
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
    /// The kernel's part of that stack, innermost first, if the switch was recorded with it.
    pub(crate) kernel_stack: Vec<Avma>,
    /// What made the thread ready to run again.
    pub(crate) waker: Option<Waker>,
}

impl OffCpuInterval {
    /// An interval off the CPU of which only the cause is known.
    pub(crate) fn new(pid: Pid, since: Timestamp, cause: Cause) -> Self {
        Self { pid, since, cause, stack: None, kernel_stack: Vec::new(), waker: None }
    }
}

/// What made a thread ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Waker {
    /// When.
    pub(crate) at: Timestamp,
    /// The thread that woke it, and its stack then; `None` for an interrupt.
    pub(crate) thread: Option<((Pid, Tid), Option<StackId>)>,
    /// Its name and number.
    pub(crate) label: Arc<str>,
}

/// Why a thread is off the CPU.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// It has left its CPU at the place that its stack shows.
    AtStack,
    /// Others had the CPU.
    Preempted,
    /// It waits, and the reason was not seen.
    NotSeen,
    /// It waits for a reason that is known.
    Seen {
        reason: WaitReason,
        object: Option<Arc<str>>,
        holder: Option<Arc<str>>,
        observation: WaitObservation,
    },
}

/// The stack of a thread that is about to leave its CPU.
#[derive(Debug)]
pub(crate) struct LeavingStack {
    pub(crate) at: Timestamp,
    pub(crate) reason: WaitReason,
    pub(crate) stack: Option<StackId>,
    pub(crate) kernel_stack: Vec<Avma>,
}

/// The longest time between the record of a switch's stack and the switch itself, in nanoseconds.
const LONGEST_SWITCH_NS: u64 = 1_000_000;

impl Cause {
    /// The innermost function of the wait's stack, if the cause has a function.
    pub(crate) fn label(&self) -> Option<String> {
        match self {
            Self::AtStack => None,
            Self::Preempted => Some(well_known::RUNNABLE.to_owned()),
            Self::NotSeen => Some(well_known::WAIT_NOT_SEEN.to_owned()),
            Self::Seen { reason, .. } => Some(well_known::waiting_for(reason.text())),
        }
    }

    /// The reason in one or two words, then the object and the thread that held it.
    pub(crate) fn texts(&self) -> (&'static str, [Option<&Arc<str>>; 2]) {
        match self {
            Self::AtStack | Self::NotSeen => ("not seen", [None; 2]),
            Self::Preempted => ("CPU", [None; 2]),
            Self::Seen { reason, object, holder, .. } => (reason.text(), [object.as_ref(), holder.as_ref()]),
        }
    }

    /// The shortest wait that has a marker of its own, in nanoseconds. It is longer for waits whose reason
    /// was not seen.
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
    /// The threads that are about to leave their CPU.
    leaving: FxHashMap<Tid, LeavingStack>,
    /// The threads that were seen on a CPU, or were seen to leave one.
    known: FxHashSet<Tid>,
}

impl OffCpuIntervals {
    /// A thread has left its CPU.
    pub(crate) fn begin(&mut self, tid: Tid, wait: OffCpuInterval) {
        self.known.insert(tid);
        self.waiting.insert(tid, wait);
    }

    /// A thread's current interval off the CPU. It began at `since` if the thread was never seen on a CPU.
    /// `None` if the thread was on a CPU at its last event.
    pub(crate) fn get_mut(
        &mut self,
        (pid, tid): (Pid, Tid),
        since: Timestamp,
    ) -> Option<&mut OffCpuInterval> {
        if self.known.insert(tid) {
            self.waiting.insert(tid, OffCpuInterval::new(pid, since, Cause::NotSeen));
        }
        self.waiting.get_mut(&tid)
    }

    /// A thread's interval off the CPU, if the thread is known to be off the CPU.
    pub(crate) fn current_mut(&mut self, tid: Tid) -> Option<&mut OffCpuInterval> {
        self.waiting.get_mut(&tid)
    }

    /// A thread is about to leave its CPU.
    pub(crate) fn leave(&mut self, tid: Tid, leaving: LeavingStack) {
        self.leaving.insert(tid, leaving);
    }

    /// Forgets the stacks of threads that are about to leave their CPU.
    pub(crate) fn forget_leaving(&mut self) {
        self.leaving.clear();
    }

    /// The stack of a thread that leaves its CPU now, if it was recorded.
    pub(crate) fn take_leaving(&mut self, tid: Tid, now: Timestamp) -> Option<LeavingStack> {
        let leaving = self.leaving.remove(&tid)?;
        (now.0.saturating_sub(leaving.at.0) <= LONGEST_SWITCH_NS).then_some(leaving)
    }

    /// A thread is on a CPU.
    pub(crate) fn end(&mut self, tid: Tid) -> Option<OffCpuInterval> {
        self.waiting.remove(&tid)
    }

    /// Notes that a thread came to a CPU, which may be its first event.
    pub(crate) fn arrive(&mut self, tid: Tid) {
        self.known.insert(tid);
    }

    /// Forgets a thread that has ended, because a later thread with its number is another one.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.known.remove(&tid);
        self.leaving.remove(&tid);
    }

    /// All, in the order of threads.
    pub(crate) fn all(&self) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits: Vec<_> = self.waiting.iter().map(|(tid, wait)| (*tid, wait.clone())).collect();
        waits.sort_unstable_by_key(|(tid, _)| *tid);
        waits
    }

    /// Ends all, in the order of threads.
    pub(crate) fn end_all(&mut self) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits: Vec<_> = self.waiting.drain().collect();
        waits.sort_unstable_by_key(|(tid, _)| *tid);
        waits
    }
}
