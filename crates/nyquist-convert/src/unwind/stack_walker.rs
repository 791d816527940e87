//! Walks the stacks of samples in order, and finds the user frames.

use super::deep_stacks::completer::{Copied, StackCompleter};
use super::deep_stacks::incomplete::{Incomplete, IncompleteCounts};
use super::deep_stacks::live_walker::CutSample;
use super::prefetcher::StackPrefetcher;
use super::registers::unwindable;
use super::truncation::{Truncation, truncation};
use super::uncalled_frames::mark_uncalled_frames;
use super::walk::Walker;
use crate::event::pre_unwound::Walked;
use crate::event::{Pid, PreUnwound, Registers, Sample, Timestamp, UserStack};
use crate::processes::state::ProcessState;
use nyquist_object::Avma;
use nyquist_perf::file::PlacedFiles;
use nyquist_unwind::{self as unwind, FrameAddress, StackCopy, Unwinder, WalkEnd};

/// Walks stacks one after the other, and keeps the frames of the last one.
#[derive(Debug)]
pub(crate) struct StackWalker {
    unwinder: Unwinder,
    pub(crate) prefetcher: StackPrefetcher,
    pub(crate) deep_stacks: StackCompleter,
    /// The files from which stack copies are read again if they were walked ahead of their turn.
    pub(crate) copies_in: PlacedFiles,
    /// The frames of the current sample, innermost first. Kept to reuse its memory.
    frames: Vec<FrameAddress>,
    /// The most of these frames that the stack copy contains. The others were read from the running program.
    found_in_copy: usize,
    pub(crate) counts: WalkCounts,
}

/// The outcomes of walks. [`Statistics`](crate::Statistics) describes each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCounts {
    pub(crate) completed: u64,
    pub(crate) incomplete: IncompleteCounts,
    pub(crate) walked_again: u64,
}

impl StackWalker {
    /// A walker for a recording with this interval between samples, in nanoseconds.
    pub(crate) fn new(interval: u64) -> Self {
        Self {
            unwinder: Unwinder::new(),
            prefetcher: StackPrefetcher::default(),
            deep_stacks: StackCompleter::new(interval),
            copies_in: PlacedFiles::default(),
            frames: Vec::new(),
            found_in_copy: 0,
            counts: WalkCounts::default(),
        }
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
        self.frames.clear();
        self.found_in_copy = usize::MAX;
        let process = processes.tracker.process(sample.pid, now);
        process.find_replaced_text(sample.pid, &processes.modules);
        let lacks_mappings = process.lacks_mappings();
        let truncated = self.frames_of_user_stack((sample, now), processes);
        let is_copy = matches!(sample.user, UserStack::Copied { .. } | UserStack::PreUnwound(_));
        match truncated {
            Some(Truncation::Walk(_)) if lacks_mappings => Some(Truncation::UnknownMappings),
            // If the mappings are not known, an apparent root may not be the root.
            None if lacks_mappings && is_copy && !self.frames.is_empty() => Some(Truncation::UnknownMappings),
            _ => truncated,
        }
    }

    /// The same for the stack of another event. It is not counted, because the source does not adapt the size
    /// of these copies.
    pub(crate) fn walk_beside(
        &mut self,
        sample: (&Sample, Timestamp),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        let counts = self.counts;
        self.deep_stacks.counts_copies = false;
        let truncated = self.walk(sample, processes);
        self.deep_stacks.counts_copies = true;
        self.counts = counts;
        truncated
    }

