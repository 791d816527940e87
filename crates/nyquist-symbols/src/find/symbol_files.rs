//! The files that were found for a module, and the paths that were tried.

use super::request::OpenFile;
use crate::provided::ProvidedModule;
use nyquist_object::{ByteSource as _, DebugId, ObjectError};
use nyquist_resources::Budget;
use nyquist_system::OpenRoot;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The files that were found for a module, and all paths that were tried.
#[derive(Clone, Debug, Default)]
pub struct SymbolFiles {
    /// The path under which it was mapped.
    pub module: PathBuf,
    /// The binary that was mapped.
    pub binary: Option<OpenFile>,
    /// A separate file with its debug info.
    pub debug_file: Option<OpenFile>,
    /// The supplementary file to which dwz moved data that several debug files share.
    pub supplementary: Option<OpenFile>,
    /// The package (`.dwp`) of the units that were split off.
    pub package: Option<OpenFile>,
    /// Folders to search for split files (`.dwo`) or object files, besides the places that the debug info
    /// states.
    pub split_folders: Vec<PathBuf>,
    /// As in [`crate::ModuleRequest::roots`].
    pub roots: Vec<OpenRoot>,
    /// Answers that came with the profile. They are used if no debug info was found.
    pub provided: Option<Arc<ProvidedModule>>,
    /// The id of the requested file in a universal Mach-O file.
    pub slice: Option<DebugId>,
    /// Every path that was tried, in order.
    pub tried: Vec<Attempt>,
}

impl SymbolFiles {
    /// The budget of the files.
    pub(crate) fn budget(&self) -> Option<&Budget> {
        let mut files = [&self.binary, &self.debug_file].into_iter().flatten();
        files.find_map(|file| file.source.budget())
    }
}

/// One path that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What was looked for.
    pub requested: FileRole,
    /// The path, or the address on a server.
    pub path: PathBuf,
    /// The outcome.
    pub outcome: AttemptOutcome,
}

/// The kind of file that a path was tried for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileRole {
    /// The binary that was mapped.
    Binary,
    /// A separate debug file.
    DebugFile,
    /// An object file with debug info that was not linked, or an archive of such files.
    ObjectFile,
    /// The file that dwz moved shared debug info to.
    Supplementary,
    /// The package of the units that were split off. Its units are identified by their own ids.
    Package,
    /// Answers that came with the profile.
    Answers,
}

/// The outcome of a path that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// It has the right identity and is used.
    Used,
    /// The file does not exist, at this path or on the server.
    Missing,
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It is another file, with this identity.
    OtherIdentity(String),
    /// Its checksum is not the one in the debug link.
    WrongChecksum,
}

impl From<ObjectError> for AttemptOutcome {
    /// The file is damaged, or has another format.
    fn from(error: ObjectError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Used => f.write_str("used"),
            Self::Missing => f.write_str("no such file"),
            Self::Unreadable(reason) => f.write_str(reason),
            Self::OtherIdentity(id) => write!(f, "another file ({id})"),
            Self::WrongChecksum => f.write_str("another file (the debug link's checksum differs)"),
        }
    }
}
