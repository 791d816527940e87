//! What reads the files of a folder: markers, or allocations.

use std::ffi::{OsStr, OsString};
use std::fs::File;

/// The most rings, and the most text files, that are read. Each thread with markers has one, and those of
/// ended threads are reused.
pub(in crate::linux) const MAX_FILES: usize = 1 << 14;

/// What happened to a ring that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linux) enum RingState {
    /// It is read, or will never be read.
    Settled,
    /// It must be checked again.
    NotYet,
}

/// What reads the files of a folder.
pub(in crate::linux) trait FolderReader {
    /// The extension of the files.
    const EXTENSION: &str;

    /// Reads a file with this name from now on, if it is one.
    fn take(&mut self, file: File, name: &OsStr) -> RingState;

    /// Counts a file that is not read.
    fn refuse(&mut self);

    /// The names of the files that were read to their end since the last call, and that nobody writes any more.
    fn over(&mut self) -> Vec<OsString> {
        Vec::new()
    }
}
