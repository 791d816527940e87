//! The registers of a thread, as a source of samples reports them.

/// The registers that unwind information can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registers {
    /// 64-bit x86, in DWARF's order (System V ABI for AMD64, figure 3.36): rax, rdx, rcx, rbx, rsi, rdi, rbp,
    /// rsp, r8 to r15, then the instruction pointer.
    X86_64([u64; 17]),
    /// The same registers, of which some are not known.
    X86_64Partial {
        /// The values in the same order. The value of an unknown register has no meaning.
        values: [u64; 17],
        /// A bit for each register that is known, the first one's the lowest. The stack pointer and the
        /// instruction pointer always are.
        known: u32,
    },
    /// A 32-bit program's registers, which are not unwound: the instruction pointer.
    Bits32 {
        /// The instruction pointer.
        ip: u32,
    },
    /// 64-bit ARM: x0 to x30, the stack pointer, then the instruction pointer. Boxed, because it is twice as
    /// large as the others.
    Aarch64(Box<[u64; 33]>),
    /// The same registers, of which some are not known.
    Aarch64Partial {
        /// The values in the same order. The value of an unknown register has no meaning.
        values: Box<[u64; 33]>,
        /// A bit for each register that is known, the first one's the lowest. The stack pointer and the
        /// instruction pointer always are.
        known: u64,
    },
}

impl Registers {
    /// The first argument of the system call that a thread is in, if its register is known: in rdi, or in x0.
    pub(crate) fn call_argument(&self) -> Option<u64> {
        const RDI: usize = 5;
        const X0: usize = 0;
        match self {
            Self::X86_64(values) => Some(values[RDI]),
            Self::X86_64Partial { values, known } => (known >> RDI & 1 == 1).then_some(values[RDI]),
            Self::Aarch64(values) => Some(values[X0]),
            Self::Aarch64Partial { values, known } => (known >> X0 & 1 == 1).then_some(values[X0]),
            Self::Bits32 { .. } => None,
        }
    }
}
