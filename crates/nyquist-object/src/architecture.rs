//! The instruction set of a file.

/// The instruction set of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit ARM.
    Aarch64,
    /// Any other, by the number that the file's format gives it: `e_machine` of ELF, `cputype` of Mach-O.
    Other(u32),
}
