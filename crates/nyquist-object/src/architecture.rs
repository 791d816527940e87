//! The instruction set of a file.

use object::elf;

/// The instruction set of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit ARM.
    Aarch64,
    /// Any other, by the number in the file's format: `e_machine` of ELF, `cputype` of Mach-O.
    Other(u32),
}

impl Architecture {
    /// The architecture that this program is compiled for.
    pub fn own() -> Self {
        if cfg!(target_arch = "x86_64") {
            Self::X86_64
        } else if cfg!(target_arch = "aarch64") {
            Self::Aarch64
        } else if cfg!(target_arch = "x86") {
            Self::X86
        } else {
            Self::Other(0)
        }
    }

    /// The architecture for `e_machine` of ELF, which other formats of Unix systems use too.
    pub fn of_elf_machine(machine: u16) -> Self {
        match elf::Machine(machine) {
            elf::EM_X86_64 => Self::X86_64,
            elf::EM_386 => Self::X86,
            elf::EM_AARCH64 => Self::Aarch64,
            other => Self::Other(other.0.into()),
        }
    }
}
