//! Stacks: looked up and interned.

use super::Stages;
use super::samples::Row;
use crate::build::intern::{CodePlace, Mode};
use crate::event::{Pid, Sample, Timestamp, UserStack};
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::modules::store::ModuleStore;
use crate::processes::mappings::Range;
use crate::processes::process::Process;
use crate::unwind::truncation::Truncation;
use nyquist_object::Avma;
use nyquist_profile::StackId;

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
            self.walker.fold_recursive_prefix();
        }
        self.places.clear();
        self.places.extend(truncated.map(Place::Truncated));
        if let UserStack::Named(name) = sample.user {
            self.places.push(Place::Named(name));
        }
        let process = self.processes.tracker.process(sample.pid, now);
        let mut last: Option<Range> = None;
        for (frame, is_completed) in self.walker.frames() {
            let mode = if is_completed { Mode::Completed } else { Mode::User };
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
