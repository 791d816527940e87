//! Finding a module's binary and its debug files.
//!
//! A file is used only when its identity is the one that was recorded; the first that is right ends the search.
//! The order of the places:
//!
//! 1. the **binary**: the alternatives (such as `/proc/PID/root/PATH`), the recorded path, its name in the user's
//!    folders, `CACHE/.build-id/xx/yyyy/elf` in perf's caches and in the user's folders (which may be an unpacked
//!    `perf archive`), `ID-NAME` and the recorded path below simpleperf's caches;
//! 2. the **debug file**, where the binary holds no debug info, by build id: `DEBUG/.build-id/xx/yyyy.debug` in
//!    the debug folders (`/usr/lib/debug`), `CACHE/.build-id/xx/yyyy/debug` in perf's caches, then in each of the
//!    user's folders `.build-id/xx/yyyy.debug`, `.build-id/xx/yyyy/debug`, `xx/yyyy.debug` and `NAME.debug`;
//! 3. the debug file by its **debug link**: beside the binary, in `.debug` beside it, `DEBUG/FOLDER/LINK` in the
//!    debug folders, in the user's folders. The link's checksum must be that of the file, and the build id, where
//!    there is one, the same;
//! 4. dwz's **supplementary file**: where the debug file says, in `DEBUG/.dwz`, in the user's folders, by its
//!    build id in the places of 2;
//! 5. the **package** of split units: `NAME.dwp` beside the binary, beside the debug file, in the user's folders.
//!    Units in it, and in single `.dwo` files, are compared by their own ids.
//!
//! Where none of the places has the binary, the debug file or the supplementary file, a [`Fetch`] is asked for it by
//! its build id, if the caller gave one.
//!
//! The files of Windows and of macOS have orders of their own: see `find_windows.rs` and `find_macos.rs`.

use crate::{AnswerCache, Fetch, Fetched, ModuleSymbols, RemoteFile, SymbolsError};
use nyquist_object::elf::Section;
use nyquist_object::{
    BuildId, ByteSource, DebugId, DebugLink, Elf, FileIdentity, FileSource, ModuleId, ObjectError, crc32,
};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
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

    /// Asks `fetch` for the files that are not found otherwise.
    #[must_use]
    pub fn with_fetch(self, fetch: Arc<dyn Fetch>) -> Self {
        Self { fetch: Some(fetch), ..self }
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
            search.run();
        }
        search.found
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
        let found = Found { module: request.path.clone(), ..Found::default() };
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

type OpenElf = Elf<Arc<FileSource>>;

