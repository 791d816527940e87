//! Completes stacks whose copies ended too early, by walking on through readings of the living process.
//!
//! Such a stack is used only if it passes all of these checks. The thread must have been read within
//! milliseconds before and after the sample, not counting time in which it waited for a CPU. These readings
//! must agree with the copy in each word that the walk has read, and in nearly all other words. The walk must
//! reach the root. Each frame must be described by unwind information, and each return address must follow a
//! call. All readings near the sample that fit it must have the same frames, as far as they reach. This must
//! have been so for some time.
//!
//! One case is not detected: between two readings, a thread returns to an outer frame, and reaches the same
//! call by another path, with 60 kB of identical inner frames. It is sampled there, and then returns to its
//! former state.

use super::incomplete::Incomplete;
use super::live_stacks::LiveStacks;
use super::live_walker::{Calls, Completed, CutSample, LiveWalker};
use super::stack_bases::LearnedStackBases;
use super::stack_copy_feedback::StackCopyFeedback;
use crate::event::pre_unwound::Walked;
use crate::event::{LiveStack, Registers, Sample, Tid, Timestamp};
use crate::processes::state::ProcessState;
use crate::unwind::registers::unwindable;
use nyquist_object::Avma;
use nyquist_unwind::{Unwinder, WalkEnd};
use std::sync::Arc;

/// The properties of a stack copy, apart from its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Copied<'a> {
    pub(crate) registers: &'a Registers,
    /// Its size in bytes.
    pub(crate) len: usize,
    /// Whether it ends because its limit was reached.
    pub(crate) limited: bool,
}

impl Copied<'_> {
    /// Whether the word at an address is in it.
    fn holds_word(&self, address: Avma) -> bool {
        let start = unwindable(self.registers).map(|registers| registers.stack_pointer());
        let offset = start.and_then(|start| address.0.checked_sub(start.0));
        offset.and_then(|offset| offset.checked_add(8)).is_some_and(|end| end <= self.len as u64)
    }
}

/// Completes stacks whose copies ended too early.
#[derive(Debug)]
pub(crate) struct StackCompleter {
    /// The profile's interval, in nanoseconds.
    interval: u64,
    /// The readings of living processes.
    live_stacks: LiveStacks,
    /// The roots of the stacks of threads.
    bases: LearnedStackBases,
    calls: Calls,
    /// The outcomes of copies, for the recorder that makes them.
    pub(crate) feedback: StackCopyFeedback,
    /// Whether the outcomes of copies are counted in `feedback`.
    pub(crate) counts_copies: bool,
}

impl StackCompleter {
    /// A completer for a recording with this interval between samples, in nanoseconds.
    pub(crate) fn new(interval: u64) -> Self {
        Self {
            interval,
            live_stacks: LiveStacks::default(),
            bases: LearnedStackBases::default(),
            calls: Calls::default(),
            feedback: StackCopyFeedback::default(),
            counts_copies: true,
        }
    }

    /// Adds a reading of the stack of a living thread.
    pub(crate) fn add(&mut self, live: Arc<LiveStack>) {
        self.live_stacks.add(live);
    }

    /// Whether any stack of a living process was read.
    pub(crate) fn has_any(&self) -> bool {
        self.live_stacks.has_any()
    }

    /// A thread has a sample.
    pub(crate) fn note_sample(&mut self, tid: Tid, now: Timestamp) {
        self.live_stacks.note_sample(tid, now);
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.live_stacks.forget(tid);
        if let Some(change) = self.bases.forget(tid) {
            self.feedback.note_root(tid, change);
        }
    }

    /// Returns the whole stack of a sample whose copy ended too early, if readings complete it.
    pub(crate) fn complete(
        &mut self,
        sample: CutSample<'_>,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Result<Completed, Incomplete> {
        let whole = self.whole_stack(sample, unwinder, processes);
        match &whole {
            Ok(whole) => self.note_root(sample.id.1, whole.outermost),
            Err(Incomplete::Rootless) => self.doubt_root(sample.id.1),
            Err(_) => {}
        }
        whole
    }

    /// As [`complete`](Self::complete), but without updating the completer's state.
    fn whole_stack(
        &mut self,
        sample: CutSample<'_>,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Result<Completed, Incomplete> {
        let CutSample { id: (pid, tid), time, .. } = sample;
        if self.live_stacks.is_distrusted(tid, time) {
            return Err(Incomplete::Distrusted);
        }
        let process = processes.tracker.process(pid, time);
        let mut walker = LiveWalker {
            space: process.address_space(&processes.modules, &processes.dumps).clone(),
            process,
            modules: &processes.modules,
            unwinder,
            calls: &mut self.calls,
            copies: &mut self.feedback,
        };
        let mut all: Vec<Completed> = Vec::new();
        let mut before = Err(Incomplete::UnreadBefore);
        let mut after = Err(Incomplete::UnreadAfter);
        for live in self.live_stacks.near(tid, time, self.interval).filter(|live| live.pid == pid) {
            let side = if live.read_at < time { &mut before } else { &mut after };
            match walker.walk_on(sample, live) {
                Ok(completed) => {
                    *side = if completed.ends_at_gap { side.or(Err(Incomplete::Gap)) } else { Ok(()) };
                    all.push(completed);
                }
                Err(why) => *side = side.or(Err(why)),
            }
        }
        if all.iter().any(|one| all.iter().any(|other| one.contradicts(other))) {
            self.live_stacks.contradict(tid, time);
            return Err(Incomplete::Contradicted);
        }
        all.retain(|completed| !completed.ends_at_gap);
        let last = all.first().map(|last| last.read_at).filter(|_| all.len() > 1);
        let is_tested = last.is_some_and(|read_at| self.live_stacks.agree(tid, time, read_at));
        before.and(after)?;
        let last = all.into_iter().next().filter(|_| is_tested).ok_or(Incomplete::Untested)?;
        if last.is_joined { Ok(last) } else { Err(Incomplete::Unjoined) }
    }

    /// Notes the outcome of a copy: where the walk ended, and the outermost word that it has read.
    pub(crate) fn note_walk(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        copied: Copied<'_>,
        (walked, outermost): (Walked, Avma),
        processes: &mut ProcessState,
    ) {
        if let Walked::To(_) = walked
            && self.counts_copies
        {
            self.feedback.note(sample.tid, copied.limited, walked.ended_with_copy());
        }
        if walked == Walked::To(WalkEnd::Root) {
            if !processes.process(sample.pid, now).lacks_mappings() {
                self.note_root(sample.tid, outermost);
            }
        } else if walked.ended_with_copy() {
            self.doubt_copied_root(sample.tid, copied);
        }
    }

    /// Notes where a walk has reached the root of a thread's stack.
    fn note_root(&mut self, tid: Tid, outermost: Avma) {
        if let Some(change) = self.bases.note(tid, outermost) {
            self.feedback.note_root(tid, change);
        }
    }

    /// Notes that the root of a thread's stack is not at the expected address.
    fn doubt_root(&mut self, tid: Tid) {
        if let Some(change) = self.bases.invalidate(tid) {
            self.feedback.note_root(tid, change);
        }
    }

    /// Handles a walk that has ended at the end of a copy. If the expected root is in the copy, the root is
    /// at another address. The same is true if the copy ended before its limit, because it may only extend to
    /// the expected root.
    fn doubt_copied_root(&mut self, tid: Tid, copied: Copied<'_>) {
        let root = self.bases.published(tid);
        if !copied.limited || root.is_some_and(|root| copied.holds_word(root)) {
            self.doubt_root(tid);
        }
    }
}
