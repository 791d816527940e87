//! Errors in a record.

use thiserror::Error;

/// The reason why a record could not be parsed. It is skipped by its header's size, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record is truncated.
    #[error("the record ends after {have} bytes, in the middle of its {field}")]
    Truncated {
        /// The incomplete field.
        field: &'static str,
        /// The number of available bytes.
        have: usize,
    },
    /// The header's size is smaller than the header, or larger than the available bytes.
    #[error("the record's header says {size} bytes where there are {have}")]
    Size {
        /// The size in the header.
        size: u16,
        /// The number of available bytes.
        have: usize,
    },
    /// A count or a length reaches beyond the record.
    #[error("the record's {field} states {count} entries, but the record has room for fewer")]
    Count {
        /// The counted field.
        field: &'static str,
        /// The count.
        count: u64,
    },
}
