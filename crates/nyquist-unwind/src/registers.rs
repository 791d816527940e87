//! The registers of a thread, as a walk begins with them.

use crate::slow::FullRegisters;
use crate::x86_64::REGISTERS;
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
}

impl Registers {
    /// The instruction pointer.
    pub fn instruction_pointer(&self) -> Avma {
        Avma(self.values()[crate::x86_64::RIP])
    }

    /// The stack pointer.
    pub fn stack_pointer(&self) -> Avma {
        Avma(self.values()[crate::x86_64::RSP])
    }

    fn values(&self) -> &[u64; REGISTERS] {
        let (Self::X86_64(values) | Self::X86_64Partial { values, .. }) = self;
        values
    }

    /// The registers with what is known of them.
    pub(crate) fn full(&self) -> FullRegisters {
        match self {
            Self::X86_64(values) => FullRegisters::all(*values),
            Self::X86_64Partial { values, known } => FullRegisters::some(*values, *known),
        }
    }
}
