//! Stacks: walked, looked up, and interned.

use super::Stages;
use super::complete::CutSample;
use super::samples::Row;
use crate::build::intern::{CodePlace, Mode};
use crate::event::pre_unwound::Walked;
use crate::event::{Pid, PreUnwound, Registers, Sample, Tid, Timestamp, UserStack};
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::modules::store::ModuleStore;
use crate::processes::mappings::Range;
use crate::processes::process::Process;
use crate::unwind::deep_stacks::incomplete::Incomplete;
use crate::unwind::registers::unwindable;
use crate::unwind::truncation::{Truncation, truncation};
use crate::unwind::walk::Walker;
use nyquist_object::Avma;
use nyquist_profile::StackId;
use nyquist_unwind::{self as unwind, FrameAddress, StackCopy, WalkEnd};

/// How many stacks are kept to be compared with a thread's next one: enough for the threads that run at once.
pub(super) const PATHS: usize = 16;

/// The stack of a sample, from the root on: each frame, and the stack up to it.
pub(super) type Path = Vec<(Place, StackId)>;

/// One frame of the sample at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The root of a stack that could not be finished, for this reason.
    Truncated(Truncation),
    /// Code that cannot be looked into, by what it is called.
    Named(&'static str),
    /// Code, a user's or the kernel's.
    Code(CodePlace, Mode),
}

impl Place {
    /// Whether nobody has said yet what the code at a user's address is.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Code(CodePlace::Elsewhere(_), Mode::User | Mode::Completed))
    }
}

/// What is known of the copy of a stack, beside its bytes.
#[derive(Clone, Copy)]
struct Copied<'a> {
    registers: &'a Registers,
    /// Its size in bytes.
    len: usize,
    /// Whether it ends because its limit was reached.
    limited: bool,
}

impl Copied<'_> {
    /// Whether the word at an address is in it.
    fn holds_word(&self, address: Avma) -> bool {
        let start = unwindable(self.registers).map(|registers| registers.stack_pointer());
        let offset = start.and_then(|start| address.0.checked_sub(start.0));
        offset.and_then(|offset| offset.checked_add(8)).is_some_and(|end| end <= self.len as u64)
    }
}

/// A sample in code whose jitdump has not yet been written up to its time.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) time: Timestamp,
    pub(super) row: Row,
    pub(super) places: Vec<Place>,
    pub(super) dumps: Vec<DumpIndex>,
}

impl Stages {
    /// Puts the sample's whole stack into `places`, from the root of the user's part to the innermost frame of the
    /// kernel's.
    pub(super) fn place_frames(&mut self, now: Timestamp, sample: &Sample, truncated: Option<Truncation>) {
        if self.shape.fold_recursive_prefix {
            fold_recursive_prefix(&mut self.frames);
        }
        self.places.clear();
        self.places.extend(truncated.map(Place::Truncated));
        if let UserStack::Named(name) = sample.user {
            self.places.push(Place::Named(name));
        }
        let process = self.processes.tracker.process(sample.pid, now);
        let mut last: Option<Range> = None;
        for (depth, frame) in self.frames.iter().enumerate().rev() {
            let mode = if depth < self.found_in_copy { Mode::User } else { Mode::Completed };
            let address = frame.lookup_address();
            // Callers are mostly in the same file.
            if !last.as_ref().is_some_and(|range| range.contains(address)) {
                last = process.find(address).copied();
            }
            let place = match &last {
                Some(range) if range.module.is_some() => CodePlace::of(Some(range), address),
                _ => {
                    let at = (sample.pid, address, now);
                    let made =
                        find_made_code(process, &mut self.processes.dumps, &mut self.processes.modules, at);
                    CodePlace::of(made.as_ref(), address)
                }
            };
            self.places.push(Place::Code(place, mode));
        }
        for (depth, &address) in sample.kernel_stack.iter().enumerate().rev() {
            let address = if depth == 0 { address } else { Avma(address.0.wrapping_sub(1)) };
            let place = CodePlace::of(self.processes.tracker.find_kernel(address), address);
            self.places.push(Place::Code(place, Mode::Kernel));
        }
    }

    /// The stack that `places` are, those of a sample of the thread of that number. What it shares with the stack of the sample
    /// before is not interned again.
    pub(super) fn intern_places(&mut self, thread: usize) -> Option<StackId> {
        let path = &mut self.paths[thread % PATHS];
        let is_same = |(place, (known, _)): &(&Place, &(Place, StackId))| *place == known;
        let same = self.places.iter().zip(&*path).take_while(is_same).count();
        path.truncate(same);
        // All frames are looked up before the first stack is: the processor then waits for several of them at once.
        let new = &self.places[same..];
        self.new_frames.clear();
        let interner = &mut self.interner;
        self.new_frames.extend(new.iter().map(|place| match place {
            Place::Truncated(truncation) => interner.truncated(&mut self.builder, *truncation),
            Place::Named(name) => interner.named(&mut self.builder, name),
            Place::Code(place, mode) => {
                interner.frame(&mut self.builder, &self.processes.modules, *place, *mode)
            }
        }));
        let mut stack = path.last().map(|(_, stack)| *stack);
        for (place, frame) in new.iter().zip(&self.new_frames) {
            let next = self.builder.intern_stack(stack, *frame);
            path.push((*place, next));
            stack = Some(next);
        }
        stack
    }

