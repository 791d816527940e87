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

use super::open::with_suffix;
use super::search::{Platform, Search, without_doubles};
use super::{AttemptOutcome, FileRole, OpenFile, seen_from};
use crate::RemoteFile;
use crate::dwarf::holds_units_of;
use crate::section_contents::SharedSource;
use nyquist_object::elf::ElfSection;
use nyquist_object::{
    BuildId, ByteSource, DebugId, DebugLink, Elf, FileIdentity, FileSource, ModuleId, ObjectError, crc32,
};
use nyquist_system::OsStrExt as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of this process's open files.
const OPEN_FILES: &str = "/proc/self/fd";

type OpenElf = Elf<Arc<FileSource>>;

/// Linux, and all systems with ELF files.
pub(super) struct Linux;

impl Platform for Linux {
    fn has_module(&self, _: &Search<'_>) -> bool {
        true
    }

    fn find_files(&self, search: &mut Search<'_>) {
        let binary = search.binary();
        let has_debug_info = |elf: &OpenElf| {
            let sections = [".debug_info", ".zdebug_info"];
            sections.iter().any(|name| elf.section(name).is_some_and(ElfSection::has_bytes))
        };
        let debug = match &binary {
            Some(elf) if has_debug_info(elf) => None,
            binary => search.debug_file(binary.as_ref()),
        };
        if let Some(elf) = debug.or(binary) {
            search.supplementary(&elf);
            if elf.section(".debug_addr").is_some() {
                search.package(&elf);
            }
        }
    }

    fn find_binary(&self, search: &mut Search<'_>) {
        search.binary();
    }
}

impl Search<'_> {
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
        let open = |search: &Self, path: &Path| {
            search.open_elf(path, |file, _| {
                let package = Elf::open(file.source.clone() as SharedSource).ok();
                match package.zip(main.as_ref()).and_then(|(package, main)| holds_units_of(&package, main)) {
                    Some(true) => Ok(()),
                    Some(false) => Err(AttemptOutcome::OtherIdentity(
                        "none of the units that were split off is in it".to_owned(),
                    )),
                    None => Err(AttemptOutcome::Unreadable("no package of split units".to_owned())),
                }
            })
        };
        let found = self.first(FileRole::Package, without_doubles(places), open);
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
        let open =
            |search: &Self, path: &Path| search.open_elf(path, |file, elf| search.check_identity(file, elf));
        let (elf, file) = self.first(FileRole::Binary, paths, open).or_else(|| {
            let id = self.build_id(None)?;
            self.fetch(FileRole::Binary, &RemoteFile::Binary(&id), open)
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
        let open =
            |search: &Self, path: &Path| search.open_elf(path, |_, elf| search.check_debug_file(binary, elf));
        let found = self.first(FileRole::DebugFile, by_id, open).or_else(|| {
            let link = binary?.debug_link().ok()??;
            let places = self.places_by_link(&link);
            self.first(FileRole::DebugFile, places, |search, path| {
                search.open_elf(path, |file, elf| {
                    search.check_debug_file(binary, elf)?;
                    check_sum(file, &link)
                })
            })
        });
        let (elf, file) =
            found.or_else(|| self.fetch(FileRole::DebugFile, &RemoteFile::DebugFile(id.as_ref()?), open))?;
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
        let open = |search: &Self, path: &Path| {
            search.open_elf(path, |_, elf| match elf.build_id() {
                Some(id) if id == link.build_id => Ok(()),
                other => Err(AttemptOutcome::OtherIdentity(id_text(other))),
            })
        };
        let found = self
            .first(FileRole::Supplementary, places, open)
            .or_else(|| self.fetch(FileRole::Supplementary, &RemoteFile::DebugFile(&link.build_id), open));
        self.found.supplementary = found.map(|(_, file)| file);
    }

    /// Opens an ELF file that passes a check.
    fn open_elf(
        &self,
        path: &Path,
        check: impl Fn(&OpenFile, &OpenElf) -> Result<(), AttemptOutcome>,
    ) -> Result<(OpenElf, OpenFile), AttemptOutcome> {
        let source = self.source(path)?;
        let elf = Elf::open(source.clone())?;
        let file = OpenFile { path: path.to_owned(), source };
        check(&file, &elf)?;
        Ok((elf, file))
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
    fn check_identity(&self, file: &OpenFile, elf: &OpenElf) -> Result<(), AttemptOutcome> {
        let build_id = elf.build_id();
        let is_same = match (&self.request.id, self.request.debug_id) {
            (Some(ModuleId::BuildId(id)), _) => build_id.as_ref() == Some(id),
            // The files here are ELF files, which have no such id.
            (Some(ModuleId::MachUuid(_) | ModuleId::Pe(_)), _) => false,
            (Some(ModuleId::File(id)), _) => {
                return match file_identity(file, elf)? {
                    found if found == *id => Ok(()),
                    found => Err(AttemptOutcome::OtherIdentity(different_part(&found, id))),
                };
            }
            (None, Some(id)) => debug_id(elf, build_id.as_ref()) == Some(id),
            (None, None) => true,
        };
        if is_same { Ok(()) } else { Err(AttemptOutcome::OtherIdentity(id_text(build_id))) }
    }

    /// Whether a file has the build id of the module, if that has one.
    fn check_debug_file(&self, binary: Option<&OpenElf>, elf: &OpenElf) -> Result<(), AttemptOutcome> {
        match (self.build_id(binary), elf.build_id()) {
            (Some(requested), found) if found.as_ref() != Some(&requested) => {
                Err(AttemptOutcome::OtherIdentity(id_text(found)))
            }
            _ => Ok(()),
        }
    }
}

/// Compares the checksum of a debug link, which covers the whole file.
fn check_sum(file: &OpenFile, link: &DebugLink) -> Result<(), AttemptOutcome> {
    let mut buffer = vec![0; 1 << 20];
    let (mut crc, mut at, len) = (0, 0, file.source.len());
    while at < len {
        let size = (len - at).min(buffer.len() as u64) as usize;
        let read = file.source.read_exact_at(at, &mut buffer[..size]);
        read.map_err(|error| AttemptOutcome::Unreadable(error.to_string()))?;
        crc = crc32(crc, &buffer[..size]);
        at += size as u64;
    }
    if crc == link.crc { Ok(()) } else { Err(AttemptOutcome::WrongChecksum) }
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
