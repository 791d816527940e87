//! The registers of a program in perf samples.

use nyquist_object::Architecture;
use nyquist_perf::abi::x86;

/// The architecture of these registers.
pub(crate) const ARCHITECTURE: Architecture = Architecture::X86_64;

/// The number of the stack pointer among them.
pub(crate) const STACK_POINTER: u32 = x86::SP;

/// The requested registers.
pub(crate) const USER_REGISTERS: u64 = x86::ALL_64;

/// The offset of the stack pointer in the kernel's `struct pt_regs`.
pub(crate) const STACK_POINTER_IN_KERNEL: i16 = 152;
