//! Walks copies of stacks of any processes, without asking the processes for more data.

use super::registers::{code_32, unwindable};
use super::walk::{TrackedMemory, resolve_bottom};
use crate::event::PreUnwound;
use crate::event::pre_unwound::{KeptCopy, Walked};
use nyquist_object::Avma;
use nyquist_unwind::{AddressSpace, FrameAddress, StackCopy, Unwinder};
use std::cell::Cell;

/// Walks copies of stacks of any processes, without asking the processes for more data.
#[derive(Debug, Default)]
pub(crate) struct CopyWalker {
    unwinder: Unwinder,
    /// The frames of the current walk. Kept to reuse its memory.
    frames: Vec<FrameAddress>,
}

impl CopyWalker {
    /// Walks the copy of a thread's stack, if it is still in memory, given the mappings.
    pub(crate) fn walk(&mut self, space: &AddressSpace, unwound: &mut PreUnwound) {
        let PreUnwound { frames, walked, outermost, registers, copy, .. } = unwound;
        let Some(registers) = unwindable(registers) else {
            frames.extend(code_32(registers).map(FrameAddress::InstructionPointer));
            *walked = Walked::Code32;
            return;
        };
        let KeptCopy::Memory(bytes) = copy else { return };
        let copy = StackCopy { start: registers.stack_pointer(), bytes };
        let copy = TrackedMemory { memory: copy, outermost: Cell::new(0) };
        self.frames.clear();
        let mut push = |frame| self.frames.push(frame);
        let end = self.unwinder.walk(space, &registers, &copy, &mut push);
        *walked = Walked::To(resolve_bottom(end, &mut self.frames));
        *outermost = Avma(copy.outermost.get());
        frames.extend_from_slice(&self.frames);
    }
}
