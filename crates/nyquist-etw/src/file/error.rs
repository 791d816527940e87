//! Why a file cannot be read.

use super::Compression;
use std::io;
use thiserror::Error;

/// Why a file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[from] io::Error),
    /// The file does not begin with the buffer that describes the trace.
    #[error("the file does not begin with the header of a trace")]
    NoHeader,
    /// The buffers are compressed in a way that is not supported.
    #[error("its buffers are compressed ({0}), which cannot be read")]
    Compressed(Compression),
    /// Merging the events by time would need too much memory.
    #[error("its {streams} sequences of buffers of {buffer} bytes would need too much memory")]
    TooManyStreams {
        /// The number of sequences, one for each CPU and session.
        streams: usize,
        /// The size of a buffer.
        buffer: usize,
    },
}
