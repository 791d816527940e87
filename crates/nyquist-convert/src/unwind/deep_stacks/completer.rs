//! Stacks whose copies ended too early, walked on through readings of the living process.
//!
//! Such a stack is used only if it passes all of these checks. There must be readings within milliseconds
//! before and after the sample, not counting those in which the thread waited for a CPU. They must agree with
//! the copy, word by word where the walk has read, and nearly everywhere else. The walk must come to the
//! root. Each frame must be described by unwind information, and each return address must be behind a call.
//! All readings near the sample that fit it must have the same frames, as far as they reach, and must have
//! had them for some time.
//!
//! One case is not detected. Between two readings, a thread returns to an outer frame, makes the same call by
//! another way, with 60 kB of identical inner frames, is sampled, and comes back to its former state.

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

/// The properties of the copy of a stack, beside its bytes.
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
    /// The profile's, in nanoseconds.
    interval: u64,
    /// The readings of living processes.
    live_stacks: LiveStacks,
    /// Where the stacks of threads have their roots.
    bases: LearnedStackBases,
    calls: Calls,
    /// The outcomes of copies, for the recorder that makes them.
    pub(crate) feedback: StackCopyFeedback,
    /// Whether the outcomes of copies are counted there.
    pub(crate) counts_copies: bool,
}

impl StackCompleter {
    /// A completer for a recording whose samples are so many nanoseconds apart.
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

    /// Takes a reading of the stack of a living thread.
    pub(crate) fn add(&mut self, live: Arc<LiveStack>) {
        self.live_stacks.add(live);
    }

    /// Whether anything was read of living processes.
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

    /// The whole stack of a sample whose copy ended too early, if readings complete it.
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

    /// The same; nothing is learned of it yet.
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

    /// Takes note of the outcome of a copy: where the walk ended, and the outermost word that it has read.
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

    /// Takes note of where a walk has come to the root of a thread's stack.
    fn note_root(&mut self, tid: Tid, outermost: Avma) {
        if let Some(change) = self.bases.note(tid, outermost) {
            self.feedback.note_root(tid, change);
        }
    }

    /// The root of a thread's stack is not where it was thought to be.
    fn doubt_root(&mut self, tid: Tid) {
        if let Some(change) = self.bases.invalidate(tid) {
            self.feedback.note_root(tid, change);
        }
    }

    /// A walk has ended with a copy. If the root should have been in the copy, it is elsewhere. This is also
    /// so if the copy ended before its limit, because it may have been made only up to the expected root.
    fn doubt_copied_root(&mut self, tid: Tid, copied: Copied<'_>) {
        let root = self.bases.published(tid);
        if !copied.limited || root.is_some_and(|root| copied.holds_word(root)) {
            self.doubt_root(tid);
        }
    }
}
