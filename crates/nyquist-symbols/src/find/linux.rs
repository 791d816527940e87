//! Finds the files of a module of Linux: its binary, its debug file, and the supplementary file of the
//! latter.
//!
//! The order of the places:
//!
//! 1. the **binary**: the alternatives (such as `/proc/PID/root/PATH`), the recorded path, its name in the
//!    user's folders, `CACHE/.build-id/xx/yyyy/elf` in perf's caches and in the user's folders (which may be
//!    an unpacked `perf archive`), `ID-NAME` and the recorded path below simpleperf's caches;
//! 2. the **debug file**, if the binary has no debug info, by build id: `DEBUG/.build-id/xx/yyyy.debug` in
//!    the debug folders (`/usr/lib/debug`), `CACHE/.build-id/xx/yyyy/debug` in perf's caches, then in each of
//!    the user's folders `.build-id/xx/yyyy.debug`, `.build-id/xx/yyyy/debug`, `xx/yyyy.debug` and
//!    `NAME.debug`;
//! 3. the debug file by its **debug link**: beside the binary, in `.debug` beside it, `DEBUG/FOLDER/LINK` in
//!    the debug folders, in the user's folders. The link's checksum must be that of the file, and the build
//!    id, if there is one, must be the same;
//! 4. dwz's **supplementary file**: at the path that the debug file states, in `DEBUG/.dwz`, in the user's
//!    folders, by its build id in the places of 2;
//! 5. the **package** of split units: `NAME.dwp` beside the recorded path, beside the binary and the debug
//!    file that were found, in the user's folders. Units in it, and in single `.dwo` files, are identified by
//!    their own ids.
//!
//! Files beside the recorded path, and the debug folders, are first looked for in the root of the process, if
//! it has another root.
//!
//! If none of these places has the binary, the debug file or the supplementary file, it is fetched by its
//! build id with a [`Fetch`](crate::Fetch), if the caller provided one.

use super::{Attempt, AttemptOutcome, FileRole, OpenFile, Search, open_source, seen_from, without_doubles};
use crate::RemoteFile;
use crate::dwarf::holds_units_of;
use crate::section_contents::SharedSource;
use nyquist_object::elf::ElfSection;
use nyquist_object::{
    BuildId, ByteSource, DebugId, DebugLink, Elf, FileIdentity, FileSource, ModuleId, ObjectError, crc32,
};
use nyquist_system::OsStrExt as _;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of this process's open files.
const OPEN_FILES: &str = "/proc/self/fd";

type OpenElf = Elf<Arc<FileSource>>;

