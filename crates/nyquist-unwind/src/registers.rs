//! The registers of a thread, which are the start of a walk.

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
    /// The same registers, of which some are not known. An example is a thread that is observed while it
    /// waits in the kernel. A step that needs one of them ends the walk.
    X86_64Partial {
        /// The values in the same order. The value of an unknown register has no meaning.
        values: [u64; 17],
        /// A bit for each known register; the first register has the lowest bit. The stack pointer and the
        /// instruction pointer must be known.
        known: u32,
    },
    /// 64-bit ARM, in DWARF's order (DWARF for the Arm 64-bit Architecture, section 4.1): x0 to x30, the
    /// stack pointer, then the instruction pointer.
    Aarch64([u64; 33]),
    /// The same registers, of which some are not known. An example is a thread that is observed while it
    /// waits in the kernel. If the return address is one of them, the walk continues at the nearest frame
    /// record.
    Aarch64Partial {
        /// The values in the same order. The value of an unknown register has no meaning.
        values: [u64; 33],
        /// A bit for each known register; the first register has the lowest bit. The stack pointer and the
        /// instruction pointer must be known.
        known: u64,
    },
}

impl Registers {
    /// The instruction pointer.
    pub fn instruction_pointer(&self) -> Avma {
        match self {
            Self::X86_64(values) | Self::X86_64Partial { values, .. } => {
                Avma(values[X86_64::INSTRUCTION_POINTER])
            }
            Self::Aarch64(values) | Self::Aarch64Partial { values, .. } => {
                Avma(values[Aarch64::INSTRUCTION_POINTER])
            }
        }
    }

    /// The stack pointer.
    pub fn stack_pointer(&self) -> Avma {
        match self {
            Self::X86_64(values) | Self::X86_64Partial { values, .. } => Avma(values[X86_64::STACK_POINTER]),
            Self::Aarch64(values) | Self::Aarch64Partial { values, .. } => {
                Avma(values[Aarch64::STACK_POINTER])
            }
        }
    }

    /// Whether some of them are not known.
    pub fn are_partial(&self) -> bool {
        matches!(self, Self::X86_64Partial { .. } | Self::Aarch64Partial { .. })
    }

    /// Whether a thread that is in the kernel can be in a system call, according to its user registers. It is
    /// false if they show that a fault or an interrupt entered the kernel. On x86, `syscall` leaves its
    /// return address in rcx (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2B,
    /// SYSCALL). Processors that deliver events by FRED leave rcx as it was. On these, nearly no call is
    /// recognised. The same is true if rcx was not captured, and is 0.
    pub fn may_be_of_system_call(&self) -> bool {
        let is_known = |register: usize| match self {
            Self::X86_64Partial { known, .. } => known >> register & 1 != 0,
            _ => true,
        };
        match self {
            Self::X86_64(values) | Self::X86_64Partial { values, .. } => {
                !is_known(RCX) || values[RCX] == values[X86_64::INSTRUCTION_POINTER]
            }
            Self::Aarch64(_) | Self::Aarch64Partial { .. } => true,
        }
    }
}
