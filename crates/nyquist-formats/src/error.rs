//! Why a file could not be read, and what of it was left out.

use std::fmt;
use std::io;

use nyquist_profile::Profile;

/// A profile that was read from another profiler's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The profile. Its times begin at 0 with the first sample or marker.
    pub profile: Profile,
    /// What the reader of the profile should know of it: each is a sentence for the user.
    pub notes: Vec<Note>,
}

/// Something that was not taken over from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The file ends early or is damaged there; what comes before was read.
    Cut {
        /// Where, as `line 17`.
        place: String,
    },
    /// So many things could not be taken over.
    LeftOut {
        /// How many.
        count: u64,
        /// What they are, and why, as `samples of the event branch-misses`.
        what: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { place } => {
                write!(f, "the file is cut off or damaged at {place}: what comes before was read")
            }
            Self::LeftOut { count, what } => write!(f, "left out: {count} {what}"),
        }
    }
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The gzip stream is damaged at its beginning, or too large when decompressed.
    #[error("its gzip data cannot be decompressed")]
    Gzip(#[source] io::Error),
    /// The zstd stream is damaged at its beginning, or too large when decompressed.
    #[error("its zstd data cannot be decompressed")]
    Zstd(#[source] io::Error),
    /// The file is no JSON, or its members have other types than the format gives them.
    #[error("it is not {format}")]
    Json {
        /// The format, as `a speedscope profile`.
        format: &'static str,
        /// What is wrong with it.
        #[source]
        error: serde_json::Error,
    },
    /// The file is not of this format, or contradicts itself.
    #[error("it is not {format}: {problem}")]
    Malformed {
        /// The format, as `a speedscope profile`.
        format: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is of this format, but there is nothing in it that a CPU profile could show.
    #[error("{0}")]
    Unsupported(String),
}
