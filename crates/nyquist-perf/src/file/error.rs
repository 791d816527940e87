//! Errors in a whole recording, and the position where a damaged one stops.

use std::{fmt, io};
use thiserror::Error;

/// The reason why a recording cannot be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The first bytes are not those of a perf.data file.
    #[error("not a perf.data file")]
    NotPerfData,
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// A perf.data file in a stream, which cannot be read because the description of its records is after
    /// them.
    #[error("a perf.data file cannot be read from a pipe; give its name, or pipe `perf record -o -`")]
    FileInStream,
    /// The file is truncated within its header.
    #[error("the file ends after {have} bytes, within its header")]
    CutHeader {
        /// The number of available bytes.
        have: u64,
    },
    /// The file describes no event, so its records cannot be parsed.
    #[error("the file describes no event")]
    NoEvents,
    /// A folder without the files of a recording.
    #[error("the folder holds no recording: there is no file `data` in it")]
    NoData,
    /// Reading failed.
    #[error("cannot read {what}")]
    Read {
        /// The part that was being read.
        what: &'static str,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
}

/// The position where a recording stops, and the reason. Everything before it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Bytes from the start of the file or stream.
    pub offset: u64,
    /// The file, for a recording in a folder; `None` for a single file.
    pub file: Option<String>,
    /// The kind of damage.
    pub kind: DamageKind,
    /// The number of bytes of records that were left out; `None` if it is not known.
    pub left_out: Option<u64>,
}

/// The kind of damage at a position of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// It ends within a record.
    Cut,
    /// A record's size is smaller than its header: there are only zeros, or garbage.
    RecordSize(u16),
    /// There are only zeros.
    Zeros,
    /// Reading failed.
    Unreadable(String),
    /// Compressed records cannot be decompressed.
    Compression(String),
    /// The header does not state where records end, because the recorder was killed.
    Unfinished,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match &self.kind {
            DamageKind::Cut => write!(f, "the recording is cut off at byte {at}")?,
            DamageKind::RecordSize(size) => {
                write!(
                    f,
                    "the recording is damaged at byte {at}: a record says that it is {size} bytes long"
                )?;
            }
            DamageKind::Zeros => write!(f, "the recording is damaged at byte {at}: only zeros follow")?,
            DamageKind::Unreadable(reason) => {
                write!(f, "the recording cannot be read at byte {at}: {reason}")?;
            }
            DamageKind::Compression(reason) => {
                write!(f, "the recording's compressed records are damaged at byte {at}: {reason}")?;
            }
            DamageKind::Unfinished => {
                write!(f, "the recording was not finished: its header does not say where records end")?;
            }
        }
        if let Some(file) = &self.file {
            write!(f, " of its file {file}")?;
        }
        match self.left_out {
            Some(0) => Ok(()),
            Some(bytes) => write!(f, "; {bytes} bytes of records are left out"),
            None => write!(f, "; what follows is left out"),
        }
    }
}
