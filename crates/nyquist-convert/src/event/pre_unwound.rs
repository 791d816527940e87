//! A stack that was walked before its sample's turn, and the outcome of the walk.

use super::registers::Registers;
use bytes::Bytes;
use nyquist_object::Avma;
use nyquist_perf::file::{Place, PlacedFiles};
use nyquist_unwind::{self as unwind, FrameAddress, WalkEnd};
use std::borrow::Cow;

/// A stack that was walked ahead of its turn, with the mappings that were known then. It has the data to walk
/// the stack again, if more is known at its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PreUnwound {
    /// Innermost first.
    pub(crate) frames: Vec<FrameAddress>,
    pub(crate) walked: Walked,
    /// The outermost word that the walk has read.
    pub(crate) outermost: Avma,
    /// The mappings that were known.
    pub(crate) code: AddressSpaceHash,
    pub(crate) registers: Box<Registers>,
    pub(crate) copy: KeptCopy,
    /// The size of the copy in bytes.
    pub(crate) copied: usize,
    /// Whether the copy ends because its limit was reached.
    pub(crate) limited: bool,
}

/// The copy of a stack that was walked already.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeptCopy {
    /// It is still in memory.
    Memory(Bytes),
    /// It can be read again from a file.
    File(Place),
}

impl PreUnwound {
    /// A copy that was not walked. If the process is becoming another program there is no stack; otherwise it
    /// is walked later.
    pub(crate) fn pending(
        code: AddressSpaceHash,
        registers: Box<Registers>,
        (stack, limited): (Bytes, bool),
    ) -> Self {
        Self {
            frames: Vec::new(),
            walked: Walked::BetweenPrograms,
            outermost: Avma(0),
            code,
            registers,
            copied: stack.len(),
            copy: KeptCopy::Memory(stack),
            limited,
        }
    }

    /// The copy. It may be read from these files again, and then has as much as the file still has.
    pub(crate) fn copy(&self, files: &PlacedFiles) -> Cow<'_, [u8]> {
        match &self.copy {
            KeptCopy::Memory(bytes) => Cow::Borrowed(bytes),
            KeptCopy::File(place) => {
                let mut bytes = vec![0; self.copied];
                let read = files.read(*place, &mut bytes);
                bytes.truncate(read);
                Cow::Owned(bytes)
            }
        }
    }
}

/// The outcome of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// There is no stack: the kernel is replacing the process's program.
    BetweenPrograms,
    /// The program is one of 32 bits, which are not walked.
    Code32,
    /// Where the walk ended.
    To(WalkEnd),
}

impl Walked {
    /// Whether it ended because the copy did.
    pub(crate) fn ended_with_copy(self) -> bool {
        self == Self::To(WalkEnd::Truncated(unwind::Reason::StackCopyEnded))
    }
}

/// The mappings of a process at a time, as a number. With the same number, walks of the same stack have the
/// same result. It does not include code that a jitdump describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressSpaceHash(pub(crate) u64);