impl Search<'_> {
    fn run(&mut self) {
        let binary = self.binary();
        let has_debug_info = |elf: &OpenElf| {
            let sections = [".debug_info", ".zdebug_info"];
            sections.iter().any(|name| elf.section(name).is_some_and(Section::has_bytes))
        };
        let debug = match &binary {
            Some(elf) if has_debug_info(elf) => None,
            binary => self.debug_file(binary.as_ref()),
        };
        if let Some(elf) = debug.or(binary) {
            self.supplementary(&elf);
            if elf.section(".debug_addr").is_some() {
                self.package();
            }
        }
    }

    /// The package: beside the binary or the debug file, or in the user's folders, named after either.
    fn package(&mut self) {
        let found = [&self.found.binary, &self.found.debug_file];
        let files: Vec<PathBuf> = found.into_iter().flatten().map(|file| file.path.clone()).collect();
        let mut places = Vec::new();
        for file in &files {
            let Some(name) = file.file_name() else { continue };
            let packed = with_suffix(name, ".dwp");
            places.push(file.with_file_name(&packed));
            places.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(&packed)));
            self.found.split_folders.extend(file.parent().map(Path::to_owned));
        }
        self.found.split_folders.extend(self.paths.symbol_dirs.iter().cloned());
        let found = self.first(Wanted::Package, places, |_, _, _| Outcome::Used);
        self.found.package = found.map(|(_, file)| file);
    }

    /// The binary: where it was mapped from, in the folders of the user, in perf's cache.
    fn binary(&mut self) -> Option<OpenElf> {
        let recorded = &self.request.path;
        let mut paths = self.request.alternatives.clone();
        paths.push(recorded.clone());
        if let Some(name) = recorded.file_name() {
            paths.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(name)));
        }
        if let Some(id) = self.build_id(None) {
            let caches = self.paths.build_id_caches.iter().chain(&self.paths.symbol_dirs);
            paths.extend(caches.map(|cache| cache.join(cached(&id)).join("elf")));
            paths.extend(self.places_in_simpleperf_caches(&id));
        }
        let found = self.first(Wanted::Binary, paths, Search::check_identity);
        let (elf, file) = found.or_else(|| {
            let id = self.build_id(None)?;
            self.fetch(Wanted::Binary, &RemoteFile::Binary(&id), Search::check_identity)
        })?;
        self.found.binary = Some(file);
        Some(elf)
    }

    /// The debug file: by build id in the debug folders, in perf's cache and in the user's folders, then by the
    /// debug link beside the binary, in `.debug` beside it, in the debug folders and in the user's.
    fn debug_file(&mut self, binary: Option<&OpenElf>) -> Option<OpenElf> {
        let id = self.build_id(binary);
        let by_id = id.as_ref().map(|id| self.places_by_id(id)).unwrap_or_default();
        let found = self.first(Wanted::DebugFile, by_id, |search, file, elf| {
            search.check_debug_file(binary, None, file, elf)
        });
        let found = found.or_else(|| {
            let link = binary?.debug_link().ok()??;
            let places = self.places_by_link(&link);
            self.first(Wanted::DebugFile, places, |search, file, elf| {
                search.check_debug_file(binary, Some(&link), file, elf)
            })
        });
        let found = found.or_else(|| {
            self.fetch(Wanted::DebugFile, &RemoteFile::DebugFile(id.as_ref()?), |search, file, elf| {
                search.check_debug_file(binary, None, file, elf)
            })
        });
        let (elf, file) = found?;
        self.found.debug_file = Some(file);
        Some(elf)
    }

    fn places_by_id(&self, id: &BuildId) -> Vec<PathBuf> {
        let digits = id.to_string();
        let (first, rest) = digits.split_at(2);
        let in_folder = |folder: &PathBuf| folder.join(".build-id").join(first).join(format!("{rest}.debug"));
        let mut places: Vec<_> = self.paths.debug_dirs.iter().map(in_folder).collect();
        let caches = self.paths.build_id_caches.iter();
        places.extend(caches.map(|cache| cache.join(cached(id)).join("debug")));
        for folder in &self.paths.symbol_dirs {
            places.push(in_folder(folder));
            places.push(folder.join(cached(id)).join("debug"));
            places.push(folder.join(first).join(format!("{rest}.debug")));
            if let Some(name) = self.request.path.file_name() {
                places.push(folder.join(with_suffix(name, ".debug")));
            }
        }
        places
    }

    /// In the folders that simpleperf's scripts fill: by id, filled up with zeros to 20 bytes, and name; or, by older
    /// scripts, by the path on the device.
    fn places_in_simpleperf_caches(&self, id: &BuildId) -> Vec<PathBuf> {
        let recorded = &self.request.path;
        let below = recorded.strip_prefix("/").unwrap_or(recorded);
        let name = recorded.file_name().unwrap_or_default().to_string_lossy();
        let with_id = format!("{:0<40}-{name}", id.to_string());
        let caches = self.paths.simpleperf_caches.iter();
        caches.flat_map(|cache| [cache.join(&with_id), cache.join(below)]).collect()
    }

    fn places_by_link(&self, link: &DebugLink) -> Vec<PathBuf> {
        let name = OsStr::from_bytes(&link.file_name);
        let recorded = self.request.path.parent().unwrap_or(Path::new(""));
        let found = self.found.binary.as_ref().and_then(|file| file.path.parent());
        let mut places = Vec::new();
        for folder in found.into_iter().chain([recorded]) {
            places.push(folder.join(name));
            places.push(folder.join(".debug").join(name));
        }
        let below = recorded.strip_prefix("/").unwrap_or(recorded);
        places.extend(self.paths.debug_dirs.iter().map(|folder| folder.join(below).join(name)));
        places.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(name)));
        let mut seen = Vec::new();
        places.retain(|place| {
            let is_new = !seen.contains(place);
            seen.push(place.clone());
            is_new
        });
        places
    }

    /// The supplementary file that `elf` names: where it says, or by its build id in the debug folders.
    fn supplementary(&mut self, elf: &OpenElf) {
        let Ok(Some(link)) = elf.debug_alt_link() else { return };
        let stated = Path::new(OsStr::from_bytes(&link.path));
        let holder = self.found.debug_file.as_ref().or(self.found.binary.as_ref());
        // A debug file found through a symbolic link states a path relative to where it really is.
        let real = holder.and_then(|file| file.path.canonicalize().ok());
        let folder = real.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut places = vec![folder.join(stated)];
        if let Some(name) = stated.file_name() {
            places.extend(self.paths.debug_dirs.iter().map(|debug| debug.join(".dwz").join(name)));
            places.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(name)));
        }
        places.extend(self.places_by_id(&link.build_id));
        let check = |_: &Self, _: &OpenFile, elf: &OpenElf| match elf.build_id() {
            Some(id) if id == link.build_id => Outcome::Used,
            other => Outcome::OtherIdentity(id_text(other)),
        };
        let found = self.first(Wanted::Supplementary, places, check);
        let found = found
            .or_else(|| self.fetch(Wanted::Supplementary, &RemoteFile::DebugFile(&link.build_id), check));
        self.found.supplementary = found.map(|(_, file)| file);
    }

    /// Opens one path after the other until one is what is wanted; all are noted.
    fn first(
        &mut self,
        wanted: Wanted,
        paths: Vec<PathBuf>,
        check: impl Fn(&Self, &OpenFile, &OpenElf) -> Outcome,
    ) -> Option<(OpenElf, OpenFile)> {
        for path in paths {
            let (outcome, opened) = match open(&path) {
                Ok((elf, file)) => (check(self, &file, &elf), Some((elf, file))),
                Err(outcome) => (outcome, None),
            };
            let is_used = outcome == Outcome::Used;
            self.found.tried.push(Attempt { wanted, path, outcome });
            if is_used {
                return opened;
            }
        }
        None
    }

    /// Gets a file from elsewhere; what was tried is noted.
    fn fetch(
        &mut self,
        wanted: Wanted,
        file: &RemoteFile<'_>,
        check: impl Fn(&Self, &OpenFile, &OpenElf) -> Outcome,
    ) -> Option<(OpenElf, OpenFile)> {
        let check = |path: &Path| match open(path) {
            Ok((elf, file)) => check(self, &file, &elf),
            Err(outcome) => outcome,
        };
        let fetched = self.fetch?.fetch(file, &check);
        let tried = fetched.tried.into_iter();
        self.found.tried.extend(tried.map(|(path, outcome)| Attempt { wanted, path, outcome }));
        open(&fetched.path?).ok()
    }

    /// The build id that is asked for, or, where none is, the one of the binary that was found.
    fn build_id(&self, binary: Option<&OpenElf>) -> Option<BuildId> {
        match &self.request.id {
            Some(ModuleId::BuildId(id)) => Some(id.clone()),
            Some(ModuleId::MachUuid(_) | ModuleId::Pe(_) | ModuleId::File(_)) => None,
            None => binary.and_then(Elf::build_id),
        }
    }

    /// Whether a file has the identity that is asked for.
    fn check_identity(&self, file: &OpenFile, elf: &OpenElf) -> Outcome {
        let build_id = elf.build_id();
        let is_same = match (&self.request.id, self.request.debug_id) {
            (Some(ModuleId::BuildId(id)), _) => build_id.as_ref() == Some(id),
            // What is looked at here are ELF files, which have no such id.
            (Some(ModuleId::MachUuid(_) | ModuleId::Pe(_)), _) => false,
            (Some(ModuleId::File(id)), _) => {
                return match file_identity(file, elf) {
                    Ok(found) if found == *id => Outcome::Used,
                    Ok(found) => Outcome::OtherIdentity(different_part(&found, id)),
                    Err(error) => Outcome::Unreadable(error.to_string()),
                };
            }
            (None, Some(id)) => debug_id(elf, build_id.as_ref()) == Some(id),
            (None, None) => true,
        };
        if is_same { Outcome::Used } else { Outcome::OtherIdentity(id_text(build_id)) }
    }

    /// Whether a file is the debug file of the module: by its build id, and where the module has none, by the
    /// checksum in the debug link.
    fn check_debug_file(
        &self,
        binary: Option<&OpenElf>,
        link: Option<&DebugLink>,
        file: &OpenFile,
        elf: &OpenElf,
    ) -> Outcome {
        let found = elf.build_id();
        if let Some(wanted) = self.build_id(binary)
            && found.as_ref() != Some(&wanted)
        {
            return Outcome::OtherIdentity(id_text(found));
        }
        match link {
            Some(link) => check_sum(file, link),
            None => Outcome::Used,
        }
    }
}

