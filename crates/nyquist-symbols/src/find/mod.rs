//! Finding a module's binary and its debug files.
//!
//! A file is used only when its identity is the one that was recorded; the first that is right ends the search.
//! Where they may be, and in which order they are looked at, is told by `linux.rs`, `windows.rs` and `macos.rs`, each
//! for the files of its system.

mod linux;
mod macos;
mod windows;

use crate::{
    AnswerCache, Fetch, Fetched, KernelFiles, ModuleSymbols, RemoteFile, StatedAnswers, StatedModule,
    SymbolsError,
};
use nyquist_object::{BuildId, DebugId, FileSource, ModuleId, OpenRoot};
use std::collections::HashSet;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
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
    /// The root folders that the processes see which have it mapped, where they are others than this process's: what is told of by a
    /// path, such as what lies beside the module, is looked for there first.
    pub roots: Vec<OpenRoot>,
}

/// Where to look beside the places that are always looked at.
#[derive(Clone, Debug)]
pub struct SearchPaths {
    /// Folders given by the user: searched for the binary's name and for debug files.
    pub symbol_dirs: Vec<PathBuf>,
    /// Folders laid out as `/usr/lib/debug` is.
    pub debug_dirs: Vec<PathBuf>,
    /// Folders laid out as perf's build id cache (`~/.debug`) is.
    pub build_id_caches: Vec<PathBuf>,
    /// Folders that simpleperf's scripts have filled (`binary_cache`).
    pub simpleperf_caches: Vec<PathBuf>,
}

impl Default for SearchPaths {
    /// `/usr/lib/debug` alone.
    fn default() -> Self {
        Self {
            symbol_dirs: Vec::new(),
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            build_id_caches: Vec::new(),
            simpleperf_caches: Vec::new(),
        }
    }
}

/// An open file of the right identity. Holding it keeps its bytes reachable when the path is replaced.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes.
    pub source: Arc<FileSource>,
}

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
    /// As in [`ModuleRequest::roots`].
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

/// Finds the files of modules, and opens what it has found.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    paths: SearchPaths,
    cache: Option<Arc<AnswerCache>>,
    fetch: Option<Arc<dyn Fetch>>,
    kernel: Option<Arc<KernelFiles>>,
    stated: Option<Arc<StatedAnswers>>,
}

impl Finder {
    /// A finder that looks into `paths`.
    pub fn new(paths: SearchPaths) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Gives the modules that it opens a cache: they take the answers that are in it, and put in those that are not.
    #[must_use]
    pub fn with_cache(self, cache: Arc<AnswerCache>) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// The cache, if it was given one.
    pub fn cache(&self) -> Option<&AnswerCache> {
        self.cache.as_deref()
    }

    /// Reads the running kernel's symbols from files that were opened before.
    #[must_use]
    pub fn with_kernel_files(self, files: Option<KernelFiles>) -> Self {
        Self { kernel: files.map(Arc::new), ..self }
    }

    /// The files of the running kernel, where they were opened before.
    pub(crate) fn kernel_files(&self) -> Option<Arc<KernelFiles>> {
        self.kernel.clone()
    }

    /// Gives the modules that it opens the answers that came with a profile: they are taken where no debug info is found.
    #[must_use]
    pub fn with_stated_answers(self, stated: Option<StatedAnswers>) -> Self {
        Self { stated: stated.map(Arc::new), ..self }
    }

    /// Asks `fetch` for the files that are not found otherwise.
    #[must_use]
    pub fn with_fetch(self, fetch: Arc<dyn Fetch>) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// Whether anybody is asked for the files that are not found.
    pub fn asks_servers(&self) -> bool {
        self.fetch.is_some()
    }

    /// Asks nobody any more for the files that are not found.
    #[must_use]
    pub(crate) fn offline(self) -> Self {
        Self { fetch: None, ..self }
    }

