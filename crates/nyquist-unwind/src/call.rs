//! The target of a call instruction.

/// A call, as its instruction encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// To an address at this distance from the return address.
    Direct(i32),
    /// To an address that is in a register or in memory.
    Indirect,
}

impl Call {
    /// The length of the longest call instruction, in bytes.
    pub const LONGEST: usize = 7;
}