/// Opens a regular file. Pipes and devices are not opened: reading them may not end.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// Opens a regular file.
pub(crate) fn open_source(path: &Path) -> Result<Arc<FileSource>, Outcome> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Outcome::Missing,
        _ => Outcome::Unreadable(error.to_string()),
    };
    Ok(Arc::new(FileSource::new(open_regular(path).map_err(unreadable)?)))
}

fn open(path: &Path) -> Result<(OpenElf, OpenFile), Outcome> {
    let source = open_source(path)?;
    let elf = Elf::open(source.clone()).map_err(|error| Outcome::Unreadable(error.to_string()))?;
    Ok((elf, OpenFile { path: path.to_owned(), source }))
}

/// The checksum of a debug link goes over the whole file.
fn check_sum(file: &OpenFile, link: &DebugLink) -> Outcome {
    let mut buffer = vec![0; 1 << 20];
    let (mut crc, mut at, len) = (0, 0, file.source.len());
    while at < len {
        let size = (len - at).min(buffer.len() as u64) as usize;
        if let Err(error) = file.source.read_exact_at(at, &mut buffer[..size]) {
            return Outcome::Unreadable(error.to_string());
        }
        crc = crc32(crc, &buffer[..size]);
        at += size as u64;
    }
    if crc == link.crc { Outcome::Used } else { Outcome::WrongChecksum }
}

