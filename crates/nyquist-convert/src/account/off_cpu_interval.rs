//! One time of a thread off the CPU: since when, why and where.

use crate::event::{Pid, Tid, Timestamp, WaitReason};
use crate::processes::unseen_waits::{UnseenWaits, WaitObservation};
use nyquist_object::Avma;
use nyquist_profile::{StackId, well_known};
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

    /// The same interval, at the stack of the switch if nothing else says where the thread waits.
    pub(super) fn left_at(mut self, leaving: Option<LeavingStack>) -> Self {
        if let (Cause::NotSeen, Some(leaving)) = (&self.cause, leaving) {
            let LeavingStack { reason, futex, stack, kernel_stack, .. } = leaving;
            let object = futex.map(|address| format!("{address:#x}").into());
            self.cause = Cause::Seen { reason, object, holder: None, observation: WaitObservation::Switch };
            (self.stack, self.kernel_stack) = (stack, kernel_stack);
        }
        self
    }

    /// The thread was found waiting in this interval.
    pub(super) fn see(&mut self, look: Look) {
        let Look { stack, reason, object, holder, checked_before_ns } = look;
        let observation = match self.cause {
            Cause::Seen { observation, .. } => observation,
            _ => WaitObservation::Look { before_ns: checked_before_ns },
        };
        self.stack = stack;
        if let Some(reason) = reason {
            self.cause = Cause::Seen { reason, object, holder, observation };
        }
    }

    /// How long it lasts until `end`, in nanoseconds.
    pub(crate) fn length(&self, end: Timestamp) -> u64 {
        end.0.saturating_sub(self.since.0)
    }

    /// The time, in nanoseconds, that the interval stands for when it ends. A wait that was seen by chance
    /// also stands for the thread's unseen waits before it. `None` if it joins them.
    pub(crate) fn stands_for(&self, end: Timestamp, unseen: &mut UnseenWaits) -> Option<u64> {
        let length = self.length(end);
        match self.cause {
            Cause::NotSeen => {
                unseen.add(length);
                None
            }
            Cause::Seen { observation, .. } => {
                Some(length.saturating_add(unseen.take_share(observation, length)))
            }
            Cause::AtStack | Cause::Preempted => Some(length),
        }
    }

    /// Whether it is long, for its cause.
    pub(crate) fn is_long(&self, end: Timestamp) -> bool {
        self.length(end) >= self.cause.least_marked_ns()
    }

    /// Whether it has a marker of its own, because it is long, or because it stands for much time.
    pub(crate) fn is_marked(&self, end: Timestamp, waited_ns: u64) -> bool {
        self.is_long(end) || waited_ns >= MIN_MARKED_SUM_NS
    }

    /// Whether a look may still report where the thread waits, because the wait has only just begun.
    pub(super) fn may_be_seen(&self, now: Timestamp) -> bool {
        matches!(self.cause, Cause::NotSeen) && self.length(now) < MAY_BE_SEEN_NS
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

/// What a look at a waiting thread has found.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) stack: Option<StackId>,
    pub(crate) reason: Option<WaitReason>,
    pub(crate) object: Option<Arc<str>>,
    pub(crate) holder: Option<Arc<str>>,
    /// How long before it the thread was looked at, in nanoseconds.
    pub(crate) checked_before_ns: u64,
}

/// The stack of a thread that is about to leave its CPU.
#[derive(Debug)]
pub(crate) struct LeavingStack {
    pub(crate) at: Timestamp,
    pub(crate) reason: WaitReason,
    /// The address of the futex that it is about to wait for.
    pub(crate) futex: Option<u64>,
    pub(crate) stack: Option<StackId>,
    pub(crate) kernel_stack: Vec<Avma>,
}

/// The shortest time, in nanoseconds, for which a wait of any length that stands for it has a marker.
const MIN_MARKED_SUM_NS: u64 = 1_000_000;

/// The longest delay of the event of a look at a waiting thread, in nanoseconds.
const MAY_BE_SEEN_NS: u64 = 2_000_000_000;

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
    fn least_marked_ns(&self) -> u64 {
        match self {
            Self::Seen { .. } => 100_000,
            _ => 1_000_000,
        }
    }
}
