//! A time in which samples may be missing.

use crate::event::Timestamp;

/// A time in which samples may be missing.
#[derive(Debug)]
pub(crate) struct Gap {
    /// When it began. `None` if only its end is known.
    pub(crate) start: Option<Timestamp>,
    pub(crate) end: Timestamp,
    pub(crate) cpu: Option<u32>,
    pub(crate) cause: GapCause,
}

/// Why samples may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapCause {
    /// So many records were dropped.
    Lost(u64),
    /// The kernel did not sample.
    Throttled,
    /// The user had paused the recording.
    Paused,
}
