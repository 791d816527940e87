//! One frame of a sample's stack, before it is interned.

use super::intern::{CodePlace, Mode};
use crate::unwind::truncation::Truncation;

/// One frame of the sample at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The root of a stack that could not be finished, for this reason.
    Truncated(Truncation),
    /// Code that cannot be unwound, by its name.
    Named(&'static str),
    /// Code, a user's or the kernel's.
    Code(CodePlace, Mode),
}

impl Place {
    /// Whether the code at a user's address is unknown so far.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Code(CodePlace::Elsewhere(_), Mode::User | Mode::Completed))
    }
}