    /// Gets a source file that the debug info of the file with this build id names, from elsewhere. Nothing can tell
    /// whether it is the right one.
    pub fn fetch_source(&self, build_id: &BuildId, path: &str) -> Fetched {
        let check = |path: &Path| match open_regular(path) {
            Ok(_) => Outcome::Used,
            Err(error) => Outcome::Unreadable(error.to_string()),
        };
        let source = RemoteFile::Source { build_id, path };
        self.fetch.as_ref().map(|fetch| fetch.fetch(&source, &check)).unwrap_or_default()
    }

    /// Opens what was found, as [`ModuleSymbols::open`] does, with the answers that are kept of it.
    pub fn open(&self, found: &Found) -> Result<ModuleSymbols, SymbolsError> {
        ModuleSymbols::open_with(found, self.cache.as_ref())
    }

    /// Finds the binary, its debug file and that one's supplementary file.
    pub fn find(&self, request: &ModuleRequest) -> Found {
        let mut search = self.search(request);
        if search.is_of_windows() {
            search.run_for_windows();
        } else if search.is_of_macos() {
            search.run_for_macos();
        } else {
            search.run_for_linux();
        }
        let stated = self.stated.as_deref().and_then(|stated| stated.of(request));
        Found { stated, ..search.found }
    }

    /// Looks for a module's binary alone, the one that was mapped.
    pub fn find_binary(&self, request: &ModuleRequest) -> Option<OpenFile> {
        let mut search = self.search(request);
        if search.is_of_windows() {
            search.image();
        } else if search.is_of_macos() {
            search.macos_binary();
        } else {
            search.binary();
        }
        search.found.binary
    }

    fn search<'a>(&'a self, request: &'a ModuleRequest) -> Search<'a> {
        let fetch = self.fetch.as_deref();
        let (module, roots) = (request.path.clone(), request.roots.clone());
        let found = Found { module, roots, ..Found::default() };
        Search { paths: &self.paths, fetch, request, found }
    }
}

/// The search for one module's files.
pub(crate) struct Search<'a> {
    pub(crate) paths: &'a SearchPaths,
    pub(crate) fetch: Option<&'a dyn Fetch>,
    pub(crate) request: &'a ModuleRequest,
    pub(crate) found: Found,
}

impl Search<'_> {
    /// Opens a file, unless it is the one that is held open.
    fn source(&self, path: &Path) -> Result<Arc<FileSource>, Outcome> {
        match self.request.held.as_ref().filter(|held| held.path == path) {
            Some(held) => Ok(Arc::clone(&held.source)),
            None => open_seen(&self.request.roots, path).map(source_of).map_err(unreadable),
        }
    }
}

/// A path as those see it who have other roots, and as it is here.
pub(crate) fn seen_from<'a>(roots: &'a [OpenRoot], path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let below = path.strip_prefix("/").ok();
    let inside = below.into_iter().flat_map(|below| roots.iter().map(move |root| root.path().join(below)));
    inside.chain([path.to_owned()])
}

/// Opens a regular file, one in another root as those see it who have that.
pub(crate) fn open_seen(roots: &[OpenRoot], path: &Path) -> io::Result<File> {
    match roots.iter().find_map(|root| Some((root, path.strip_prefix(root.path()).ok()?))) {
        Some((root, inside)) => root.open_file(inside),
        None => open_regular(path),
    }
}

/// The places without those that were there before.
pub(crate) fn without_doubles(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    places.into_iter().filter(|place| seen.insert(place.clone())).collect()
}

/// Opens a regular file. Pipes and devices are not opened: reading them may not end. Somebody else may put one there in
/// between, so that opening does not wait, and what was opened is looked at, too.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let regular = |metadata: &Metadata| {
        let error = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        metadata.is_file().then_some(()).ok_or_else(error)
    };
    regular(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file.
pub(crate) fn open_source(path: &Path) -> Result<Arc<FileSource>, Outcome> {
    open_regular(path).map(source_of).map_err(unreadable)
}

fn source_of(file: File) -> Arc<FileSource> {
    Arc::new(FileSource::new(file))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn unreadable(error: io::Error) -> Outcome {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Outcome::Missing,
        _ => Outcome::Unreadable(error.to_string()),
    }
}