    /// Forgets all stacks: the profile's tables were made anew.
    pub(super) fn forget_stacks(&mut self) {
        self.interner.forget_frames();
        self.paths.iter_mut().for_each(Vec::clear);
    }

    /// Adds the samples whose jitdumps have been read far enough; at the end, all of them.
    pub(crate) fn release_waiting(&mut self, is_end: bool) {
        let is_ready = |dumps: &JitDumps, waiting: &mut Waiting| {
            is_end || dumps.are_read_up_to(&waiting.dumps, waiting.time)
        };
        while let Some(waiting) =
            self.waiting.pop_front_if(|waiting| is_ready(&self.processes.dumps, waiting))
        {
            let Waiting { time, row, places, dumps } = waiting;
            self.places = places;
            for place in &mut self.places {
                if let Place::Code(CodePlace::Elsewhere(address), mode @ (Mode::User | Mode::Completed)) =
                    *place
                {
                    let range = self.processes.dumps.find(&dumps, address, time);
                    *place = Place::Code(CodePlace::of(range.as_ref(), address), mode);
                }
            }
            self.add_row(row);
        }
    }

    /// Puts the frames of the user's part of the stack into `frames`, innermost first. Gives back why the walk
    /// could not reach the root.
    pub(super) fn walk_user_stack(&mut self, now: Timestamp, sample: &Sample) -> Option<Truncation> {
        self.frames.clear();
        self.found_in_copy = usize::MAX;
        let process = self.processes.tracker.process(sample.pid, now);
        process.find_replaced_text(sample.pid, &self.processes.modules);
        let lacks_mappings = process.lacks_mappings();
        let truncated = self.frames_of_user_stack(now, sample);
        let is_copy = matches!(sample.user, UserStack::Copied { .. } | UserStack::PreUnwound(_));
        match truncated {
            Some(Truncation::Walk(_)) if lacks_mappings => Some(Truncation::UnknownMappings),
            // What looks like a root to who knows nothing of the code is none.
            None if lacks_mappings && is_copy && !self.frames.is_empty() => Some(Truncation::UnknownMappings),
            _ => truncated,
        }
    }

    fn frames_of_user_stack(&mut self, now: Timestamp, sample: &Sample) -> Option<Truncation> {
        match &sample.user {
            UserStack::None | UserStack::Named(_) => None,
            UserStack::Walked(addresses) => {
                self.take_walked(addresses);
                None
            }
            UserStack::FramePointers(addresses) => {
                let process = self.processes.process(sample.pid, now);
                let in_code = process.part_in_code(addresses, sample.in_kernel);
                self.take_walked(in_code);
                (in_code.len() < addresses.len()).then_some(Truncation::Walk(unwind::Reason::NotCode))
            }
            UserStack::Copied { registers, stack, limited } => {
                self.walk_copy((sample, now), registers, (&stack[..], *limited))
            }
            UserStack::PreUnwound(unwound) if self.still_holds(now, sample.pid, unwound) => {
                self.frames.extend_from_slice(&unwound.frames);
                let PreUnwound { walked, outermost, registers, copied, limited, .. } = &**unwound;
                let copied = Copied { registers, len: *copied, limited: *limited };
                self.note_walk((sample, now), copied, (*walked, *outermost));
                if unwound.is_cut() && self.may_complete() {
                    let copy = unwound.copy(&self.copies_in);
                    if self.completes((sample, now), registers, &copy) {
                        return None;
                    }
                }
                truncation(*walked, *limited, copied.len)
            }
            UserStack::PreUnwound(unwound) => {
                self.statistics.walked_again += 1;
                self.walked_again.insert(sample.pid);
                let copy = unwound.copy(&self.copies_in);
                self.walk_copy((sample, now), &unwound.registers, (&copy, unwound.limited))
            }
        }
    }

    /// Whether a walk before its turn has given what it would give now: with the same code, nothing more that is known of it, and
    /// nothing that a living process could be asked for.
    fn still_holds(&mut self, now: Timestamp, pid: Pid, unwound: &PreUnwound) -> bool {
        let process = self.processes.tracker.process(pid, now);
        let lacks_rule = unwound.walked == Walked::To(WalkEnd::Truncated(unwind::Reason::NoUnwindInfo));
        !process.jit.knows_code()
            && process.code_state(&self.processes.modules) == unwound.code
            && !(lacks_rule && self.processes.modules.are_live())
    }

    /// Puts the frames of a stack that the source has walked into `frames`.
    fn take_walked(&mut self, addresses: &[Avma]) {
        let Some((first, rest)) = addresses.split_first() else { return };
        self.frames.push(FrameAddress::InstructionPointer(*first));
        self.frames.extend(rest.iter().map(|&address| FrameAddress::ReturnAddress(address)));
    }

