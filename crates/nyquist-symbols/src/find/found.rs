//! What was found of a module, and what was tried for it.

use super::request::OpenFile;
use crate::stated::StatedModule;
use nyquist_object::DebugId;
use nyquist_system::OpenRoot;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What was found of a module, and everything that was tried.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The path under which it was mapped.
    pub module: PathBuf,
    /// The binary that was mapped.
    pub binary: Option<OpenFile>,
    /// A separate file with its debug info.
    pub debug_file: Option<OpenFile>,
    /// The supplementary file to which dwz moved what several debug files share.
    pub supplementary: Option<OpenFile>,
    /// The package (`.dwp`) of the units that were split off.
    pub package: Option<OpenFile>,
    /// Folders in which files that were split off (`.dwo`), or left in object files, are looked for, beside where the
    /// debug info says.
    pub split_folders: Vec<PathBuf>,
    /// As in [`crate::ModuleRequest::roots`].
    pub roots: Vec<OpenRoot>,
    /// Answers that came with the profile, for where no debug info was found.
    pub stated: Option<Arc<StatedModule>>,
    /// Of universal Mach-O files, the id of the one among their files that is meant.
    pub slice: Option<DebugId>,
    /// Every path that was tried, in order.
    pub tried: Vec<Attempt>,
}

/// One path that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What was looked for.
    pub wanted: Wanted,
    /// The path, or the address on a server.
    pub path: PathBuf,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a path was tried for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The binary that was mapped.
    Binary,
    /// A separate debug file.
    DebugFile,
    /// An object file with debug info that was not linked, or the archive of such.
    ObjectFile,
    /// The file that dwz moved shared debug info to.
    Supplementary,
    /// The package of the units that were split off. Units in it are taken by their own ids.
    Package,
    /// Answers that came with the profile.
    Answers,
}

/// What came of a path that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has the right identity and is used.
    Used,
    /// There is no such file, there or on the server.
    Missing,
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It is another file: this is its identity.
    OtherIdentity(String),
    /// Its checksum is not the one in the debug link.
    WrongChecksum,
}

impl fmt::Display for Outcome {
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
