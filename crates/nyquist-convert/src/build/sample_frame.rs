//! One frame of a sample's stack, before it is interned.

use super::intern::{CodePlace, Mode};
use crate::unwind::truncation::Truncation;

/// One frame of the current sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleFrame {
    /// The root of a stack that could not be walked to its end, for this reason.
    Truncated(Truncation),
    /// Code that cannot be unwound, by its name.
    Named(&'static str),
    /// User or kernel code.
    Code(CodePlace, Mode),
}

impl SampleFrame {
    /// Whether the code at a user's address is unknown so far.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Code(CodePlace::OutsideModules(_), Mode::User | Mode::Completed))
    }
}
