//! Why a file cannot be read: what was tried, on which file, and the cause.

use nyquist_convert::{etw, perf_data};
use nyquist_formats::ReadError;
use nyquist_profile::firefox;
use std::io;
use std::path::PathBuf;

/// Why a file cannot be read. Its text says what was tried and on which file; the cause is its source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// By its name it is an archive, such as one of `perf archive`.
    #[error("cannot load {}: it is an archive, and no profile", .path.display())]
    Archive {
        /// The file.
        path: PathBuf,
    },
    /// The system does not open or read it.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing of it can be decompressed, or too much is in it.
    #[error("cannot unpack {}", .path.display())]
    Unpack {
        /// The file.
        path: PathBuf,
        /// The error of the decompressor, or of the disk.
        source: io::Error,
    },
    /// Its format is not known.
    #[error("cannot load {}: {}", .path.display(), .content)]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What it seems to be instead.
        content: UnknownContent,
    },
    /// It is no recording of perf, or has none in it.
    #[error("cannot load {}", .path.display())]
    Recording {
        /// The file, or the folder of `perf record --threads`.
        path: PathBuf,
        /// What is wrong with it.
        source: nyquist_perf::file::FileError,
    },
    /// The chosen events of a recording of perf make no profile.
    #[error(transparent)]
    Events(#[from] perf_data::ImportError),
    /// It is no trace of Windows that can be converted.
    #[error("cannot load {}", .path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: etw::EtwError,
    },
    /// It is no profile of the Firefox Profiler.
    #[error("cannot load {}", .path.display())]
    Firefox {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: firefox::ReadError,
    },
    /// It is no profile of the tool that its first bytes are of.
    #[error("cannot load {}", .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReadError,
    },
    /// A saved profile does not have the chosen event.
    #[error("{} has no event {event}", .path.display())]
    NoSuchEvent {
        /// The file.
        path: PathBuf,
        /// The chosen event.
        event: String,
        /// The events that it has. They may be none.
        known: Vec<String>,
    },
    /// No thread can be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The profile cannot be written in the format of the Firefox Profiler.
    #[error("cannot convert the profile")]
    Document(#[source] io::Error),
}

/// What a file of an unknown format seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownContent {
    /// Nothing: it is empty.
    Nothing,
    /// A program or a script.
    Program,
    /// Anything else.
    Other,
}

impl UnknownContent {
    /// What a file with these first bytes seems to be.
    pub(crate) fn of(start: &[u8]) -> Self {
        if start.is_empty() {
            return Self::Nothing;
        }
        let is_program = start.starts_with(b"\x7fELF") || start.starts_with(b"#!");
        if is_program { Self::Program } else { Self::Other }
    }
}

impl std::fmt::Display for UnknownContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "this is not a profile: the file is empty",
            Self::Program | Self::Other => "this is not a profile of any format that is known",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_distinguished_from_other_files() {
        let check = |start: &[u8], expected| assert_eq!(UnknownContent::of(start), expected, "{start:?}");
        check(b"", UnknownContent::Nothing);
        check(b"hello", UnknownContent::Other);
        check(b"\x7fELF\x02", UnknownContent::Program);
        check(b"#!/bin/sh", UnknownContent::Program);
    }
}