    fn frames_of_user_stack(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
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
                let process = processes.tracker.process(sample.pid, now);
                let in_code = process.part_in_code(addresses, sample.in_kernel);
                self.take_walked(in_code);
                let reaches_root = mark_uncalled_frames(&mut self.frames, process, &processes.modules);
                (!reaches_root && in_code.len() < addresses.len())
                    .then_some(Truncation::Walk(unwind::Reason::NotCode))
            }
            UserStack::Copied { registers, stack, limited } => {
                self.walk_copy((sample, now), registers, (&stack[..], *limited), processes)
            }
            UserStack::PreUnwound(unwound) if still_holds(unwound, (sample.pid, now), processes) => {
                self.frames.extend_from_slice(&unwound.frames);
                let PreUnwound { walked, outermost, registers, copied, limited, .. } = &**unwound;
                let copied = Copied { registers, len: *copied, limited: *limited };
                let walk = (*walked, *outermost);
                self.deep_stacks.note_walk((sample, now), copied, walk, processes);
                if unwound.is_cut() && self.may_complete() {
                    let copy = unwound.copy(&self.copies_in);
                    if self.completes((sample, now), registers, &copy, processes) {
                        return None;
                    }
                }
                truncation(*walked, *limited, copied.len)
            }
            UserStack::PreUnwound(unwound) => {
                self.counts.walked_again += 1;
                let copy = unwound.copy(&self.copies_in);
                self.walk_copy((sample, now), &unwound.registers, (&copy, unwound.limited), processes)
            }
        }
    }

    /// Puts the frames of a stack that the source has walked into `frames`.
    fn take_walked(&mut self, addresses: &[Avma]) {
        let Some((first, rest)) = addresses.split_first() else { return };
        self.frames.push(FrameAddress::InstructionPointer(*first));
        self.frames.extend(rest.iter().map(|&address| FrameAddress::ReturnAddress(address)));
    }

    /// The same for a stack copy. `limited` is whether its limit was reached.
    fn walk_copy(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        registers: &Registers,
        (stack, limited): (&[u8], bool),
        processes: &mut ProcessState,
    ) -> Option<Truncation> {
        let walker = Walker {
            unwinder: &mut self.unwinder,
            process: processes.tracker.process(sample.pid, now),
            modules: &processes.modules,
            dumps: &processes.dumps,
            trail: self.prefetcher.begin(sample.tid),
        };
        let walk = walker.walk((sample, now), registers, stack, &mut self.frames);
        let copied = Copied { registers, len: stack.len(), limited };
        self.deep_stacks.note_walk((sample, now), copied, walk, processes);
        let is_cut = limited && walk.0.ended_with_copy();
        if is_cut && self.may_complete() && self.completes((sample, now), registers, stack, processes) {
            return None;
        }
        truncation(walk.0, limited, stack.len())
    }

    /// Whether readings of living processes may complete the current stack.
    fn may_complete(&mut self) -> bool {
        let has_any = self.deep_stacks.has_any();
        if !has_any {
            self.counts.incomplete.add(Incomplete::UnreadBefore);
        }
        has_any
    }

    /// If a walk has come to the end of a copy and readings of the living process complete the stack, puts
    /// the whole stack into `frames`. Returns whether this was done.
    fn completes(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        registers: &Registers,
        stack: &[u8],
        processes: &mut ProcessState,
    ) -> bool {
        let Some(registers) = unwindable(registers) else { return false };
        let copy = StackCopy { start: registers.stack_pointer(), bytes: stack };
        let (id, found) = ((sample.pid, sample.tid), self.frames.len());
        let cut = CutSample { id, time: now, registers: &registers, copy, found };
        match self.deep_stacks.complete(cut, &mut self.unwinder, processes) {
            Ok(whole) => {
                self.frames = whole.frames;
                self.found_in_copy = found;
                self.counts.completed += 1;
                true
            }
            Err(why) => {
                self.counts.incomplete.add(why);
                false
            }
        }
    }
}

/// Whether a walk ahead of its turn has the same result as a walk now. The mappings must be the same, nothing
/// more may be known of the code, and nothing may be read from the living process.
fn still_holds(unwound: &PreUnwound, (pid, now): (Pid, Timestamp), processes: &mut ProcessState) -> bool {
    let process = processes.tracker.process(pid, now);
    let lacks_rule = unwound.walked == Walked::To(WalkEnd::Truncated(unwind::Reason::NoUnwindInfo));
    !process.jit.knows_code()
        && process.code_state(&processes.modules) == unwound.code
        && !(lacks_rule && processes.modules.are_live())
}
