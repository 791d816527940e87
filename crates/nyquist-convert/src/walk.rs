//! Walking the copy of a thread's stack: what comes of it, wherever it is done.

use crate::event::{EventKind, Pid, Registers, Sample, Tid, Timestamp};
use crate::jit::JitDumps;
use crate::mappings::Mappings;
use crate::modules::ModuleStore;
use crate::stack_prefetcher::{StackPrefetcher, Trail};
use crate::track::{AddressSpaceHash, Process};
use bytes::Bytes;
use nyquist_object::Avma;
use nyquist_perf::file::{Place, PlacedFiles};
use nyquist_unwind::{self as unwind, AddressSpace, FrameAddress, StackCopy, StackMemory, Unwinder, WalkEnd};
use std::borrow::Cow;
use std::cell::Cell;

/// A stack that was walked before its turn, with what was known then; and what it takes to walk it again, should more be known
/// when its turn comes.
#[derive(Clone, Debug, PartialEq)]
pub struct PreUnwound {
    /// Innermost first.
    pub(crate) frames: Vec<FrameAddress>,
    pub(crate) walked: Walked,
    /// Of the words that the walk has looked at, the outermost one.
    pub(crate) outermost: Avma,
    /// What was mapped, as far as it was known.
    pub(crate) code: AddressSpaceHash,
    pub(crate) registers: Box<Registers>,
    pub(crate) copy: KeptCopy,
    /// The size of the copy in bytes.
    pub(crate) copied: usize,
    /// Whether the copy ends because its limit was reached.
    pub(crate) limited: bool,
}

/// The copy of a stack that was walked already.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeptCopy {
    /// It is still here.
    Memory(Bytes),
    /// It can be read again.
    File(Place),
}

impl PreUnwound {
    /// A copy that was not walked, for there is no stack where the process is becoming another program; else it is walked later.
    pub(crate) fn pending(
        code: AddressSpaceHash,
        registers: Box<Registers>,
        (stack, limited): (Bytes, bool),
        frames: Vec<FrameAddress>,
    ) -> Self {
        Self {
            frames,
            walked: Walked::BetweenPrograms,
            outermost: Avma(0),
            code,
            registers,
            copied: stack.len(),
            copy: KeptCopy::Memory(stack),
            limited,
        }
    }

    /// The copy, where it is still here.
    pub(crate) fn copy_here(&self) -> Option<&Bytes> {
        match &self.copy {
            KeptCopy::Memory(bytes) => Some(bytes),
            KeptCopy::File(_) => None,
        }
    }

    /// Forgets all of it, but not the memory for frames.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.copy = KeptCopy::Memory(Bytes::new());
    }

    /// Whether the walk ended where the copy does, and the stack goes on.
    pub(crate) fn is_cut(&self) -> bool {
        self.limited && self.walked.ended_with_copy()
    }

    /// The copy, which may have to be read from these files again: then as much of it as still is there.
    pub(crate) fn copy(&self, files: &PlacedFiles) -> Cow<'_, [u8]> {
        match &self.copy {
            KeptCopy::Memory(bytes) => Cow::Borrowed(bytes),
            KeptCopy::File(place) => {
                let mut bytes = vec![0; self.copied];
                let read = files.read(*place, &mut bytes);
                bytes.truncate(read);
                Cow::Owned(bytes)
            }
        }
    }
}

/// What came of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// There is no stack: the kernel is replacing the process's program.
    BetweenPrograms,
    /// The program is one of 32 bits, which are not walked.
    Code32,
    /// Where the walk ended.
    To(WalkEnd),
}

impl Walked {
    /// Whether it ended because the copy did.
    pub(crate) fn ended_with_copy(self) -> bool {
        self == Self::To(WalkEnd::Truncated(unwind::Reason::StackCopyEnded))
    }
}

/// What it takes to walk the stacks of one process.
pub(crate) struct Walker<'a> {
    pub(crate) unwinder: &'a mut Unwinder,
    pub(crate) process: &'a mut Process,
    pub(crate) modules: &'a ModuleStore,
    pub(crate) dumps: &'a JitDumps,
    /// What the walk looks at is noted there.
    pub(crate) trail: &'a Trail,
}