    /// The same of a copy, of which is known whether its limit was reached.
    fn walk_copy(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        registers: &Registers,
        (stack, limited): (&[u8], bool),
    ) -> Option<Truncation> {
        let walker = Walker {
            unwinder: &mut self.unwinder,
            process: self.processes.tracker.process(sample.pid, now),
            modules: &self.processes.modules,
            dumps: &self.processes.dumps,
            trail: self.prefetcher.begin(sample.tid),
        };
        let walk = walker.walk((sample, now), registers, stack, &mut self.frames);
        let copied = Copied { registers, len: stack.len(), limited };
        self.note_walk((sample, now), copied, walk);
        let is_cut = limited && walk.0.ended_with_copy();
        if is_cut && self.may_complete() && self.completes((sample, now), registers, stack) {
            return None;
        }
        truncation(walk.0, limited, stack.len())
    }

    /// The processes of whose code more is known than who walks before their turn knows, of those whose stacks were walked again
    /// since this was last called.
    pub(crate) fn drain_stale_processes(&mut self) -> Vec<Pid> {
        let now = self.last_time;
        let mut walked_again = std::mem::take(&mut self.walked_again);
        walked_again.retain(|pid| self.processes.process(*pid, now).jit.knows_code());
        walked_again.into_iter().collect()
    }

    /// Takes note of what came of a copy: where the walk ended, and of the words that it has looked at the outermost one.
    fn note_walk(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        copied: Copied<'_>,
        (walked, outermost): (Walked, Avma),
    ) {
        if let Walked::To(_) = walked {
            self.copies.note(sample.tid, copied.limited, walked.ended_with_copy());
        }
        if walked == Walked::To(WalkEnd::Root) {
            if !self.processes.process(sample.pid, now).lacks_mappings() {
                self.note_root(sample.tid, outermost);
            }
        } else if walked.ended_with_copy() {
            self.doubt_copied_root(sample.tid, copied);
        }
    }

    /// Whether anything was read of living processes that could make the stack at hand whole.
    fn may_complete(&mut self) -> bool {
        let has_any = self.live_stacks.has_any();
        if !has_any {
            self.statistics.incomplete.add(Incomplete::UnreadBefore);
        }
        has_any
    }

    /// Puts the whole stack into `frames`, where a walk has come to the end of a copy, and what was read of the living process leads
    /// on. Says whether that is so.
    fn completes(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        registers: &Registers,
        stack: &[u8],
    ) -> bool {
        let Some(registers) = unwindable(registers) else { return false };
        let copy = StackCopy { start: registers.stack_pointer(), bytes: stack };
        let (id, found) = ((sample.pid, sample.tid), self.frames.len());
        let cut = CutSample { id, time: now, registers: &registers, copy, found };
        match self.complete(cut) {
            Ok(whole) => {
                self.frames = whole.frames;
                self.found_in_copy = found;
                self.note_root(sample.tid, whole.outermost);
                self.statistics.completed += 1;
                true
            }
            Err(why) => {
                self.statistics.incomplete.add(why);
                if why == Incomplete::Rootless {
                    self.doubt_root(sample.tid);
                }
                false
            }
        }
    }

    /// Takes note of where a walk has come to the root of a thread's stack.
    fn note_root(&mut self, tid: Tid, outermost: Avma) {
        if let Some(news) = self.stack_roots.note(tid, outermost) {
            self.copies.note_root(tid, news);
        }
    }

    /// The root of a thread's stack is not where it was thought to be.
    fn doubt_root(&mut self, tid: Tid) {
        if let Some(news) = self.stack_roots.invalidate(tid) {
            self.copies.note_root(tid, news);
        }
    }

    /// A walk has ended with a copy. Where the root should have been in it, it is elsewhere: also where the copy ended before its
    /// limit, for it may have been made no longer than up to there.
    fn doubt_copied_root(&mut self, tid: Tid, copied: Copied<'_>) {
        let root = self.stack_roots.published(tid);
        if !copied.limited || root.is_some_and(|root| copied.holds_word(root)) {
            self.doubt_root(tid);
        }
    }
}

/// The range of code that was made while the program ran, and that no file holds.
fn find_made_code(
    process: &mut Process,
    dumps: &mut JitDumps,
    modules: &mut ModuleStore,
    (pid, address, now): (Pid, Avma, Timestamp),
) -> Option<Range> {
    if process.jit.dumps.is_empty() {
        if !modules.knows_processes() {
            return None;
        }
        return process.jit.find_in_map(pid, address, now, modules);
    }
    dumps.find(&process.jit.dumps, address, now)
}

/// Leaves one of equal frames at the root: those of a recursion whose beginning is not there.
fn fold_recursive_prefix(frames: &mut Vec<FrameAddress>) {
    while let [.., before, root] = frames.as_slice()
        && before.lookup_address() == root.lookup_address()
    {
        frames.pop();
    }
}
