//! Why a file could not be read, and which parts were left out.

use std::fmt;
use std::io;

use nyquist_profile::Profile;

/// A profile that was read from another profiler's format.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedProfile {
    /// The profile. Its times begin at 0 with the first sample or marker.
    pub profile: Profile,
    /// Notes about the profile, each a sentence for the user.
    pub notes: Vec<Note>,
}

/// Something in a file that is not in the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The file ends early or is damaged at this place. The part before was read.
    Cut {
        /// The place, such as `line 17`.
        place: String,
    },
    /// A number of things were left out.
    LeftOut {
        /// How many.
        count: u64,
        /// What they are, and why, such as `samples of the event branch-misses`.
        what: String,
    },
    /// There are more threads than rows: all further ones share one row.
    SharedRow {
        /// The threads that have rows of their own.
        most: usize,
    },
    /// The value that such files show by default is 0 everywhere, and another one was read.
    Instead {
        /// The value that was read.
        shown: String,
        /// The default.
        empty: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { place } => {
                write!(f, "the file is cut off or damaged at {place}: what comes before was read")
            }
            Self::SharedRow { most } => {
                write!(f, "the samples of all threads beyond the first {most} are in one row")
            }
            Self::LeftOut { count, what } => write!(f, "left out: {count} {what}"),
            Self::Instead { shown, empty } => {
                write!(f, "all values of {empty} are 0: {shown} is shown instead")
            }
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
    /// The system does not read it.
    #[error("the file cannot be read to its end")]
    Read(#[source] io::Error),
    /// The file is no JSON, or its members have other types than the format gives them.
    #[error("the file is not {format}")]
    Json {
        /// The format, as `a speedscope profile`.
        format: &'static str,
        /// What is wrong with it.
        #[source]
        error: serde_json::Error,
    },
    /// The file is not of this format, or contradicts itself.
    #[error("the file is not {format}: {problem}")]
    Malformed {
        /// The format, as `a speedscope profile`.
        format: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is of this format, but has no data that a CPU profile could show.
    #[error("{0}")]
    Unsupported(String),
}
