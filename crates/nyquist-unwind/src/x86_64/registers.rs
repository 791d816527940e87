//! The registers of 64-bit x86: DWARF's numbers of them, and where the kernel saves them.

/// DWARF's number of the register that `syscall` leaves its return address in.
pub(crate) const RCX: usize = 2;
/// DWARF's number of the frame pointer (System V ABI for AMD64, figure 3.36).
pub(super) const RBP: usize = 6;
/// DWARF's number of the stack pointer.
pub(super) const RSP: usize = 7;
/// DWARF's number of the return address column; in [`Registers`](crate::Registers) the instruction pointer.
pub(super) const RIP: usize = 16;
/// How many registers there are.
pub(super) const REGISTERS: usize = 17;

/// The offsets at which the kernel saves each register when it delivers a signal, from the stack pointer of
/// the signal frame. The `ucontext` begins there, and `uc_mcontext` is 40 bytes into it
/// (`arch/x86/include/uapi/asm/sigcontext.h`, `struct sigcontext_64`).
pub(super) const SIGNAL_CONTEXT: [u64; REGISTERS] =
    [0x90, 0x88, 0x98, 0x80, 0x70, 0x68, 0x78, 0xa0, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x60, 0xa8];

/// 64-bit x86: the return address is always on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct X86_64;