impl Search<'_> {
    pub(crate) fn run_for_linux(&mut self) {
        let binary = self.binary();
        let has_debug_info = |elf: &OpenElf| {
            let sections = [".debug_info", ".zdebug_info"];
            sections.iter().any(|name| elf.section(name).is_some_and(ElfSection::has_bytes))
        };
        let debug = match &binary {
            Some(elf) if has_debug_info(elf) => None,
            binary => self.debug_file(binary.as_ref()),
        };
        if let Some(elf) = debug.or(binary) {
            self.supplementary(&elf);
            if elf.section(".debug_addr").is_some() {
                self.package(&elf);
            }
        }
    }

    /// The package of the units that were split off from `main`. It is beside the binary or the debug file,
    /// or in the user's folders, and is named after either.
    fn package(&mut self, main: &OpenElf) {
        let files = self.paths_of_files();
        let mut places = Vec::new();
        for file in &files {
            let Some(name) = file.file_name() else { continue };
            let packed = with_suffix(name, ".dwp");
            places.push(file.with_file_name(&packed));
            places.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(&packed)));
        }
        let beside = files.iter().filter_map(|file| file.parent()).map(Path::to_owned);
        let folders = beside.chain(self.paths.symbol_dirs.iter().cloned()).collect();
        self.found.split_folders = without_doubles(folders);
        let main = Elf::open(main.source().clone() as SharedSource).ok();
        let check = |_: &Self, file: &OpenFile, _: &OpenElf| {
            let package = Elf::open(file.source.clone() as SharedSource).ok();
            match package.zip(main.as_ref()).and_then(|(package, main)| holds_units_of(&package, main)) {
                Some(true) => AttemptOutcome::Used,
                Some(false) => {
                    AttemptOutcome::OtherIdentity("none of the units that were split off is in it".to_owned())
                }
                None => AttemptOutcome::Unreadable("no package of split units".to_owned()),
            }
        };
        let found = self.first(FileRole::Package, without_doubles(places), check);
        self.found.package = found.map(|(_, file)| file);
    }

    /// The paths of the module and of its debug file that can have files beside them. A file that is only
    /// held open has no path.
    fn paths_of_files(&self) -> Vec<PathBuf> {
        let found = [&self.found.binary, &self.found.debug_file];
        let found = found.into_iter().flatten().map(|file| file.path.clone());
        let files = seen_from(&self.request.roots, &self.request.path).chain(found);
        without_doubles(files.filter(|path| !path.starts_with(OPEN_FILES)).collect())
    }

    /// The binary: at the path from which it was mapped, in the user's folders, or in perf's cache.
    pub(crate) fn binary(&mut self) -> Option<OpenElf> {
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
        let found = self.first(FileRole::Binary, paths, Search::check_identity);
        let (elf, file) = found.or_else(|| {
            let id = self.build_id(None)?;
            self.fetch(FileRole::Binary, &RemoteFile::Binary(&id), Search::check_identity)
        })?;
        self.found.binary = Some(file);
        Some(elf)
    }

    /// The debug file. First by build id: in the debug folders, in perf's cache and in the user's folders.
    /// Then by the debug link: beside the binary, in `.debug` beside it, in the debug folders and in the
    /// user's folders.
    fn debug_file(&mut self, binary: Option<&OpenElf>) -> Option<OpenElf> {
        let id = self.build_id(binary);
        let by_id = id.as_ref().map(|id| self.places_by_id(id)).unwrap_or_default();
        let found = self.first(FileRole::DebugFile, by_id, |search, file, elf| {
            search.check_debug_file(binary, None, file, elf)
        });
        let found = found.or_else(|| {
            let link = binary?.debug_link().ok()??;
            let places = self.places_by_link(&link);
            self.first(FileRole::DebugFile, places, |search, file, elf| {
                search.check_debug_file(binary, Some(&link), file, elf)
            })
        });
        let found = found.or_else(|| {
            self.fetch(FileRole::DebugFile, &RemoteFile::DebugFile(id.as_ref()?), |search, file, elf| {
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
        let debug_dirs = self.debug_dirs();
        let mut places: Vec<_> = debug_dirs.iter().map(in_folder).collect();
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

    /// The places in the folders that simpleperf's scripts fill. Files are named by the id, padded with zeros
    /// to 20 bytes, and the name. Older scripts use the path on the device.
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
        let found = found.filter(|folder| !folder.starts_with(OPEN_FILES)).map(Path::to_owned);
        let mut places = Vec::new();
        for folder in found.into_iter().chain(seen_from(&self.request.roots, recorded)) {
            places.push(folder.join(name));
            places.push(folder.join(".debug").join(name));
        }
        let below = recorded.strip_prefix("/").unwrap_or(recorded);
        places.extend(self.debug_dirs().iter().map(|folder| folder.join(below).join(name)));
        places.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(name)));
        without_doubles(places)
    }

    /// The debug folders, in other roots first.
    fn debug_dirs(&self) -> Vec<PathBuf> {
        let seen = |folder: &'_ PathBuf| seen_from(&self.request.roots, folder).collect::<Vec<_>>();
        self.paths.debug_dirs.iter().flat_map(seen).collect()
    }

    /// The supplementary file of `elf`: at the stated path, or by its build id in the debug folders.
    fn supplementary(&mut self, elf: &OpenElf) {
        let Ok(Some(link)) = elf.debug_alt_link() else { return };
        let provided = Path::new(OsStr::from_bytes(&link.path));
        let holder = self.found.debug_file.as_ref().or(self.found.binary.as_ref());
        // The path that a debug file states is relative to its real place, even if it was found through a
        // symbolic link. A file in another root has no path here.
        let is_here = |path: &Path| !self.request.roots.iter().any(|root| path.starts_with(root.path()));
        let real = holder.and_then(|file| {
            let path = &file.path;
            if is_here(path) { path.canonicalize().ok() } else { Some(path.clone()) }
        });
        let folder = real.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut places: Vec<_> = seen_from(&self.request.roots, &folder.join(provided)).collect();
        if let Some(name) = provided.file_name() {
            places.extend(self.debug_dirs().iter().map(|debug| debug.join(".dwz").join(name)));
            places.extend(self.paths.symbol_dirs.iter().map(|folder| folder.join(name)));
        }
        places.extend(self.places_by_id(&link.build_id));
        let check = |_: &Self, _: &OpenFile, elf: &OpenElf| match elf.build_id() {
            Some(id) if id == link.build_id => AttemptOutcome::Used,
            other => AttemptOutcome::OtherIdentity(id_text(other)),
        };
        let found = self.first(FileRole::Supplementary, places, check);
        let found = found
            .or_else(|| self.fetch(FileRole::Supplementary, &RemoteFile::DebugFile(&link.build_id), check));
        self.found.supplementary = found.map(|(_, file)| file);
    }

    /// Opens one path after the other until one is the requested file, and records all attempts.
    fn first(
        &mut self,
        requested: FileRole,
        paths: Vec<PathBuf>,
        check: impl Fn(&Self, &OpenFile, &OpenElf) -> AttemptOutcome,
    ) -> Option<(OpenElf, OpenFile)> {
        for path in paths {
            let (outcome, opened) = match self.source(&path).and_then(|source| open_elf(&path, source)) {
                Ok((elf, file)) => (check(self, &file, &elf), Some((elf, file))),
                Err(outcome) => (outcome, None),
            };
            let is_used = outcome == AttemptOutcome::Used;
            self.found.tried.push(Attempt { requested, path, outcome });
            if is_used {
                return opened;
            }
        }
        None
    }

    /// Fetches a file, and records the attempts.
    fn fetch(
        &mut self,
        requested: FileRole,
        file: &RemoteFile<'_>,
        check: impl Fn(&Self, &OpenFile, &OpenElf) -> AttemptOutcome,
    ) -> Option<(OpenElf, OpenFile)> {
        let check = |path: &Path| match open(path) {
            Ok((elf, file)) => check(self, &file, &elf),
            Err(outcome) => outcome,
        };
        let fetched = self.fetch?.fetch(file, &check);
        let tried = fetched.tried.into_iter();
        self.found.tried.extend(tried.map(|(path, outcome)| Attempt { requested, path, outcome }));
        open(&fetched.path?).ok()
    }

    /// The requested build id. If there is none, that of the binary that was found.
    fn build_id(&self, binary: Option<&OpenElf>) -> Option<BuildId> {
        match &self.request.id {
            Some(ModuleId::BuildId(id)) => Some(id.clone()),
            Some(ModuleId::MachUuid(_) | ModuleId::Pe(_) | ModuleId::File(_)) => None,
            None => binary.and_then(Elf::build_id),
        }
    }

    /// Whether a file has the requested identity.
    fn check_identity(&self, file: &OpenFile, elf: &OpenElf) -> AttemptOutcome {
        let build_id = elf.build_id();
        let is_same = match (&self.request.id, self.request.debug_id) {
            (Some(ModuleId::BuildId(id)), _) => build_id.as_ref() == Some(id),
            // The files here are ELF files, which have no such id.
            (Some(ModuleId::MachUuid(_) | ModuleId::Pe(_)), _) => false,
            (Some(ModuleId::File(id)), _) => {
                return match file_identity(file, elf) {
                    Ok(found) if found == *id => AttemptOutcome::Used,
                    Ok(found) => AttemptOutcome::OtherIdentity(different_part(&found, id)),
                    Err(error) => AttemptOutcome::Unreadable(error.to_string()),
                };
            }
            (None, Some(id)) => debug_id(elf, build_id.as_ref()) == Some(id),
            (None, None) => true,
        };
        if is_same { AttemptOutcome::Used } else { AttemptOutcome::OtherIdentity(id_text(build_id)) }
    }

    /// Whether a file is the debug file of the module: by its build id or, if the module has none, by the
    /// checksum in the debug link.
    fn check_debug_file(
        &self,
        binary: Option<&OpenElf>,
        link: Option<&DebugLink>,
        file: &OpenFile,
        elf: &OpenElf,
    ) -> AttemptOutcome {
        let found = elf.build_id();
        if let Some(requested) = self.build_id(binary)
            && found.as_ref() != Some(&requested)
        {
            return AttemptOutcome::OtherIdentity(id_text(found));
        }
        match link {
            Some(link) => check_sum(file, link),
            None => AttemptOutcome::Used,
        }
    }
}

fn open(path: &Path) -> Result<(OpenElf, OpenFile), AttemptOutcome> {
    open_elf(path, open_source(path)?)
}

fn open_elf(path: &Path, source: Arc<FileSource>) -> Result<(OpenElf, OpenFile), AttemptOutcome> {
    let elf = Elf::open(source.clone()).map_err(|error| AttemptOutcome::Unreadable(error.to_string()))?;
    Ok((elf, OpenFile { path: path.to_owned(), source }))
}

/// Compares the checksum of a debug link, which covers the whole file.
fn check_sum(file: &OpenFile, link: &DebugLink) -> AttemptOutcome {
    let mut buffer = vec![0; 1 << 20];
    let (mut crc, mut at, len) = (0, 0, file.source.len());
    while at < len {
        let size = (len - at).min(buffer.len() as u64) as usize;
        if let Err(error) = file.source.read_exact_at(at, &mut buffer[..size]) {
            return AttemptOutcome::Unreadable(error.to_string());
        }
        crc = crc32(crc, &buffer[..size]);
        at += size as u64;
    }
    if crc == link.crc { AttemptOutcome::Used } else { AttemptOutcome::WrongChecksum }
}

/// The identity of a file without an id.
fn file_identity(file: &OpenFile, elf: &OpenElf) -> Result<FileIdentity, ObjectError> {
    let text_hash = elf.text_hash()?;
    FileIdentity::of(&file.source, text_hash).map_err(|source| ObjectError::Read {
        offset: 0,
        len: 0,
        source,
    })
}

fn different_part(found: &FileIdentity, requested: &FileIdentity) -> String {
    let part = if found.text_hash != requested.text_hash {
        "its code differs"
    } else if found.size != requested.size {
        "its size differs"
    } else if found.modified_ns != requested.modified_ns {
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

/// The folder of a build id in perf's cache: `.build-id/xx/yyyy`, a link to a folder.
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
