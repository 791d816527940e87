//! What samples of perf have of a program's registers.

use nyquist_object::Architecture;
use nyquist_perf::abi::x86;

/// The architecture whose registers they are.
pub(crate) const ARCHITECTURE: Architecture = Architecture::X86_64;

/// The number of the stack pointer among them.
pub(crate) const STACK_POINTER: u32 = x86::SP;

/// The registers that are asked for.
pub(crate) const USER_REGISTERS: u64 = x86::ALL_64;
