//! A ring that is drained, and what is known of its records.

use crate::linux::pool::Need;
use crate::linux::sys::ring::Ring;

/// A ring, and the events that its records wake, by their places in [`Events`](super::events::Events).
#[derive(Debug)]
pub(crate) struct RingSource {
    pub(crate) ring: Ring,
    /// What its records are; a ring that both share is one for the sideband.
    pub(crate) need: Need,
    pub(crate) wakers: Vec<usize>,
}
