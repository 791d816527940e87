//! What one instruction does to a frame, and where it leads.

/// The frame before an instruction. Places are bytes below the canonical frame address, which is where the caller's
/// stack pointer will be again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Where the stack pointer is; `None` after it was moved by what no instruction says.
    pub sp: Option<i64>,
    /// Where the frame pointer points, if not to a frame of the caller's.
    pub fp: Option<i64>,
    /// Where the caller's frame pointer was stored, while it is not in its register.
    pub saved_fp: Option<i64>,
    /// Where the return address is, while it is not in the link register.
    pub saved_lr: Option<i64>,
    /// The number that was put into the register by which the stack is probed.
    pub number: Option<i64>,
}

/// Where an instruction leads.
pub struct Flow {
    /// Whether to where its operand says.
    pub branches: bool,
    /// Whether to the next one.
    pub goes_on: bool,
}

/// A number as it stands in an instruction.
pub fn number(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches('#');
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * value)
}
