//! What can be wrong with a record.

use thiserror::Error;

/// Why a record could not be parsed. The record is skipped by its header's size, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The bytes end before the record does.
    #[error("the record ends after {have} bytes, in the middle of its {field}")]
    Truncated {
        /// The field that is not whole.
        field: &'static str,
        /// The number of bytes that there were.
        have: usize,
    },
    /// The header's size is smaller than the header, or larger than the bytes that there are.
    #[error("the record's header says {size} bytes where there are {have}")]
    Size {
        /// What the header says.
        size: u16,
        /// The number of bytes that there were.
        have: usize,
    },
    /// A count or a length reaches beyond the record.
    #[error("the record's {field} counts {count}, more than fits into it")]
    Count {
        /// The field that is counted.
        field: &'static str,
        /// What it counts.
        count: u64,
    },
}
