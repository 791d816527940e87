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

use super::incomplete::{Incomplete, IncompleteCounts};
use super::live_stacks::LiveStacks;
use super::live_walker::{Calls, CompletedStack, LiveWalker, TruncatedSample};
use super::stack_bases::LearnedStackBases;
use super::stack_copy_feedback::StackCopyFeedback;
use crate::event::pre_unwound::Walked;
use crate::event::{LiveStack, Tid, Timestamp};
use crate::processes::state::ProcessState;
use crate::statistics::Statistics;
use crate::unwind::registers::unwindable;
use crate::unwind::stack_completion::{StackCompletion, WalkedCopy};
use nyquist_object::Avma;
use nyquist_unwind::{FrameAddress, Reason, StackCopy, Unwinder, WalkEnd};
use std::sync::Arc;

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
    feedback: StackCopyFeedback,
    completed: u64,
    incomplete: IncompleteCounts,
}

impl StackCompletion for StackCompleter {
    type Feedback = StackCopyFeedback;

    fn with_interval(interval: u64) -> Self {
        Self {
            interval,
            live_stacks: LiveStacks::default(),
            bases: LearnedStackBases::default(),
            calls: Calls::default(),
            feedback: StackCopyFeedback::default(),
            completed: 0,
            incomplete: IncompleteCounts::default(),
        }
    }

    fn add(&mut self, live: Arc<LiveStack>) {
        self.live_stacks.add(live);
    }

    fn note_sample(&mut self, tid: Tid, now: Timestamp) {
        self.live_stacks.note_sample(tid, now);
    }

    fn forget(&mut self, tid: Tid) {
        self.live_stacks.forget(tid);
        if let Some(update) = self.bases.forget(tid) {
            self.feedback.note_base(tid, update);
        }
    }

    fn complete(
        &mut self,
        walk: &WalkedCopy<'_>,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Option<Vec<FrameAddress>> {
        self.note_walk(walk, processes);
        let is_interrupted = walk.walked == Walked::To(WalkEnd::Truncated(Reason::OtherStack));
        if !walk.is_truncated() && !is_interrupted {
            return None;
        }
        let complete = self.complete_stack((walk, is_interrupted), unwinder, processes)?;
        if walk.is_counted {
            match &complete {
                Ok(_) => self.completed += 1,
                Err(why) => self.incomplete.add(*why),
            }
        }
        complete.ok()
    }

    fn take_feedback(&mut self) -> StackCopyFeedback {
        std::mem::take(&mut self.feedback)
    }

    fn count_in(&self, statistics: &mut Statistics) {
        statistics.completed = self.completed;
        statistics.incomplete = self.incomplete.by_count();
    }
}

