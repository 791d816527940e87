//! What the instruction of a call says.

/// A call, as its instruction says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// To an address that is this far from the return address.
    Direct(i32),
    /// To an address that is in a register or in memory.
    Indirect,
}

impl Call {
    /// The most bytes that an instruction takes that calls.
    pub const LONGEST: usize = 7;
}
