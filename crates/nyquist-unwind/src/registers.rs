//! The registers of a thread, as a walk begins with them.

use nyquist_object::Avma;

/// The values of a thread's registers at one moment: all that unwind information can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registers {
    /// 64-bit x86, in DWARF's order (System V ABI for AMD64, figure 3.36): rax, rdx, rcx, rbx, rsi, rdi, rbp,
    /// rsp, r8 to r15, then the instruction pointer.
    X86_64([u64; 17]),
}

impl Registers {
    /// The instruction pointer.
    pub fn instruction_pointer(&self) -> Avma {
        let Self::X86_64(values) = self;
        Avma(values[crate::x86_64::RIP])
    }

    /// The stack pointer.
    pub fn stack_pointer(&self) -> Avma {
        let Self::X86_64(values) = self;
        Avma(values[crate::x86_64::RSP])
    }
}