impl StackCompleter {
    /// The frames of a stack whose copy ended too early, if readings complete it. `None` if its program is
    /// not unwound.
    fn complete_stack(
        &mut self,
        (walk, is_interrupted): (&WalkedCopy<'_>, bool),
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Option<Result<Vec<FrameAddress>, Incomplete>> {
        if !self.live_stacks.has_any() && !is_interrupted {
            return Some(Err(Incomplete::UnreadBefore));
        }
        let registers = unwindable(walk.registers)?;
        let bytes = (walk.bytes)();
        let copy = StackCopy { start: registers.stack_pointer(), bytes: &bytes };
        let &WalkedCopy { id, time, found, .. } = walk;
        let sample = TruncatedSample { id, time, registers: &registers, copy, found, is_interrupted };
        let exact = self.live_stacks.take_exact(id, (time, self.interval), copy.start);
        let completed = match exact {
            Some(live) => self.walk_exact(sample, &live, unwinder, processes),
            None if is_interrupted => {
                self.note_signal_stack(sample, unwinder, processes);
                return None;
            }
            None => self.walk_readings(sample, unwinder, processes),
        };
        match &completed {
            Ok(completed) => self.note_base(id.1, completed.outermost),
            Err(_) if is_interrupted => self.note_signal_stack(sample, unwinder, processes),
            Err(Incomplete::Rootless) => self.invalidate_base(id.1),
            Err(_) => {}
        }
        Some(completed.map(|completed| completed.frames))
    }

    /// Walks on through what was read at the moment of a sample. Nothing can contradict that.
    fn walk_exact(
        &mut self,
        sample: TruncatedSample<'_>,
        live: &LiveStack,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Result<CompletedStack, Incomplete> {
        let TruncatedSample { id: (pid, _), time, .. } = sample;
        let (process, modules, dumps) = processes.for_unwinding(pid, time);
        let space = process.code.address_space(modules, dumps).clone();
        LiveWalker { space, process, modules, unwinder, calls: &mut self.calls }.walk_exactly(sample, live)
    }

    /// Notes the signal stack at whose end a walk has ended, for the recorder. It then reads the interrupted stack
    /// at later samples, too.
    fn note_signal_stack(
        &mut self,
        TruncatedSample { id, time, registers, copy, .. }: TruncatedSample<'_>,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) {
        if self.feedback.has_signal_stack(id) {
            return;
        }
        let (process, modules, dumps) = processes.for_unwinding(id.0, time);
        unwinder.walk(process.code.address_space(modules, dumps), registers, &copy, &mut |_| {});
        if let Some(stack) = unwinder.signal_stack() {
            self.feedback.note_signal_stack(id, stack);
        }
    }

    /// Walks on through all readings near a sample. Returns the stack that they agree on.
    fn walk_readings(
        &mut self,
        sample: TruncatedSample<'_>,
        unwinder: &mut Unwinder,
        processes: &mut ProcessState,
    ) -> Result<CompletedStack, Incomplete> {
        let TruncatedSample { id: (pid, tid), time, .. } = sample;
        if self.live_stacks.is_distrusted(tid, time) {
            return Err(Incomplete::Distrusted);
        }
        let (process, modules, dumps) = processes.for_unwinding(pid, time);
        let mut walker = LiveWalker {
            space: process.code.address_space(modules, dumps).clone(),
            process,
            modules,
            unwinder,
            calls: &mut self.calls,
        };
        let mut all: Vec<CompletedStack> = Vec::new();
        let mut before = Err(Incomplete::UnreadBefore);
        let mut after = Err(Incomplete::UnreadAfter);
        for live in self.live_stacks.near(tid, time, self.interval).filter(|live| live.pid == pid) {
            let side = if live.read_at < time { &mut before } else { &mut after };
            match walker.walk_on(sample, live) {
                Ok(completed) => {
                    *side = Ok(());
                    all.push(completed);
                }
                Err(why) => *side = side.or(Err(why)),
            }
        }
        if all.windows(2).any(|pair| pair[0].frames != pair[1].frames) {
            self.live_stacks.contradict(tid, time);
            return Err(Incomplete::Contradicted);
        }
        let last = all.first().map(|last| last.read_at).filter(|_| all.len() > 1);
        let is_tested = last.is_some_and(|read_at| self.live_stacks.agree(tid, time, read_at));
        before.and(after)?;
        let last = all.into_iter().next().filter(|_| is_tested).ok_or(Incomplete::Untested)?;
        if last.is_joined { Ok(last) } else { Err(Incomplete::NoOverlap) }
    }

    /// Notes the outcome of a walk for the recorder.
    fn note_walk(&mut self, walk: &WalkedCopy<'_>, processes: &mut ProcessState) {
        let (pid, tid) = walk.id;
        // Also if the copy has ended before its limit: at a page that the thread has not used yet.
        if walk.walked.ended_with_copy() && walk.is_counted {
            self.feedback.note_truncated(tid);
        }
        if walk.walked == Walked::To(WalkEnd::Root) {
            if !processes.process(pid, walk.time).code.lacks_mappings() {
                self.note_base(tid, walk.outermost);
            }
        } else if walk.walked.ended_with_copy() {
            self.check_copied_base(walk);
        }
    }

    /// Notes where a walk has reached the root of a thread's stack.
    fn note_base(&mut self, tid: Tid, outermost: Avma) {
        if let Some(update) = self.bases.note(tid, outermost) {
            self.feedback.note_base(tid, update);
        }
    }

    /// Notes that the base of a thread's stack is not at the expected address.
    fn invalidate_base(&mut self, tid: Tid) {
        if let Some(update) = self.bases.invalidate(tid) {
            self.feedback.note_base(tid, update);
        }
    }

    /// Handles a walk that has ended at the end of a copy. If the expected base is in the copy, the base is
    /// at another address. The same is true if the copy ended before its limit, because it may only extend to
    /// the expected base.
    fn check_copied_base(&mut self, walk: &WalkedCopy<'_>) {
        let base = self.bases.published(walk.id.1);
        if !walk.limited || base.is_some_and(|base| holds_word(walk, base)) {
            self.invalidate_base(walk.id.1);
        }
    }
}

/// Whether the word at an address is in a copy.
fn holds_word(walk: &WalkedCopy<'_>, address: Avma) -> bool {
    let start = unwindable(walk.registers).map(|registers| registers.stack_pointer());
    let offset = start.and_then(|start| address.0.checked_sub(start.0));
    offset.and_then(|offset| offset.checked_add(8)).is_some_and(|end| end <= walk.len as u64)
}
