//! Walks one stack copy with the mappings and modules of its process; `StackWalker` calls it at a sample's turn.

use super::registers::{code_32, unwindable};
use crate::event::pre_unwound::Walked;
use crate::event::{Pid, Registers, Sample, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::mappings::Mappings;
use crate::modules::store::ModuleStore;
use crate::processes::process::Process;
use nyquist_object::Avma;
use nyquist_unwind::{self as unwind, FrameAddress, StackCopy, StackMemory, Unwinder, WalkEnd};
use std::cell::Cell;

/// The state for walking the stacks of one process.
pub(crate) struct ProcessWalker<'a> {
    pub(crate) unwinder: &'a mut Unwinder,
    pub(crate) process: &'a mut Process,
    pub(crate) modules: &'a ModuleStore,
    pub(crate) dumps: &'a JitDumps,
}

impl ProcessWalker<'_> {
    /// Walks the stack copy of a sample, and appends its frames, innermost first. Also returns the address of
    /// the outermost word that it has read.
    pub(crate) fn walk(
        mut self,
        (sample, now): (&Sample, Timestamp),
        registers: &Registers,
        stack: &[u8],
        frames: &mut Vec<FrameAddress>,
    ) -> (Walked, Avma) {
        let Some(registers) = unwindable(registers) else {
            frames.extend(code_32(registers).map(FrameAddress::InstructionPointer));
            return (Walked::Code32, Avma(0));
        };
        if sample.in_kernel && self.process.code.is_between_programs(&registers, stack) {
            return (Walked::BetweenPrograms, Avma(0));
        }
        let copy = StackCopy { start: registers.stack_pointer(), bytes: stack };
        let copy = TrackedMemory { memory: copy, outermost: Cell::new(0) };
        let before = frames.len();
        loop {
            let end = self.walk_known(&registers, &copy, frames);
            if !self.may_go_on(end, frames.last(), (sample.pid, now)) {
                return (Walked::To(end), Avma(copy.outermost.get()));
            }
            frames.truncate(before);
        }
    }

    /// Walks as far as is possible with the known data.
    fn walk_known(
        &mut self,
        registers: &unwind::Registers,
        copy: &TrackedMemory<StackCopy<'_>>,
        frames: &mut Vec<FrameAddress>,
    ) -> WalkEnd {
        let Self { unwinder, process, modules, dumps, .. } = self;
        let mut push = |frame| frames.push(frame);
        let end = if registers.are_partial() {
            let memory = CopyAndCode { copy, mappings: process.code.mappings(), modules };
            unwinder.walk(process.code.address_space(modules, dumps), registers, &memory, &mut push)
        } else {
            unwinder.walk(process.code.address_space(modules, dumps), registers, copy, &mut push)
        };
        resolve_bottom(end, frames)
    }

    /// Whether a walk that ended at a frame would get further now, or find callers that it has skipped, because the
    /// missing data was read from the process.
    fn may_go_on(&mut self, end: WalkEnd, last: Option<&FrameAddress>, (pid, now): (Pid, Timestamp)) -> bool {
        let Some(targets) = self.modules.targets() else { return false };
        let lacks_rule = end == WalkEnd::Truncated(unwind::Reason::NoUnwindInfo);
        let last = last.filter(|_| lacks_rule).map(|frame| frame.lookup_address());
        [self.unwinder.doubtful_code(), last]
            .into_iter()
            .flatten()
            .any(|address| self.process.code.read_instructions((pid, address, now), targets, self.dumps))
    }
}

/// A stack that records the outermost address that a walk reads.
pub(super) struct TrackedMemory<M> {
    pub(super) memory: M,
    pub(super) outermost: Cell<u64>,
}

impl<M: StackMemory> StackMemory for TrackedMemory<M> {
    #[inline]
    fn read_u64(&self, address: Avma) -> Option<u64> {
        let word = self.memory.read_u64(address)?;
        self.outermost.set(self.outermost.get().max(address.0));
        Some(word)
    }
}

/// A copy of a stack, and the code of the files that are mapped.
struct CopyAndCode<'a> {
    copy: &'a TrackedMemory<StackCopy<'a>>,
    mappings: Mappings,
    modules: &'a ModuleStore,
}

impl StackMemory for CopyAndCode<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        self.copy.read_u64(address)
    }

    fn read_code(&self, address: Avma, out: &mut [u8]) -> usize {
        let module = self.mappings.find(address).and_then(|range| range.module);
        module.map_or(0, |(index, base)| self.modules.get(index).read_code(base, address, out))
    }
}

/// The meaning of the end of a walk. Corrects the address of the last frame: no call made the function at the
/// bottom of a coroutine's stack, so its address is not a return address.
pub(crate) fn resolve_bottom(end: WalkEnd, frames: &mut [FrameAddress]) -> WalkEnd {
    if end != WalkEnd::Bottom {
        return end;
    }
    if let Some(last) = frames.last_mut()
        && let FrameAddress::ReturnAddress(address) = *last
    {
        *last = FrameAddress::InstructionPointer(address);
    }
    WalkEnd::Root
}
