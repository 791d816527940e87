//! The interface to the mechanism that completes stacks beyond the ends of their copies.
//!
//! `active_completion.rs` says which mechanism it is, and `docs/design/deep-stacks.md` how to delete it. With
//! `()` in its place, stacks end where their copies do.

use crate::event::pre_unwound::Walked;
use crate::event::{LiveStack, Pid, Registers, Tid, Timestamp};
use crate::processes::state::ProcessState;
use crate::statistics::Statistics;
use nyquist_object::Avma;
use nyquist_unwind::{FrameAddress, Unwinder};
use std::borrow::Cow;
use std::sync::Arc;

/// Completes stacks whose copies ended too early.
pub(crate) trait StackCompletion {
    /// What it reports to the recorder that makes the copies.
    type Feedback;

    /// For a recording with this interval between samples, in nanoseconds.
    fn with_interval(interval: u64) -> Self;

    /// Adds a reading of the stack of a living thread.
    fn add(&mut self, live: Arc<LiveStack>);

    /// A thread has a sample.
    fn note_sample(&mut self, tid: Tid, now: Timestamp);

    /// A thread has ended.
    fn forget(&mut self, tid: Tid);

    /// Notes the outcome of a walk. Returns all frames of the stack, innermost first, if the walk ended with
    /// its copy and the stack could be completed.
    fn complete(
        &mut self,
        walk: &WalkedCopy<'_>,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Option<Vec<FrameAddress>>;

    /// The feedback for the recorder since the last call.
    fn take_feedback(&mut self) -> Self::Feedback;

    /// Adds what it has counted.
    fn count_in(&self, statistics: &mut Statistics);
}

/// A stack copy, and the outcome of its walk.
pub(crate) struct WalkedCopy<'a> {
    pub(crate) id: (Pid, Tid),
    /// The time of its sample.
    pub(crate) time: Timestamp,
    pub(crate) registers: &'a Registers,
    /// Its size in bytes.
    pub(crate) len: usize,
    /// Whether it ends because its limit was reached.
    pub(crate) limited: bool,
    /// Its bytes, which may have to be read from a file.
    pub(crate) bytes: &'a dyn Fn() -> Cow<'a, [u8]>,
    pub(crate) walked: Walked,
    /// The outermost word that the walk has read.
    pub(crate) outermost: Avma,
    /// How many frames the walk has found.
    pub(crate) found: usize,
    /// Whether it counts: copies of additional events do not.
    pub(crate) is_counted: bool,
}

impl WalkedCopy<'_> {
    /// Whether the walk ended at the end of the copy, and the stack is truncated there.
    pub(crate) fn is_truncated(&self) -> bool {
        self.limited && self.walked.ended_with_copy()
    }
}

impl StackCompletion for () {
    type Feedback = ();

    fn with_interval(_: u64) {}

    fn add(&mut self, _: Arc<LiveStack>) {}

    fn note_sample(&mut self, _: Tid, _: Timestamp) {}

    fn forget(&mut self, _: Tid) {}

    fn complete(
        &mut self,
        _: &WalkedCopy<'_>,
        _: &mut Unwinder,
        _: &mut ProcessState,
    ) -> Option<Vec<FrameAddress>> {
        None
    }

    fn take_feedback(&mut self) {}

    fn count_in(&self, _: &mut Statistics) {}
}
