//! A ring that is drained, and the kind of its records.

use crate::linux::sys::ring::Ring;
use crate::pool::Need;

/// A ring, and the events whose records wake its reader, by their indices in
/// [`OpenedEvents`](super::events::OpenedEvents).
#[derive(Debug)]
pub(crate) struct RingSource {
    pub(crate) ring: Ring,
    /// The kind of its records; a ring shared by both kinds is one for the sideband.
    pub(crate) need: Need,
    pub(crate) wakers: Vec<usize>,
}
