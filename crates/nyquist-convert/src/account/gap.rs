//! A time in which samples may be missing.

use crate::event::Timestamp;

/// A time in which samples may be missing.
#[derive(Debug)]
pub(crate) struct Gap {
    /// When it began. `None` if only its end is known.
    pub(crate) start: Option<Timestamp>,
    pub(crate) end: Timestamp,
    pub(crate) cpu: Option<u32>,
    /// How many records were dropped in it. `None` if the kernel did not sample.
    pub(crate) records: Option<u64>,
}
