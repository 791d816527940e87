//! The stack of the current sample. Its frames are looked up, and those that its thread's last stack did not
//! have are interned.

use super::intern::{CodePlace, Interner, Mode};
use super::sample_frame::SampleFrame;
use crate::event::{Sample, Timestamp, UserStack};
use crate::mappings::Range;
use crate::module_index::ModuleIndex;
use crate::modules::store::ModuleStore;
use crate::processes::state::ProcessState;
use crate::unwind::truncation::Truncation;
use nyquist_object::Avma;
use nyquist_profile::{CategoryId, FrameId, LibId, ProfileBuilder, StackId};
use nyquist_unwind::FrameAddress;

/// How many stacks are kept for comparison with a thread's next stack. It is enough for the threads that run
/// at once.
const PATHS: usize = 16;

/// The stack of a sample, from the root on: each frame, and the stack up to it.
type Path = Vec<(SampleFrame, StackId)>;

/// Looks up and interns stacks, one sample after the other.
#[derive(Debug)]
pub(crate) struct StackTable {
    interner: Interner,
    /// The places of the current sample's frames, outermost first. Kept to reuse its memory.
    places: Vec<SampleFrame>,
    /// The frames at those of its places that its thread's last sample did not have. Kept to reuse its
    /// memory.
    new_frames: Vec<FrameId>,
    /// The last stacks of threads, by the threads' numbers.
    paths: [Path; PATHS],
}

impl StackTable {
    /// A table for a profile without stacks.
    pub(crate) fn new(builder: &mut ProfileBuilder) -> Self {
        Self {
            interner: Interner::new(builder),
            places: Vec::new(),
            new_frames: Vec::new(),
            paths: Default::default(),
        }
    }

    /// Looks up the sample's whole stack, from the root of the user's part to the innermost frame of the
    /// kernel's. `frames` is the user's part, outermost first. Each frame has a flag that it was found beyond
    /// the end of the stack copy.
    pub(crate) fn place(
        &mut self,
        (sample, now): (&Sample, Timestamp),
        truncated: Option<Truncation>,
        frames: impl Iterator<Item = (FrameAddress, bool)>,
        processes: &mut ProcessState,
    ) {
        self.places.clear();
        self.places.extend(truncated.map(SampleFrame::Truncated));
        if let UserStack::Named(name) = sample.user {
            self.places.push(SampleFrame::Named(name));
        }
        let mut code = processes.code_finder(sample.pid, now);
        for (frame, is_completed) in frames {
            let mode = if is_completed { Mode::Completed } else { Mode::User };
            let address = frame.lookup_address();
            let place = CodePlace::of(code.find(address), address);
            self.places.push(SampleFrame::Code(place, mode));
        }
        for (depth, &address) in sample.kernel_stack.iter().enumerate().rev() {
            let address = if depth == 0 { address } else { Avma(address.0.wrapping_sub(1)) };
            let place = CodePlace::of(processes.find_kernel_code(address).as_ref(), address);
            self.places.push(SampleFrame::Code(place, Mode::Kernel));
        }
    }

    /// Whether the code of some frame is unknown so far.
    pub(crate) fn has_unknown(&self) -> bool {
        self.places.iter().any(SampleFrame::is_unknown)
    }

    /// The stack that was looked up, for [`take_up`](Self::take_up) later.
    pub(crate) fn places(&self) -> Vec<SampleFrame> {
        self.places.clone()
    }

    /// Restores a stack, and looks up the places again whose code was not known before.
    pub(crate) fn take_up(&mut self, places: Vec<SampleFrame>, mut find: impl FnMut(Avma) -> Option<Range>) {
        self.places = places;
        for place in &mut self.places {
            if let SampleFrame::Code(
                CodePlace::OutsideModules(address),
                mode @ (Mode::User | Mode::Completed),
            ) = *place
            {
                *place = SampleFrame::Code(CodePlace::of(find(address).as_ref(), address), mode);
            }
        }
    }

    /// Interns the stack that was looked up, which is of a sample of this thread. The part that it shares
    /// with the stack of the sample before is not interned again.
    pub(crate) fn intern(
        &mut self,
        thread: usize,
        builder: &mut ProfileBuilder,
        modules: &ModuleStore,
    ) -> Option<StackId> {
        let path = &mut self.paths[thread % PATHS];
        let is_same = |(place, (known, _)): &(&SampleFrame, &(SampleFrame, StackId))| *place == known;
        let same = self.places.iter().zip(&*path).take_while(is_same).count();
        path.truncate(same);
        // All frames are looked up before the first stack, so that the processor waits for several cache
        // misses at once.
        let new = &self.places[same..];
        self.new_frames.clear();
        let interner = &mut self.interner;
        self.new_frames.extend(new.iter().map(|place| match place {
            SampleFrame::Truncated(truncation) => interner.truncated(builder, *truncation),
            SampleFrame::Named(name) => interner.named(builder, name),
            SampleFrame::Code(place, mode) => interner.frame(builder, modules, *place, *mode),
        }));
        let mut stack = path.last().map(|(_, stack)| *stack);
        for (place, frame) in new.iter().zip(&self.new_frames) {
            let next = builder.intern_stack(stack, *frame);
            path.push((*place, next));
            stack = Some(next);
        }
        stack
    }

    /// Forgets all stacks: the profile's tables were made anew.
    pub(crate) fn forget(&mut self) {
        self.interner.forget_frames();
        self.paths.iter_mut().for_each(Vec::clear);
    }

    /// The category of code.
    pub(crate) fn category(&self, mode: Mode) -> CategoryId {
        self.interner.category(mode)
    }

    /// The libs that have frames in stacks, and their modules.
    pub(crate) fn libs(&self) -> impl Iterator<Item = (LibId, ModuleIndex)> {
        self.interner.libs()
    }
}
