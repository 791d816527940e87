//! The properties of an architecture that are needed to walk stacks and to compile tables.

use crate::call_instruction::CallInstruction;
use crate::cfi::CfiRow;
use crate::rule::Rule;
use crate::{FrameAddress, Reason, StackMemory};
use nyquist_object::Avma;
use std::fmt::Debug;

/// Represents an unknown frame pointer. It is not aligned, and no stack is at this address.
pub(crate) const UNKNOWN_FRAME_POINTER: u64 = 1;

/// The bit that is set in a saved frame pointer if Swift's asynchronous context is beside it: an "extended frame" of
/// LLVM's (`-swift-async-fp`). No address of a stack has it.
const ASYNCHRONOUS_FRAME: u64 = 1 << 60;

/// An architecture. Each one is a folder of this crate with the same files: `rows.rs` makes rules from call
/// frame information, `step.rs` applies rules, and `instructions.rs` makes rules for code without unwind
/// information.
pub(crate) trait Architecture: Copy + Debug + 'static {
    /// The values of all registers, in DWARF's order.
    type Values: Copy + Debug + AsRef<[u64]> + AsMut<[u64]>;
    /// The state that a walk tracks in addition to the three registers of all architectures.
    type Link: Copy + Debug;

    /// All values zero.
    const ZEROS: Self::Values;
    /// The index of the frame pointer among the values.
    const FRAME_POINTER: usize;
    /// The index of the stack pointer.
    const STACK_POINTER: usize;
    /// The index of the instruction pointer.
    const INSTRUCTION_POINTER: usize;
    /// The column of the return address in call frame information.
    const RETURN_ADDRESS: usize;
    /// Whether a row that does not mention the return address leaves it in its register. Otherwise the frame
    /// has no return address.
    const KEEPS_RETURN_ADDRESS: bool;
    /// The vendor whose instructions of call frame information occur in addition to the standard ones.
    const VENDOR: gimli::Vendor;
    /// The rule of a function of which it is only known that it has set up its frame pointer.
    const FRAME_RECORD: Rule;
    /// The rule at the first instruction of a function.
    const CALLED: Rule;

    /// The rule that is equivalent to a row of call frame information.
    fn rule(row: &CfiRow<'_>, is_signal: bool) -> Rule;

    /// The tracked state besides the three registers, from all registers. `interrupted` is whether the frame
    /// was interrupted, so that any of its instructions can be the next one.
    fn link(registers: &FullRegisters<Self>, interrupted: bool) -> Self::Link;

    /// Sets the registers that are known from the tracked state.
    fn set_link(registers: &mut FullRegisters<Self>, link: Self::Link);

    /// The bits of a return address that are an address: `mask` if that is known. `code_end` is the end of the
    /// process's highest code.
    fn address_bits(mask: Option<u64>, code_end: u64) -> u64;

    /// The caller of a frame whose rule only needs the tracked registers.
    fn apply(
        rule: Rule,
        frame: &FrameRegisters<Self>,
        memory: &impl StackMemory,
        address_bits: u64,
    ) -> Result<FrameRegisters<Self>, Reason>;

    /// The registers that the kernel saved when it delivered a signal, from the signal frame.
    fn signal_context(
        frame: &FrameRegisters<Self>,
        memory: &impl StackMemory,
    ) -> Result<FullRegisters<Self>, Reason>;

    /// The offset of the description of the thread's signal stack (`uc_stack`) from the signal frame's stack
    /// pointer.
    const SIGNAL_STACK: u64;

    /// The offset of the interrupted code's stack pointer from the signal frame's stack pointer.
    const SIGNAL_POINTER: u64;

    /// Whether the memory at a frame's stack pointer looks like a signal frame of the kernel.
    fn is_signal_frame(frame: &FrameRegisters<Self>, memory: &impl StackMemory) -> bool;

    /// Whether the code at `offset` is the return from a signal handler.
    fn is_signal_return(code: &[u8], offset: usize) -> bool;

    /// The rule for the instruction at `offset` of `code`, where a thread was interrupted.
    fn rule_at(code: &[u8], offset: usize) -> Option<Rule>;

    /// The rule at `offset` of `code`, found by following all code that the first instruction leads to.
    /// `None` if it does not lead there, or if the architecture does not follow code.
    fn followed_rule_at(code: &[u8], offset: usize) -> Option<Rule>;

    /// The rule at `offset` of code that is made at run time, by its instructions alone. `None` if they do not show it,
    /// or if such code always keeps frame pointers.
    fn rule_of_made_code(_code: &[u8], _offset: usize) -> Option<Rule> {
        None
    }

    /// The call that the last instruction of `code` can be.
    fn call_at_end(code: &[u8]) -> Option<CallInstruction>;

    /// The mode of compact unwind encodings that refer to call frame information.
    const COMPACT_DWARF: u32;

    /// Calls `emit` with the offsets in a function's code at which rules begin to hold, by its compact unwind
    /// encoding.
    fn compact_rows(encoding: u32, code: &[u8], emit: &mut impl FnMut(u32, Rule));

    /// How many bytes above the stack pointer a function's frame pointer is while it makes a call, by its
    /// instructions from the first one on.
    fn frame_pointer_above(code: &[u8]) -> Option<u64>;
}

