//! Errors in object files.

use std::io;

/// The reason why a part of an object file is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The file's first bytes match no known format.
    #[error("not an object file")]
    NotAnObject,
    /// A header contains an impossible value.
    #[error("malformed {part}: {reason}")]
    Malformed {
        /// The invalid header or section.
        part: &'static str,
        /// The problem.
        reason: String,
    },
    /// The file is well-formed but uses something that is not supported.
    #[error("unsupported {0}")]
    Unsupported(String),
    /// The file is valid, but needs more memory than permitted.
    #[error("the file needs {bytes} bytes of memory, and the limit is {most}")]
    TooLarge {
        /// The number of bytes that it needs.
        bytes: u64,
        /// The limit of the file's budget.
        most: u64,
    },
    /// Reading the bytes failed: the file is shorter than its headers claim, or the device failed.
    #[error("cannot read {len} bytes at offset {offset:#x}")]
    Read {
        /// The start of the read, in bytes from the start of the file.
        offset: u64,
        /// The number of bytes to read.
        len: u64,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
}

impl ObjectError {
    pub(crate) fn malformed(part: &'static str, reason: impl Into<String>) -> Self {
        Self::Malformed { part, reason: reason.into() }
    }
}