impl Walker<'_> {
    /// Walks the copy of the stack of a sample of this time, and appends its frames, innermost first. Also says which of the
    /// words that it has looked at is the outermost one.
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
        if sample.in_kernel && self.process.is_between_programs(&registers, stack) {
            return (Walked::BetweenPrograms, Avma(0));
        }
        let copy = StackCopy { start: registers.stack_pointer(), bytes: stack };
        let copy = Watched { memory: copy, outermost: Cell::new(0), trail: self.trail };
        let before = frames.len();
        loop {
            let end = self.walk_known(&registers, &copy, frames);
            if !self.may_go_on(end, frames.last(), (sample.pid, now)) {
                return (Walked::To(end), Avma(copy.outermost.get()));
            }
            frames.truncate(before);
        }
    }

    /// Walks as far as all that is known leads.
    fn walk_known(
        &mut self,
        registers: &unwind::Registers,
        copy: &Watched<'_, StackCopy<'_>>,
        frames: &mut Vec<FrameAddress>,
    ) -> WalkEnd {
        let Self { unwinder, process, modules, dumps, .. } = self;
        let mut push = |frame| frames.push(frame);
        let end = if let unwind::Registers::X86_64Partial { .. } = registers {
            let memory = CopyAndCode { copy, mappings: process.mappings(), modules };
            unwinder.walk(process.address_space(modules, dumps), registers, &memory, &mut push)
        } else {
            unwinder.walk(process.address_space(modules, dumps), registers, copy, &mut push)
        };
        settled(end, frames)
    }

    /// Whether a walk that ended at a frame would come further now: what that frame lacked was read of the process.
    fn may_go_on(&mut self, end: WalkEnd, last: Option<&FrameAddress>, (pid, now): (Pid, Timestamp)) -> bool {
        let lacks_rule = end == WalkEnd::Truncated(unwind::Reason::NoUnwindInfo) && self.modules.are_live();
        let at = last.filter(|_| lacks_rule).map(|frame| (pid, frame.lookup_address(), now));
        at.is_some_and(|at| self.process.read_instructions(at))
    }
}

/// Walks copies of stacks, of whichever processes, where nothing more can be asked of these.
#[derive(Debug, Default)]
pub(crate) struct CopyWalker {
    unwinder: Unwinder,
    prefetcher: StackPrefetcher,
    /// The frames of the walk at hand; kept to save its memory.
    frames: Vec<FrameAddress>,
}

impl CopyWalker {
    /// Has the processor fetch what the walk of a stack that comes soon will probably look at.
    pub(crate) fn fetch(&self, coming: &EventKind) {
        self.prefetcher.fetch(coming);
    }

    /// Walks the copy of a thread's stack that is still here, given what is mapped.
    pub(crate) fn walk(&mut self, tid: Tid, space: &AddressSpace, unwound: &mut PreUnwound) {
        let PreUnwound { frames, walked, outermost, registers, copy, .. } = unwound;
        let Some(registers) = unwindable(registers) else {
            frames.extend(code_32(registers).map(FrameAddress::InstructionPointer));
            *walked = Walked::Code32;
            return;
        };
        let KeptCopy::Memory(bytes) = copy else { return };
        let copy = StackCopy { start: registers.stack_pointer(), bytes };
        let copy = Watched { memory: copy, outermost: Cell::new(0), trail: self.prefetcher.begin(tid) };
        self.frames.clear();
        let mut push = |frame| self.frames.push(frame);
        let end = self.unwinder.walk(space, &registers, &copy, &mut push);
        *walked = Walked::To(settled(end, &mut self.frames));
        *outermost = Avma(copy.outermost.get());
        frames.extend_from_slice(&self.frames);
    }
}

/// The registers as the unwinder takes them; `None` of a program of 32 bits.
pub(crate) fn unwindable(registers: &Registers) -> Option<unwind::Registers> {
    Some(match *registers {
        Registers::X86_64(values) => unwind::Registers::X86_64(values),
        Registers::X86_64Partial { values, known } => unwind::Registers::X86_64Partial { values, known },
        Registers::Aarch64(ref values) => unwind::Registers::Aarch64(**values),
        Registers::X86 { .. } => return None,
    })
}

/// The instruction pointer of a program of 32 bits.
fn code_32(registers: &Registers) -> Option<Avma> {
    match *registers {
        Registers::X86 { ip } => Some(Avma(u64::from(ip))),
        _ => None,
    }
}

/// A stack, where a walk has looked at it, and how far out.
struct Watched<'a, M> {
    memory: M,
    outermost: Cell<u64>,
    trail: &'a Trail,
}

impl<M: StackMemory> StackMemory for Watched<'_, M> {
    #[inline]
    fn read_u64(&self, address: Avma) -> Option<u64> {
        let word = self.memory.read_u64(address)?;
        self.trail.note(address);
        self.outermost.set(self.outermost.get().max(address.0));
        Some(word)
    }
}

/// A copy of a stack, and the code of the files that are mapped.
struct CopyAndCode<'a> {
    copy: &'a Watched<'a, StackCopy<'a>>,
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

/// What the end of a walk means, with the address of its last frame put right: nothing has called the function at the bottom of a
/// coroutine's stack, so that it is not a return address.
pub(crate) fn settled(end: WalkEnd, frames: &mut [FrameAddress]) -> WalkEnd {
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
