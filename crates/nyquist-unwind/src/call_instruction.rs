//! The target of a call instruction.

/// A call, as its instruction encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallInstruction {
    /// To an address at this distance from the return address.
    Direct(i32),
    /// To an address that is in a register or in memory.
    Indirect,
}

impl CallInstruction {
    /// The length of the longest call instruction, in bytes.
    pub const MAX_LEN: usize = 7;
}
