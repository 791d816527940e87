//! The interface of a caller that can fetch files from other machines. This crate itself does not use the
//! network.

use crate::AttemptOutcome;
use nyquist_object::{BuildId, DebugId};
use std::fmt;
use std::path::{Path, PathBuf};

/// Fetches files that are not in the usual places of this machine, for example from servers. A
/// [`crate::Finder`] uses it last, from several threads at the same time.
pub trait Fetch: fmt::Debug + Send + Sync {
    /// Fetches a file. `check` reads a fetched file and returns whether it is the requested one. Any other file
    /// must neither be returned nor stored.
    fn fetch(&self, file: &RemoteFile<'_>, check: &dyn Fn(&Path) -> AttemptOutcome) -> FetchResult;
}

/// The description of a file to be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteFile<'a> {
    /// The ELF file that was mapped.
    Binary(&'a BuildId),
    /// The ELF file with its debug info.
    DebugFile(&'a BuildId),
    /// A source file, by its absolute path in the debug info of a file.
    Source {
        /// The id of the file whose debug info names it.
        build_id: &'a BuildId,
        /// The path.
        path: &'a str,
    },
    /// The debug info of a Windows program or library.
    Pdb {
        /// The name that the program gives it, without folders.
        name: &'a str,
        /// Its GUID and age.
        id: DebugId,
    },
    /// A Windows program or library.
    Pe {
        /// Its name, without folders.
        name: &'a str,
        /// The time stamp and size of image in its header, as symbol servers write them: `5F9A3B2C1a000`.
        code_id: &'a str,
    },
    /// A Breakpad symbol file.
    Breakpad {
        /// The name of the file with the debug info that it was made of.
        name: &'a str,
        /// The id of that file.
        id: DebugId,
    },
}

/// The result of fetching a file.
#[derive(Clone, Debug, Default)]
pub struct FetchResult {
    /// Where it is now.
    pub path: Option<PathBuf>,
    /// The paths and addresses on servers that were tried, in order.
    pub tried: Vec<(PathBuf, AttemptOutcome)>,
}
