//! What is asked: a module, and the file that is held open of it.

use nyquist_object::{DebugId, FileSource, ModuleId};
use nyquist_system::OpenRoot;
use std::path::PathBuf;
use std::sync::Arc;

/// What a recording knows of a module.
#[derive(Clone, Debug, Default)]
pub struct ModuleRequest {
    /// The path under which it was mapped.
    pub path: PathBuf,
    /// Its identity.
    pub id: Option<ModuleId>,
    /// The id that is left of the identity in a saved profile. Only looked at where `id` is `None`.
    pub debug_id: Option<DebugId>,
    /// The name of its debug info, as a saved profile has it: of a module of Windows the PDB's. Empty where it is not
    /// known.
    pub debug_name: String,
    /// Other paths under which the same file may be had, such as `/proc/PID/root/PATH` of a process in a mount
    /// namespace of its own. They are tried before `path`.
    pub alternatives: Vec<PathBuf>,
    /// The file itself, where it is held open, by one of these paths: it is not opened again, which may not be permitted any more.
    pub held: Option<OpenFile>,
    /// The root folders of the processes that have it mapped, if they differ from this process's. Files that
    /// are named by a path, such as those beside the module, are looked for there first.
    pub roots: Vec<OpenRoot>,
}

/// An open file of the right identity. Holding it keeps its bytes reachable when the path is replaced.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes.
    pub source: Arc<FileSource>,
}
