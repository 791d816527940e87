//! The results of a walk: the addresses of frames, and why it ended.

use nyquist_object::Avma;
use std::fmt;

/// The address of one frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameAddress {
    /// The address itself is in the function. These are the innermost frame, frames that a signal
    /// interrupted, and the frame that a signal handler returns to.
    InstructionPointer(Avma),
    /// The address that a call will return to.
    ReturnAddress(Avma),
}

impl FrameAddress {
    /// The address itself.
    pub fn address(self) -> Avma {
        match self {
            Self::InstructionPointer(address) | Self::ReturnAddress(address) => address,
        }
    }

    /// The address by which to look up the function and the line. For a return address it is one byte lower,
    /// because the call can be the last instruction of its function.
    pub fn lookup_address(self) -> Avma {
        match self {
            Self::InstructionPointer(address) => address,
            Self::ReturnAddress(address) => Avma(address.0.wrapping_sub(1)),
        }
    }
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WalkEnd {
    /// At the outermost frame: the stack is complete.
    Root,
    /// The same, but the outermost frame's address is the start of its function, to which no call returns.
    Bottom,
    /// Before the outermost frame.
    Truncated(Reason),
}

/// Why a walk could not reach the outermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The caller's frame is above the available stack memory.
    StackCopyEnded,
    /// A signal handler on its own stack has interrupted code whose stack was not copied.
    OtherStack,
    /// The unwind information refers to memory that is not part of the available stack.
    MemoryUnreadable,
    /// No unwind information covers the code, and the frame pointer is not plausible.
    NoUnwindInfo,
    /// The return address is in no mapped code.
    NotCode,
    /// The unwind information needs a register whose value is not known.
    RegisterUnknown,
    /// A DWARF expression could not be evaluated.
    ExpressionFailed,
    /// The unwind information of the frame is damaged.
    DamagedUnwindInfo,
    /// The caller's frame would not be further up the stack.
    NotAdvancing,
    /// The stack has more frames than a walk yields.
    TooManyFrames,
}

impl Reason {
    /// The reason in a few lower-case words, to be shown to a user.
    pub fn text(self) -> &'static str {
        match self {
            Self::StackCopyEnded => "stack copy ended",
            Self::OtherStack => "interrupted code is on another stack",
            Self::MemoryUnreadable => "memory not readable",
            Self::NoUnwindInfo => "no unwind information",
            Self::NotCode => "return address not in code",
            Self::RegisterUnknown => "register unknown",
            Self::ExpressionFailed => "expression failed",
            Self::DamagedUnwindInfo => "damaged unwind information",
            Self::NotAdvancing => "stack not advancing",
            Self::TooManyFrames => "too many frames",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_is_looked_up_a_byte_earlier() {
        assert_eq!(FrameAddress::InstructionPointer(Avma(0x10)).lookup_address(), Avma(0x10));
        assert_eq!(FrameAddress::ReturnAddress(Avma(0x10)).lookup_address(), Avma(0xf));
    }
}
