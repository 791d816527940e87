//! The registers of a thread, as a walk begins with them.

use crate::aarch64::Aarch64;
use crate::architecture::Architecture;
use crate::x86_64::{RCX, X86_64};
use nyquist_object::Avma;

/// The values of a thread's registers at one moment: all that unwind information can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registers {
    /// 64-bit x86, in DWARF's order (System V ABI for AMD64, figure 3.36): rax, rdx, rcx, rbx, rsi, rdi, rbp,
    /// rsp, r8 to r15, then the instruction pointer.
    X86_64([u64; 17]),
    /// The same registers, of which some are not known, as those of a thread that is observed while it waits in
    /// the kernel. A step that needs one of them ends the walk.
    X86_64Partial {
        /// The values in the same order; what stands for an unknown one means nothing.
        values: [u64; 17],
        /// A bit for each register that is known, the first one's the lowest. The stack pointer and the
        /// instruction pointer must be.
        known: u32,
    },
    /// 64-bit ARM, in DWARF's order (DWARF for the Arm 64-bit Architecture, section 4.1): x0 to x30, the stack
    /// pointer, then the instruction pointer.
    Aarch64([u64; 33]),
}

impl Registers {
    /// The instruction pointer.
    pub fn instruction_pointer(&self) -> Avma {
        match self {
            Self::X86_64(values) | Self::X86_64Partial { values, .. } => {
                Avma(values[X86_64::INSTRUCTION_POINTER])
            }
            Self::Aarch64(values) => Avma(values[Aarch64::INSTRUCTION_POINTER]),
        }
    }

    /// The stack pointer.
    pub fn stack_pointer(&self) -> Avma {
        match self {
            Self::X86_64(values) | Self::X86_64Partial { values, .. } => Avma(values[X86_64::STACK_POINTER]),
            Self::Aarch64(values) => Avma(values[Aarch64::STACK_POINTER]),
        }
    }

    /// Whether a thread that is in the kernel can have called it, with these registers of its code: not where they tell that a
    /// fault or an interrupt brought it there. On x86, `syscall` leaves its return address in rcx (Intel 64 and IA-32 Architectures
    /// Software Developer's Manual, volume 2B, SYSCALL). Processors that deliver events by FRED leave rcx as it was: there, it says of
    /// nearly no call that it can be one; and so do registers of which rcx was not captured, and is 0.
    pub fn may_be_of_system_call(&self) -> bool {
        let is_known = |register: usize| match self {
            Self::X86_64Partial { known, .. } => known >> register & 1 != 0,
            _ => true,
        };
        match self {
            Self::X86_64(values) | Self::X86_64Partial { values, .. } => {
                !is_known(RCX) || values[RCX] == values[X86_64::INSTRUCTION_POINTER]
            }
            Self::Aarch64(_) => true,
        }
    }
}

/// Registers of which some are not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullRegisters<A: Architecture> {
    values: A::Values,
    /// A bit for each register whose value is known.
    known: u64,
}

impl<A: Architecture> FullRegisters<A> {
    /// None of them known.
    pub(crate) fn none() -> Self {
        Self { values: A::ZEROS, known: 0 }
    }

    /// All of them known.
    pub(crate) fn all(values: A::Values) -> Self {
        Self::some(values, u64::MAX)
    }

    /// Those known whose bit is set in `known`.
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

    /// How many registers there are, known or not.
    pub(crate) fn len(&self) -> usize {
        self.values.as_ref().len()
    }
}
