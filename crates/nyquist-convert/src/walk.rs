//! Walking the copy of a thread's stack: what comes of it, wherever it is done.

use crate::event::{Pid, Registers, Sample, Timestamp};
use crate::jit::JitDumps;
use crate::mappings::Mappings;
use crate::modules::ModuleStore;
use crate::track::Process;
use nyquist_object::Avma;
use nyquist_unwind::{self as unwind, FrameAddress, StackCopy, StackMemory, Unwinder, WalkEnd};

/// A stack that was walked ahead of the converter.
#[derive(Clone, Debug, PartialEq)]
pub struct Unwound {
    /// Innermost first.
    pub(crate) frames: Box<[FrameAddress]>,
    pub(crate) walked: Walked,
    /// The size of the copy in bytes.
    pub(crate) copied: usize,
    /// Whether the copy ends because its limit was reached.
    pub(crate) limited: bool,
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
}

impl Walker<'_> {
    /// Walks the copy of the stack of a sample of this time, and appends its frames, innermost first.
    pub(crate) fn walk(
        mut self,
        (sample, now): (&Sample, Timestamp),
        registers: &Registers,
        stack: &[u8],
        frames: &mut Vec<FrameAddress>,
    ) -> Walked {
        let Some(registers) = unwindable(registers) else {
            frames.extend(code_32(registers).map(FrameAddress::InstructionPointer));
            return Walked::Code32;
        };
        if sample.in_kernel && self.process.is_between_programs(registers.instruction_pointer(), stack) {
            return Walked::BetweenPrograms;
        }
        let copy = StackCopy { start: registers.stack_pointer(), bytes: stack };
        let before = frames.len();
        loop {
            let end = self.walk_known(&registers, copy, frames);
            if !self.may_go_on(end, frames.last(), (sample.pid, now)) {
                return Walked::To(end);
            }
            frames.truncate(before);
        }
    }

    /// Walks as far as all that is known leads.
    fn walk_known(
        &mut self,
        registers: &unwind::Registers,
        copy: StackCopy<'_>,
        frames: &mut Vec<FrameAddress>,
    ) -> WalkEnd {
        let Self { unwinder, process, modules, dumps } = self;
        let mut push = |frame| frames.push(frame);
        if let unwind::Registers::X86_64Partial { .. } = registers {
            let memory = CopyAndCode { copy, mappings: process.mappings(), modules };
            unwinder.walk(process.address_space(modules, dumps), registers, &memory, &mut push)
        } else {
            unwinder.walk(process.address_space(modules, dumps), registers, &copy, &mut push)
        }
    }

    /// Whether a walk that ended at a frame would come further now: what that frame lacked was read of the process.
    fn may_go_on(&mut self, end: WalkEnd, last: Option<&FrameAddress>, (pid, now): (Pid, Timestamp)) -> bool {
        let lacks_rule = end == WalkEnd::Truncated(unwind::Reason::NoUnwindInfo) && self.modules.are_live();
        let at = last.filter(|_| lacks_rule).map(|frame| (pid, frame.lookup_address(), now));
        at.is_some_and(|at| self.process.read_instructions(at))
    }
}

/// The registers as the unwinder takes them; `None` of a program of 32 bits.
pub(crate) fn unwindable(registers: &Registers) -> Option<unwind::Registers> {
    Some(match *registers {
        Registers::X86_64(values) => unwind::Registers::X86_64(values),
        Registers::X86_64Partial { values, known } => unwind::Registers::X86_64Partial { values, known },
        Registers::Aarch64(values) => unwind::Registers::Aarch64(values),
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

/// A copy of a stack, and the code of the files that are mapped.
struct CopyAndCode<'a> {
    copy: StackCopy<'a>,
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