/// The caller of a frame whose return address is not known, found by the caller's own saved registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostCaller<A: Architecture> {
    /// The start of the caller's function, if that is known. The address within the function is not known.
    pub(crate) function: Option<Avma>,
    /// The frame of the caller's caller.
    pub(crate) next: FrameRegisters<A>,
}

/// The registers that most steps need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRegisters<A: Architecture> {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    pub(crate) link: A::Link,
    /// Whether the frame was interrupted and not left by a call. Any of its instructions can be the next one,
    /// and the lookup address is the instruction pointer itself.
    pub(crate) interrupted: bool,
}

impl<A: Architecture> FrameRegisters<A> {
    /// The address by which the frame's rule is found.
    pub(crate) fn lookup(&self) -> u64 {
        if self.interrupted { self.ip } else { self.ip.wrapping_sub(1) }
    }

    pub(crate) fn address(&self) -> FrameAddress {
        if self.interrupted {
            FrameAddress::InstructionPointer(Avma(self.ip))
        } else {
            FrameAddress::ReturnAddress(Avma(self.ip))
        }
    }

    /// The frame, if all the registers that it needs are known.
    pub(crate) fn of(registers: &FullRegisters<A>, interrupted: bool) -> Result<Self, Reason> {
        let get = |register| registers.get(register).ok_or(Reason::RegisterUnknown);
        let fp = registers.get(A::FRAME_POINTER).unwrap_or(UNKNOWN_FRAME_POINTER);
        let (ip, sp) = (get(A::INSTRUCTION_POINTER)?, get(A::STACK_POINTER)?);
        Ok(Self { ip, sp, fp, link: A::link(registers, interrupted), interrupted })
    }

    /// All registers, of which only the tracked ones are known.
    pub(crate) fn full_registers(&self) -> FullRegisters<A> {
        let mut registers = FullRegisters::none();
        registers.set(A::INSTRUCTION_POINTER, Some(self.ip));
        registers.set(A::STACK_POINTER, Some(self.sp));
        registers.set(A::FRAME_POINTER, Some(self.fp).filter(|fp| *fp != UNKNOWN_FRAME_POINTER));
        A::set_link(&mut registers, self.link);
        registers
    }

    #[inline]
    pub(crate) fn read(&self, address: u64, memory: &impl StackMemory) -> Result<u64, Reason> {
        memory.read_u64(Avma(address)).ok_or_else(|| unreadable(address, self.sp))
    }

    /// The frame pointer that is saved at an address, as an address.
    #[inline]
    pub(crate) fn read_frame_pointer(&self, address: u64, memory: &impl StackMemory) -> Result<u64, Reason> {
        self.read(address, memory).map(|saved| saved & !ASYNCHRONOUS_FRAME)
    }
}

/// Registers, some of which may be unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullRegisters<A: Architecture> {
    values: A::Values,
    /// A bit for each register whose value is known.
    known: u64,
}

impl<A: Architecture> FullRegisters<A> {
    /// No register is known.
    pub(crate) fn none() -> Self {
        Self { values: A::ZEROS, known: 0 }
    }

    /// The registers with a frame pointer that is an address.
    pub(crate) fn with_plain_frame_pointer(mut self) -> Self {
        self.set(A::FRAME_POINTER, self.get(A::FRAME_POINTER).map(|saved| saved & !ASYNCHRONOUS_FRAME));
        self
    }

    /// All registers are known.
    pub(crate) fn all(values: A::Values) -> Self {
        Self::some(values, u64::MAX)
    }

    /// The registers whose bit is set in `known` are known.
    pub(crate) fn some(values: A::Values, known: u64) -> Self {
        Self { values, known }
    }

    pub(crate) fn get(&self, register: usize) -> Option<u64> {
        let value = *self.values.as_ref().get(register)?;
        (self.known >> register & 1 != 0).then_some(value)
    }

    pub(crate) fn set(&mut self, register: usize, value: Option<u64>) {
        if let Some(slot) = self.values.as_mut().get_mut(register) {
            *slot = value.unwrap_or_default();
            self.known = self.known & !(1 << register) | u64::from(value.is_some()) << register;
        }
    }

    /// The number of registers, known or not.
    pub(crate) fn len(&self) -> usize {
        self.values.as_ref().len()
    }
}

/// The reason for a read that failed. Memory above the stack pointer was not copied, and memory below it is
/// no stack.
pub(crate) fn unreadable(address: u64, sp: u64) -> Reason {
    if address >= sp { Reason::StackCopyEnded } else { Reason::MemoryUnreadable }
}
