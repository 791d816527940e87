//! Walks the stacks of samples in order, and finds the user frames.

use super::active_completion::{ActiveCompletion, StackCopyFeedback};
use super::stack_completion::{StackCompletion as _, WalkedCopy};
use super::truncation::{Truncation, truncation};
use super::uncalled_frames::mark_uncalled_frames;
use super::walk::ProcessWalker;
use crate::event::pre_unwound::Walked;
use crate::event::{LiveStack, Pid, PreUnwound, Registers, Sample, Tid, Timestamp, UserStack};
use crate::processes::state::ProcessState;
use crate::statistics::Statistics;
use nyquist_object::Avma;
use nyquist_perf::file::PlacedFiles;
use nyquist_unwind::{self as unwind, FrameAddress, Unwinder, WalkEnd};
use std::borrow::Cow;
use std::sync::Arc;

/// Walks stacks one after the other, and keeps the frames of the last one.
#[derive(Debug)]
pub(crate) struct StackWalker {
    unwinder: Unwinder,
    /// Completes stacks beyond the ends of their copies.
    completion: ActiveCompletion,
    /// The files from which stack copies are read again if they were walked ahead of their turn.
    copies_in: PlacedFiles,
    /// The frames of the current sample, innermost first. Kept to reuse its memory.
    frames: Vec<FrameAddress>,
    /// The most of these frames that the stack copy contains. The others were read from the running program.
    found_in_copy: usize,
    /// How many stacks were walked ahead of their turn and again at their turn.
    walked_again: u64,
}

/// A sample whose stack is walked.
#[derive(Clone, Copy)]
struct WalkedSample<'a> {
    sample: &'a Sample,
    now: Timestamp,
    /// Whether the source adapts the size of its copies by this one.
    is_counted: bool,
}

impl StackWalker {
    /// A walker for a recording with this interval between samples, in nanoseconds. Stack copies that were
    /// walked ahead of their turn are read again from these files if more is known by now.
    pub(crate) fn new(interval: u64, copies_in: PlacedFiles) -> Self {
        Self {
            unwinder: Unwinder::new(),
            completion: ActiveCompletion::with_interval(interval),
            copies_in,
            frames: Vec::new(),
            found_in_copy: 0,
            walked_again: 0,
        }
    }

    /// Adds a reading of the stack of a living thread.
    pub(crate) fn add_reading(&mut self, live: Arc<LiveStack>) {
        self.completion.add(live);
    }

    /// A thread has a sample.
    pub(crate) fn note_sample(&mut self, tid: Tid, now: Timestamp) {
        self.completion.note_sample(tid, now);
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.completion.forget(tid);
    }

    /// The feedback on stack copies since the last call.
    pub(crate) fn take_feedback(&mut self) -> StackCopyFeedback {
        self.completion.take_feedback()
    }

    /// Adds the outcomes of walks.
    pub(crate) fn count_in(&self, statistics: &mut Statistics) {
        statistics.walked_again = self.walked_again;
        self.completion.count_in(statistics);
    }

