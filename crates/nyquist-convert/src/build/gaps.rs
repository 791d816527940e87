//! The gaps of a profile that have no marker yet, and the row that has their markers.

use crate::account::gap::Gap;
use nyquist_profile::ThreadIndex;

/// The gaps of a profile that have no marker yet, and the row that has their markers.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Gaps that have no row yet, because nothing is in the profile.
    pub(super) unplaced: Vec<Gap>,
    /// The row of gaps that are not on the rows of CPUs.
    pub(super) row: Option<ThreadIndex>,
}
