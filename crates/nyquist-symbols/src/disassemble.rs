//! Machine code as text.

use nyquist_object::RelativeAddress;

/// A piece of machine code as text, in Intel syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembly {
    /// Where it begins.
    pub start: RelativeAddress,
    /// The number of bytes that it covers.
    pub size: u32,
    /// The instruction set, as the symbol server API spells it: `x86_64`, `i686`.
    pub architecture: &'static str,
    /// The instructions in order.
    pub instructions: Vec<Instruction>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The distance in bytes from the start of the disassembly.
    pub offset: u32,
    /// The text, such as `push rbp`.
    pub text: String,
}

/// Why there is no disassembly.
#[derive(Debug, thiserror::Error)]
pub enum DisassemblyError {
    /// The module's binary was not found: debug files hold no code.
    #[error("the binary was not found")]
    NoBinary,
    /// No code of the binary is at this address.
    #[error("no code at {0}")]
    NoCode(RelativeAddress),
    /// The instruction set is not known here.
    #[error("cannot disassemble {0}")]
    Architecture(String),
    /// The bytes could not be read.
    #[error("cannot read the code")]
    Read(#[from] nyquist_object::ObjectError),
}
