//! The reasons why a profile cannot be read.

use std::fmt;
use std::io;

/// The oldest supported version.
pub const OLDEST_VERSION: u32 = 40;
/// The newest supported version.
pub const NEWEST_VERSION: u32 = 70;

/// The reason why a profile could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input could not be read.
    #[error("the profile cannot be read: {0}")]
    Io(#[source] io::Error),
    /// The gzip stream is truncated.
    #[error("the profile is cut off: its gzip data ends too early")]
    TruncatedGzip,
    /// The gzip stream is damaged.
    #[error("the profile is damaged: its gzip data is invalid ({0})")]
    CorruptGzip(#[source] io::Error),
    /// The input is empty.
    #[error("this is not a profile: it is empty")]
    Empty,
    /// The JSON document is truncated.
    #[error("the profile is cut off: its JSON ends too early, in line {line}, column {column}")]
    TruncatedJson {
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
    },
    /// The input is not JSON.
    #[error("this is not a profile: it is not JSON ({0})")]
    NotJson(#[source] serde_json::Error),
    /// The input is JSON but not of the Firefox Profiler.
    #[error("this is not a profile: it is JSON, but not a profile of the Firefox Profiler")]
    NotAProfile,
    /// The profile is a gecko profile of an unknown version.
    #[error(
        "this is a gecko profile of Firefox of version {version}, which is not known: open it in profiler.firefox.com, and save it again"
    )]
    Gecko {
        /// The version of the gecko format.
        version: u32,
    },
    /// The version is newer than the newest known one.
    #[error("the profile has version {version}, but only versions up to {NEWEST_VERSION} are known")]
    TooNew {
        /// The version.
        version: u32,
    },
    /// The version is older than the oldest known one.
    #[error(
        "the profile has version {version}, but only versions from {OLDEST_VERSION} on are known: open it in profiler.firefox.com, and save it again"
    )]
    TooOld {
        /// The version.
        version: u32,
    },
    /// A member of the document has another type than the format gives it.
    #[error("the profile is malformed: {0}")]
    Malformed(#[source] serde_json::Error),
    /// The tables contradict each other.
    #[error("the profile is inconsistent: {0}")]
    Inconsistent(#[from] Inconsistency),
    /// The profile contains a known feature that is not supported.
    #[error("the profile cannot be read: {0}")]
    Unsupported(&'static str),
}

/// The place where a profile's tables contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The table, such as `frameTable`.
    pub table: &'static str,
    /// The column, such as `func`.
    pub column: &'static str,
    /// The row, if the problem is in one.
    pub row: Option<usize>,
    /// The problem.
    pub problem: String,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table, self.column)?;
        if let Some(row) = self.row {
            write!(f, "[{row}]")?;
        }
        write!(f, " {}", self.problem)
    }
}

impl std::error::Error for Inconsistency {}
