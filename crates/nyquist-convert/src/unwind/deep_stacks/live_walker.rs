//! Walks a stack again, beyond the end of its copy, through a reading of the living process.

use super::copy_then_live::CopyThenLive;
use super::incomplete::Incomplete;
use super::live_stacks::fits;
use crate::event::{LiveStack, Pid, Tid, Timestamp};
use crate::module_index::ModuleIndex;
use crate::modules::store::ModuleStore;
use crate::processes::process::Process;
use crate::unwind::walk::resolve_bottom;
use nyquist_object::Avma;
use nyquist_unwind::{AddressSpace, CallInstruction, FrameAddress, Registers, StackCopy, Unwinder, WalkEnd};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// The most calls that are remembered.
const MAX_CALLS: usize = 1 << 16;

/// A sample whose copy ended too early.
#[derive(Clone, Copy)]
pub(crate) struct TruncatedSample<'a> {
    pub(crate) id: (Pid, Tid),
    pub(crate) time: Timestamp,
    pub(crate) registers: &'a Registers,
    pub(crate) copy: StackCopy<'a>,
    /// How many frames were found in the copy.
    pub(crate) found: usize,
    /// Whether the copy is of a signal stack, and the readings are of the interrupted stack, wherever it is.
    pub(crate) is_interrupted: bool,
}

/// A cache of whether a frame's function is the one that the next outer frame calls.
pub(super) type Calls = FxHashMap<[Code; 2], Option<bool>>;

/// A module, the address of its image base, and an address in the module.
pub(super) type Code = (ModuleIndex, Avma, Avma);

/// A stack that was walked beyond its copy.
pub(crate) struct CompletedStack {
    pub(crate) frames: Vec<FrameAddress>,
    /// The outermost word of the stack that the walk has read.
    pub(super) outermost: Avma,
    pub(super) read_at: Timestamp,
    /// Whether copy and reading are of the same stack. If one frame fills all words that both have, the words
    /// do not prove this. Then all calls must lead to the called function. This is not always so, because
    /// functions may end in jumps to others.
    pub(super) is_joined: bool,
}

/// The state for walking beyond a copy.
pub(super) struct LiveWalker<'a> {
    pub(super) space: AddressSpace,
    pub(super) process: &'a Process,
    pub(super) modules: &'a ModuleStore,
    pub(super) unwinder: &'a mut Unwinder,
    pub(super) calls: &'a mut Calls,
}

impl LiveWalker<'_> {
    /// Walks a stack again, beyond the copy through the reading.
    pub(super) fn walk_on(
        &mut self,
        sample: TruncatedSample<'_>,
        live: &LiveStack,
    ) -> Result<CompletedStack, Incomplete> {
        if !fits(live, sample.copy) {
            return Err(Incomplete::Misfit);
        }
        let mut completed = self.walk_exactly(sample, live)?;
        let all_are_called = self.are_called(&completed.frames, sample.found).ok_or(Incomplete::Uncalled)?;
        completed.is_joined |= all_are_called;
        Ok(completed)
    }

    /// The same, through a reading that was made at the moment of the sample.
    pub(super) fn walk_exactly(
        &mut self,
        sample: TruncatedSample<'_>,
        live: &LiveStack,
    ) -> Result<CompletedStack, Incomplete> {
        let copy = sample.copy;
        let end = copy.start.0.saturating_add(copy.bytes.len() as u64);
        let end = if sample.is_interrupted { 0 } else { end };
        let memory = CopyThenLive {
            copy,
            end,
            live,
            in_both: Cell::new(0),
            differs: Cell::new(false),
            outermost: Cell::new(0),
        };
        let mut frames = Vec::new();
        let walked =
            self.unwinder.walk(&self.space, sample.registers, &memory, &mut |frame| frames.push(frame));
        let walked = resolve_bottom(walked, &mut frames);
        if memory.differs.get() {
            return Err(Incomplete::Misfit);
        }
        if walked != WalkEnd::Root {
            return Err(Incomplete::Rootless);
        }
        let outermost = Avma(memory.outermost.get());
        Ok(CompletedStack { frames, outermost, read_at: live.read_at, is_joined: memory.in_both.get() > 0 })
    }

    /// Whether each frame's function is the one that the next outer frame calls, from the last frame of the
    /// copy on. `None` if an outer frame has no call there, or if a frame has no unwind information.
    fn are_called(&mut self, frames: &[FrameAddress], found: usize) -> Option<bool> {
        let mut all_are_called = true;
        for pair in frames.get(found.saturating_sub(1)..)?.windows(2) {
            let &[inner, outer] = pair else { return None };
            all_are_called &= self.is_called(inner, outer)?;
        }
        Some(all_are_called)
    }

    /// Whether an inner frame's function is the one that the outer frame calls. `None` if the outer frame has
    /// no call there, or has no unwind information.
    fn is_called(&mut self, inner: FrameAddress, outer: FrameAddress) -> Option<bool> {
        let back = match outer {
            FrameAddress::ReturnAddress(back) => back,
            // A wrong walk also finds addresses of functions, which are no return addresses.
            FrameAddress::InstructionPointer(at) => {
                return (self.space.function_at(at) != Some(at)).then_some(false);
            }
        };
        let code = |frame: FrameAddress| {
            let (module, base) = self.process.code.find(frame.lookup_address())?.module?;
            Some((module, base, frame.lookup_address()))
        };
        let Some(call) = code(inner).zip(code(outer)).map(|(inner, outer)| [inner, outer]) else {
            return self.calls_function_of(back, inner);
        };
        if let Some(known) = self.calls.get(&call) {
            return *known;
        }
        let is_called = self.calls_function_of(back, inner);
        if self.calls.len() >= MAX_CALLS {
            self.calls.clear();
        }
        self.calls.insert(call, is_called);
        is_called
    }

    /// As [`is_called`](Self::is_called), but without the cache.
    fn calls_function_of(&self, back: Avma, inner: FrameAddress) -> Option<bool> {
        let outer = FrameAddress::ReturnAddress(back);
        self.space.function_at(outer.lookup_address())?;
        match self.call_before(back)? {
            CallInstruction::Indirect => Some(true),
            CallInstruction::Direct(distance) => {
                let target = Avma(back.0.wrapping_add_signed(i64::from(distance)));
                // A target in the middle of a described function is a stub, which can jump to any function.
                let is_function = self.space.function_at(target) == Some(target);
                Some(!is_function || self.space.function_at(inner.lookup_address()) == Some(target))
            }
        }
    }

    /// The call that ends at a return address.
    fn call_before(&self, back: Avma) -> Option<CallInstruction> {
        let (module, base) = self.process.code.find(Avma(back.0.wrapping_sub(1)))?.module?;
        let mut code = [0; CallInstruction::MAX_LEN];
        let start = Avma(back.0.wrapping_sub(CallInstruction::MAX_LEN as u64));
        let module = self.modules.get(module);
        let read = module.read_code(base, start, &mut code);
        if read == code.len() { CallInstruction::before(module.architecture()?, &code) } else { None }
    }
}
