//! What can be wrong with an object file.

use std::io;

/// Why a part of an object file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The file's first bytes are those of no format that is known here.
    #[error("not an object file")]
    NotAnObject,
    /// A header states something that cannot be.
    #[error("malformed {part}: {reason}")]
    Malformed {
        /// The header or section at fault.
        part: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is well-formed but uses something that is not supported.
    #[error("unsupported {0}")]
    Unsupported(String),
    /// It is well-formed, but takes more memory than it may.
    #[error("{bytes} bytes are more than the {most} bytes of memory that it may take")]
    TooLarge {
        /// How many bytes it takes.
        bytes: u64,
        /// How many all files together may take.
        most: u64,
    },
    /// Reading the bytes failed: the file is shorter than its headers claim, or the device failed.
    #[error("cannot read {len} bytes at offset {offset:#x}")]
    Read {
        /// Where the read began, in bytes from the start of the file.
        offset: u64,
        /// How many bytes were wanted.
        len: u64,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl ObjectError {
    pub(crate) fn malformed(part: &'static str, reason: impl Into<String>) -> Self {
        Self::Malformed { part, reason: reason.into() }
    }
}
