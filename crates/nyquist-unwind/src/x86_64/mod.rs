//! What is particular to 64-bit x86.

pub(crate) mod instructions;
mod length;

/// DWARF's number of the frame pointer (System V ABI for AMD64, figure 3.36).
pub(crate) const RBP: usize = 6;
/// DWARF's number of the stack pointer.
pub(crate) const RSP: usize = 7;
/// DWARF's number of the return address column; in [`Registers`](crate::Registers) the instruction pointer.
pub(crate) const RIP: usize = 16;
/// How many registers there are.
pub(crate) const REGISTERS: usize = 17;

/// Where the kernel saves each register when it delivers a signal, from the stack pointer of the signal frame
/// on, which is where the `ucontext` begins: `uc_mcontext` is 40 bytes into it
/// (`arch/x86/include/uapi/asm/sigcontext.h`, `struct sigcontext_64`).
pub(crate) const SIGNAL_CONTEXT: [u64; REGISTERS] =
    [0x90, 0x88, 0x98, 0x80, 0x70, 0x68, 0x78, 0xa0, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x60, 0xa8];
