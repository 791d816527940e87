//! The registers of 64-bit ARM that a walk tracks, and DWARF's numbers of them.

/// DWARF's number of the frame pointer (DWARF for the Arm 64-bit Architecture, section 4.1).
pub(super) const X29: usize = 29;
/// DWARF's number of the link register, which a call sets to the address that it will return to.
pub(super) const X30: usize = 30;
/// DWARF's number of the stack pointer.
pub(super) const SP: usize = 31;
/// DWARF's number of the instruction pointer.
pub(super) const PC: usize = 32;
/// How many registers there are.
pub(super) const REGISTERS: usize = 33;

/// 64-bit ARM. A call leaves the return address in the link register, and functions that make calls save it.
/// Machines with pointer authentication sign it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aarch64;

/// The state that a walk tracks in addition to the three registers of all architectures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkState {
    /// The link register, if it can hold the return address. In a frame that has made a call, the call has
    /// replaced it.
    pub(super) register: Option<u64>,
    /// Whether the stack pointer is known. It is not known after a frame record, whose distance from its
    /// frame's end is not known.
    pub(super) knows_stack_pointer: bool,
}
