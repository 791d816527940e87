//! The answer of debug info of any kind for one address.

use crate::SourceFrame;
use nyquist_object::Svma;
use std::ops::Range;

/// The answer of the debug info for one address.
#[derive(Clone, Debug, Default)]
pub(crate) struct DebugAnswer {
    /// As in [`crate::AddressInfo`].
    pub(crate) frames: Vec<SourceFrame>,
    /// Whether the outermost frame's name is complete: made from a linkage name.
    pub(crate) is_complete: bool,
    /// The code of the outermost function around the address.
    pub(crate) function: Option<Range<Svma>>,
}
