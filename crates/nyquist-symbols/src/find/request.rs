//! The request to find a module, and its open file.

use nyquist_object::{DebugId, FileSource, ModuleId};
use nyquist_system::OpenRoot;
use std::path::PathBuf;
use std::sync::Arc;

/// The description of a module in a recording.
#[derive(Clone, Debug, Default)]
pub struct ModuleRequest {
    /// The path under which it was mapped.
    pub path: PathBuf,
    /// Its identity.
    pub id: Option<ModuleId>,
    /// The id that a saved profile has of the identity. It is only used if `id` is `None`.
    pub debug_id: Option<DebugId>,
    /// The name of its debug info in a saved profile. For a module of Windows it is that of the PDB. Empty if
    /// it is not known.
    pub debug_name: String,
    /// Other paths at which the same file may be available, such as `/proc/PID/root/PATH` of a process in its
    /// own mount namespace. They are tried before `path`.
    pub alternatives: Vec<PathBuf>,
    /// The file itself, if it is held open, with one of these paths. It is not opened again, because that may
    /// not be permitted any more.
    pub held: Option<OpenFile>,
    /// The root folders of the processes that have it mapped, if they differ from this process's. Files that
    /// are named by a path, such as those beside the module, are first looked for there.
    pub roots: Vec<OpenRoot>,
}

/// An open file of the right identity. Its bytes stay readable when the file at the path is replaced.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes.
    pub source: Arc<FileSource>,
}