    /// The frames of the last stack, outermost first, and whether each was found beyond the end of the
    /// stack's copy.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (FrameAddress, bool)> {
        let found_in_copy = self.found_in_copy;
        self.frames.iter().enumerate().rev().map(move |(depth, frame)| (*frame, depth >= found_in_copy))
    }

    /// Keeps only one of equal frames at the root. They come from a recursion whose beginning was not
    /// reached.
    pub(crate) fn fold_recursive_prefix(&mut self) {
        while let [.., before, root] = self.frames.as_slice()
            && before.lookup_address() == root.lookup_address()
        {
            self.frames.pop();
        }
    }

    /// Puts the frames of the user's part of the stack into `frames`, innermost first. Returns why the walk
    /// could not reach the root.
    pub(crate) fn walk(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        self.walk_sample(WalkedSample { sample, now, is_counted: true }, processes)
    }

    fn walk_sample(&mut self, walked: WalkedSample<'_>, processes: &mut ProcessState) -> Option<Truncation> {
        let WalkedSample { sample, now, .. } = walked;
        self.frames.clear();
        self.found_in_copy = usize::MAX;
        let (process, modules, _) = processes.for_unwinding(sample.pid, now);
        if process.code.has_dropped_mappings()
            && !matches!(sample.user, UserStack::None | UserStack::Named(_))
        {
            return Some(Truncation::DroppedMappings);
        }
        process.code.find_replaced_text(sample.pid, modules);
        let (lacks_mappings, denies_memory) = (process.code.lacks_mappings(), process.code.denies_memory);
        let truncated = self.frames_of_user_stack(walked, processes);
        let is_copy = matches!(sample.user, UserStack::Copied { .. } | UserStack::PreUnwound(_));
        match truncated {
            Some(Truncation::Walk(_)) if lacks_mappings => Some(Truncation::UnknownMappings),
            Some(truncation) if denies_memory => Some(truncation.without_memory()),
            // If the mappings are not known, an apparent root may not be the root.
            None if lacks_mappings && is_copy && !self.frames.is_empty() => Some(Truncation::UnknownMappings),
            _ => truncated,
        }
    }

    /// The same for the stack of an additional event. It is not counted, because the source does not adapt the
    /// size of these copies.
    pub(crate) fn walk_uncounted(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        self.walk_sample(WalkedSample { sample, now, is_counted: false }, processes)
    }

    /// As [`walk_uncounted`](Self::walk_uncounted), for a stack that begins where a call will return to.
    pub(crate) fn walk_from_caller(
        &mut self,
        sample: (&Sample, Timestamp),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        let truncated = self.walk_uncounted(sample, processes);
        if let Some(first) = self.frames.first_mut() {
            *first = FrameAddress::ReturnAddress(first.address());
        }
        truncated
    }

    fn frames_of_user_stack(
        &mut self,
        current: WalkedSample<'_>,
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        let WalkedSample { sample, now, .. } = current;
        match &sample.user {
            UserStack::None | UserStack::Named(_) => None,
            UserStack::Walked(addresses) => {
                self.take_walked(addresses);
                None
            }
            UserStack::Shared(addresses) => {
                self.take_walked(addresses);
                None
            }
            UserStack::FramePointers(addresses) => {
                let (process, modules, _) = processes.for_unwinding(sample.pid, now);
                let in_code = process.code.part_in_code(addresses, sample.in_kernel);
                self.take_walked(in_code);
                let reaches_root = mark_uncalled_frames(&mut self.frames, process, modules);
                (!reaches_root && in_code.len() < addresses.len())
                    .then_some(Truncation::Walk(unwind::Reason::NotCode))
            }
            UserStack::Copied { registers, stack, limited } => {
                self.walk_copy(current, registers, (&stack[..], *limited), processes)
            }
            UserStack::PreUnwound(unwound) if still_holds(unwound, (sample.pid, now), processes) => {
                self.take_pre_unwound(current, unwound, processes)
            }
            UserStack::PreUnwound(unwound) => {
                self.walked_again += u64::from(current.is_counted);
                let copy = unwound.copy(&self.copies_in);
                self.walk_copy(current, &unwound.registers, (&copy, unwound.limited), processes)
            }
        }
    }

    /// Puts the frames of a stack that the source has walked into `frames`.
    fn take_walked(&mut self, addresses: &[Avma]) {
        let Some((first, rest)) = addresses.split_first() else { return };
        self.frames.push(FrameAddress::InstructionPointer(*first));
        self.frames.extend(rest.iter().map(|&address| FrameAddress::ReturnAddress(address)));
    }

    /// The same for a stack that was walked ahead of its turn. Returns why the walk could not reach the root.
    #[inline]
    fn take_pre_unwound(
        &mut self,
        WalkedSample { sample, now, is_counted }: WalkedSample<'_>,
        unwound: &PreUnwound,
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        self.frames.extend_from_slice(&unwound.frames);
        let PreUnwound { walked, outermost, registers, copied, limited, .. } = unwound;
        let walk = WalkedCopy {
            id: (sample.pid, sample.tid),
            time: now,
            registers,
            len: *copied,
            limited: *limited,
            bytes: &|| unwound.copy(&self.copies_in),
            walked: *walked,
            outermost: *outermost,
            found: self.frames.len(),
            is_counted,
        };
        let complete = self.completion.complete(&walk, &mut self.unwinder, processes);
        if self.takes_complete(complete) { None } else { truncation(*walked, *limited, *copied) }
    }

    /// The same for a stack copy. `limited` is whether its limit was reached.
    fn walk_copy(
        &mut self,
        WalkedSample { sample, now, is_counted }: WalkedSample<'_>,
        registers: &Registers,
        (stack, limited): (&[u8], bool),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        let (process, modules, dumps) = processes.for_unwinding(sample.pid, now);
        let walker = ProcessWalker { unwinder: &mut self.unwinder, process, modules, dumps };
        let (walked, outermost) = walker.walk((sample, now), registers, stack, &mut self.frames);
        let walk = WalkedCopy {
            id: (sample.pid, sample.tid),
            time: now,
            registers,
            len: stack.len(),
            limited,
            bytes: &|| Cow::Borrowed(stack),
            walked,
            outermost,
            found: self.frames.len(),
            is_counted,
        };
        let complete = self.completion.complete(&walk, &mut self.unwinder, processes);
        if self.takes_complete(complete) { None } else { truncation(walked, limited, stack.len()) }
    }

    /// If a stack could be completed, its frames take the place of those in its copy. Returns whether.
    fn takes_complete(&mut self, complete: Option<Vec<FrameAddress>>) -> bool {
        let Some(complete) = complete else { return false };
        self.found_in_copy = self.frames.len();
        self.frames = complete;
        true
    }
}

/// Whether a walk ahead of its turn has the same result as a walk now. The mappings must be the same, nothing
/// more may be known of the code, and nothing may be read from the living process.
fn still_holds(unwound: &PreUnwound, (pid, now): (Pid, Timestamp), processes: &mut ProcessState) -> bool {
    let (process, modules, _) = processes.for_unwinding(pid, now);
    let lacks_rule = unwound.walked == Walked::To(WalkEnd::Truncated(unwind::Reason::NoUnwindInfo));
    !process.code.jit.knows_code()
        && process.code.code_state() == unwound.code
        && !(lacks_rule && modules.are_live())
}