/// The identity of a file that carries no id.
fn file_identity(file: &OpenFile, elf: &OpenElf) -> Result<FileIdentity, ObjectError> {
    let text_hash = elf.text_hash()?;
    let metadata = file.source.file().metadata();
    let metadata = metadata.map_err(|source| ObjectError::Read { offset: 0, len: 0, source })?;
    Ok(FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
        text_hash,
    })
}

fn different_part(found: &FileIdentity, wanted: &FileIdentity) -> String {
    let part = if found.text_hash != wanted.text_hash {
        "its code differs"
    } else if found.size != wanted.size {
        "its size differs"
    } else if found.modified_ns != wanted.modified_ns {
        "it was modified"
    } else {
        "it is a copy"
    };
    part.to_owned()
}

/// The debug id that the file would have in a profile.
fn debug_id(elf: &OpenElf, build_id: Option<&BuildId>) -> Option<DebugId> {
    if let Some(id) = build_id {
        return Some(DebugId::from_build_id(id, true));
    }
    let text_hash = elf.text_hash().ok()?;
    let file = FileIdentity { device: 0, inode: 0, size: 0, modified_ns: 0, text_hash };
    Some(ModuleId::File(file).debug_id())
}

fn id_text(id: Option<BuildId>) -> String {
    id.map_or_else(|| "no build id".to_owned(), |id| format!("build id {id}"))
}

/// Where perf's cache keeps what it has of a build id: `.build-id/xx/yyyy`, a link to a folder.
fn cached(id: &BuildId) -> PathBuf {
    let digits = id.to_string();
    let (first, rest) = digits.split_at(2);
    Path::new(".build-id").join(first).join(rest)
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}
