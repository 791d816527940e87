//! Where mapped files are looked for. Files of living processes are opened through the processes. Files of a
//! recording that is read later are found by their build ids and paths on this machine.

use crate::event::{MappedFile, Mapping, Pid};
use crate::files::identity::has_identity;
use crate::files::opened::{FileDenied, open_regular};
use crate::files::view::MountView;
use crate::jit::aux_files::AuxFiles;
use crate::modules::provided_symbols::ProvidedSymbols;
use crate::targets::Targets;
use crate::targets::access::DumpAccess;
use nyquist_object::elf::build_id_in_notes;
use nyquist_object::{BuildId, FileSource, ModuleId};
use nyquist_resources::Budget;
use nyquist_symbols::{Finder, KERNEL_LIB, ModuleRequest};
use nyquist_system::HeldFile;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Where mapped files are looked for.
#[derive(Debug)]
pub(crate) enum Files {
    /// In the processes that map them now. What is read of these files is charged to the budget.
    Live(Targets, Budget),
    /// On this machine, after the recording.
    Recorded(Box<RecordedFiles>),
}

/// An open file of a mapping.
#[derive(Debug)]
pub(crate) struct OpenedSource {
    pub(crate) source: Arc<FileSource>,
    /// Whether we see it at its path, too.
    pub(crate) is_here: bool,
}

impl Default for Files {
    fn default() -> Self {
        Self::Live(Targets::default(), Budget::default())
    }
}

/// How to find the files of a recording that is read later, here or on another machine.
#[derive(Debug)]
pub struct RecordedFiles {
    /// Finds binaries by their build ids.
    pub finder: Finder,
    /// The build ids of files by their paths, for mappings that do not have them. The path of the kernel is
    /// `[kernel.kallsyms]`.
    pub build_ids: FxHashMap<String, BuildId>,
    /// The functions of files that are not on this machine, by their paths, if the recording states them.
    pub symbols: FxHashMap<String, ProvidedSymbols>,
    /// Finds the files that programs wrote while they ran. If the recording was made on this machine, a
    /// binary without a known build id is opened at its path, if its known properties match.
    pub aux: AuxFiles,
}

impl Files {
    /// The build id of the file of a mapping, if it is known.
    pub(crate) fn id_of(&self, mapping: &Mapping) -> Option<BuildId> {
        match (&mapping.identity, self) {
            (MappedFile::BuildId(id), _) => Some(id.clone()),
            (_, Self::Recorded(files)) => files.provided_id(&mapping.path),
            (_, Self::Live(..)) => None,
        }
    }

    /// The view of the living process of a mapping. `None` if it has ended, or the recording is read later: then it is
    /// our own view.
    pub(crate) fn process_view(&self, mapping: &Mapping) -> Option<MountView> {
        match self {
            Self::Live(targets, _) => targets.access().view(mapping.pid?),
            Self::Recorded(_) => None,
        }
    }

    /// Opens the file of a mapping, whose process has this view. A file that is not the mapped one is not
    /// used.
    pub(crate) fn open(
        &self,
        mapping: &Mapping,
        id: Option<&BuildId>,
        mounts: MountView,
    ) -> Option<OpenedSource> {
        match self {
            Self::Live(targets, memory) => {
                // On Windows, the kernel's files are opened by their paths like those of processes.
                let is_of_windows = matches!(mapping.identity, MappedFile::Provided(_));
                let pid = mapping.pid.or(Some(Pid(0)).filter(|_| is_of_windows))?;
                let found = targets.access().open_mapping(mapping, pid, mounts)?;
                let source = Arc::new(FileSource::within(found.file, memory.clone()));
                Some(OpenedSource { source, is_here: found.is_here })
            }
            Self::Recorded(files) => Some(OpenedSource { source: files.open(mapping, id)?, is_here: true }),
        }
    }

    /// The functions of the file at a path, if the recording states them.
    pub(crate) fn provided_symbols(&self, path: &str) -> Option<&ProvidedSymbols> {
        match self {
            Self::Recorded(files) => files.symbols.get(path),
            Self::Live(..) => None,
        }
    }

    /// Whether the recording states the functions of the file at a path.
    pub(crate) fn states(&self, path: &str) -> bool {
        self.provided_symbols(path).is_some()
    }

    /// Opens a jitdump of a process of this user. Its only identity is its inode.
    pub(crate) fn open_jitdump(&self, mapping: &Mapping, how: DumpAccess) -> Result<HeldFile, FileDenied> {
        match self {
            Self::Live(targets, _) => {
                targets.access().open_dump(mapping, mapping.pid.ok_or(FileDenied::Absent)?, how)
            }
            Self::Recorded(files) => Ok(files.aux.open_mapped(mapping)?.file.into()),
        }
    }

    /// Whether a process's number identifies it. On another machine, or much later, it may be the number of
    /// another process.
    pub(crate) fn knows_processes(&self) -> bool {
        match self {
            Self::Live(..) => true,
            Self::Recorded(files) => files.aux.made_here || !files.aux.folders.is_empty(),
        }
    }

    /// Whether the kernel with this build id, if it is known, is the running kernel.
    pub(crate) fn is_running_kernel(&self, id: Option<&BuildId>) -> bool {
        match (self, id) {
            (Self::Live(..), _) => true,
            // `id` may be that of a kernel module, so the kernel's id is used.
            (Self::Recorded(files), _) if files.provided_id(KERNEL_LIB).is_some() => {
                files.provided_id(KERNEL_LIB) == running_kernel_id()
            }
            (Self::Recorded(_), Some(id)) if running_kernel_id().as_ref() == Some(id) => true,
            (Self::Recorded(files), _) => files.aux.made_here,
        }
    }
}

fn running_kernel_id() -> Option<BuildId> {
    let notes = std::fs::read("/sys/kernel/notes").ok()?;
    build_id_in_notes(&notes, cfg!(target_endian = "little"))
}

impl RecordedFiles {
    fn provided_id(&self, path: &str) -> Option<BuildId> {
        self.build_ids.get(path).cloned()
    }

    fn open(&self, mapping: &Mapping, id: Option<&BuildId>) -> Option<Arc<FileSource>> {
        let path = mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path);
        if let Some(id) = id {
            let id = Some(ModuleId::BuildId(id.clone()));
            let request = ModuleRequest { path: PathBuf::from(path), id, ..ModuleRequest::default() };
            return self.finder.find_binary(&request).map(|file| file.source);
        }
        Some(Arc::new(FileSource::within(self.open_here(mapping)?, self.finder.budget().cloned())))
    }

    /// Opens the file at the path of a mapping, if the recording was made on this machine.
    fn open_here(&self, mapping: &Mapping) -> Option<File> {
        if !self.aux.made_here {
            return None;
        }
        let path = mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path);
        open_regular(path.as_ref()).ok().filter(|file| has_identity(file, &mapping.identity))
    }
}
