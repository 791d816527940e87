//! Finds the files of a module of macOS: its image, and its debug info.
//!
//! The order of the places:
//!
//! 1. the **image**: the alternatives, the recorded path, and its name in each of the user's folders; in a
//!    universal file, the file with the UUID; then the **dyld shared cache**, of every architecture, in each
//!    of the user's folders and in the system's folders;
//! 2. the **`.dSYM`** bundle, if the image has no debug info: beside the image as `NAME.dSYM`, beside the
//!    bundles that the image is in (`App.app.dSYM`, `Lib.framework.dSYM`), and in each of the user's folders
//!    as `NAME.dSYM`, `App.app.dSYM` or `UUID.dSYM`; or a file without a bundle, as from `dsymutil --flat`:
//!    `NAME.dwarf`, or, in the user's folders, `NAME`;
//! 3. a **Breakpad symbol file** in the user's folders: `NAME.sym`, `NAME/ID/NAME.sym`;
//! 4. the **object files** that the image was linked from, or archives of them: at their original path, and
//!    in each of the user's folders by their path and by their name. They must not have been modified since.
//!
//! If no `.dSYM` is found, the Breakpad symbol file is fetched with a [`Fetch`](crate::Fetch).
//!
//! The UUID must be that of the recording or, if it has none, that of the image.

use super::open::{first_bytes, with_suffix};
use super::search::{Platform, Search, without_doubles};
use super::{Attempt, AttemptOutcome, FileRole, OpenFile, open_source};
use crate::file_kind::FileKind;
use crate::macho::{DebugMap, MachOImage, choose, find_object, id_of, ids_in_cache, image_in_cache, images};
use crate::section_contents::SharedSource;
use crate::{RemoteFile, breakpad, layouts};
use nyquist_object::macho::FileKind as Kind;
use nyquist_object::{DebugId, MachO, ModuleId};
use nyquist_resources::Budget;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The first bytes of the files: a Mach-O file of 64 bits, or a universal file.
const MAGIC: [[u8; 4]; 3] = [[0xcf, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe], [0xca, 0xfe, 0xba, 0xbf]];

/// The folders and names of the system's shared cache.
const CACHE_FOLDERS: [&str; 3] = [
    "/System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld",
    "/System/Cryptexes/OS/System/Library/dyld",
    "/System/Library/dyld",
];
const CACHE_NAMES: [&str; 4] = [
    "dyld_shared_cache_arm64e",
    "dyld_shared_cache_arm64",
    "dyld_shared_cache_x86_64h",
    "dyld_shared_cache_x86_64",
];

/// The most files of one bundle that are checked.
const MAX_IN_BUNDLE: usize = 16;

/// The most object files and archives whose search results are reported.
const MAX_OBJECTS_TOLD: usize = 32;

/// macOS, and its relatives.
pub(super) struct MacOs;

impl Platform for MacOs {
    /// By its id, or by the first bytes of the files that may be it.
    fn has_module(&self, search: &Search<'_>) -> bool {
        match &search.request.id {
            Some(ModuleId::MachUuid(_)) => true,
            // Other tools write a UUID like a build id.
            Some(ModuleId::BuildId(id)) if id.as_bytes().len() == 16 => search.has_macos_file(),
            Some(_) => false,
            None => search.has_macos_file(),
        }
    }

    fn find_files(&self, search: &mut Search<'_>) {
        let binary = search.macos_binary();
        search.found.slice = search.requested_macos_id().or_else(|| id_of(binary.as_ref()?));
        if binary.as_ref().is_some_and(MachO::has_debug_info) {
            return;
        }
        let Some(id) = search.found.slice else { return };
        search.found.debug_file = search.macos_debug_file(id);
        if search.found.debug_file.is_none() {
            search.object_files(binary.as_ref());
        }
    }

    fn find_binary(&self, search: &mut Search<'_>) {
        search.macos_binary();
    }
}

impl Search<'_> {
    fn has_macos_file(&self) -> bool {
        let binaries = self.macos_binary_places().into_iter();
        let mut places = binaries.chain(self.bundles().into_iter().flat_map(|bundle| files_of(&bundle)));
        places.any(|path| first_bytes(&path).is_some_and(|start| MAGIC.contains(&start)))
            || self.library_in_cache(|_, _| {}).is_some()
    }

    /// The shared caches on this machine.
    fn shared_caches(&self) -> impl Iterator<Item = PathBuf> {
        let folders = self.paths.symbol_dirs.iter().map(PathBuf::as_path);
        let folders = folders.chain(CACHE_FOLDERS.iter().map(Path::new));
        let caches = folders.flat_map(|folder| CACHE_NAMES.map(|name| folder.join(name)));
        caches.filter(|path| path.is_file())
    }

    /// The shared cache that has the library: by its UUID or, if that is not known, by its path. `tried`
    /// receives the errors of other caches.
    fn library_in_cache(
        &self,
        mut tried: impl FnMut(PathBuf, AttemptOutcome),
    ) -> Option<(OpenFile, DebugId)> {
        let requested = self.requested_macos_id();
        let own = self.request.path.to_string_lossy();
        self.shared_caches().find_map(|path| {
            let ids = open_source(&path, self.budget).and_then(|source| {
                let ids = ids_in_cache(&(source.clone() as SharedSource));
                Ok((source, ids?))
            });
            let (source, ids) = match ids {
                Ok(opened) => opened,
                Err(outcome) => {
                    tried(path, outcome);
                    return None;
                }
            };
            let is_meant = |(id, path): &&(DebugId, String)| {
                requested.map_or(*path == own, |requested| *id == requested)
            };
            let found = ids.iter().find(is_meant);
            if found.is_none() {
                tried(path.clone(), AttemptOutcome::OtherIdentity("libraries of other builds".to_owned()));
            }
            found.map(|(id, _)| (OpenFile { path, source }, *id))
        })
    }

    /// Extracts the image from the shared cache.
    fn image_of_cache(&mut self) -> Option<MachOImage> {
        let mut others = Vec::new();
        let (file, id) = self.library_in_cache(|path, outcome| others.push((path, outcome))).unzip();
        for (path, outcome) in others {
            self.note::<()>(FileRole::Binary, path, Err(outcome));
        }
        let (file, id) = file.zip(id)?;
        let missing = || AttemptOutcome::Unreadable("the library is not in it".to_owned());
        let image = match image_in_cache(&file, id) {
            Ok(image) => image.ok_or_else(missing),
            Err(error) => Err(error.into()),
        };
        let image = self.note(FileRole::Binary, file.path.clone(), image)?;
        self.found.binary = Some(file);
        Some(image)
    }

    /// The requested id.
    fn requested_macos_id(&self) -> Option<DebugId> {
        match &self.request.id {
            Some(ModuleId::BuildId(id)) => Some(DebugId::new(id.as_bytes().try_into().ok()?, 0)),
            Some(id) => Some(id.debug_id()),
            None => self.request.debug_id,
        }
    }

    /// Finds the image alone.
    fn macos_binary(&mut self) -> Option<MachOImage> {
        let requested = self.requested_macos_id();
        let open = |search: &Self, path: &Path| match open_image(path, requested, search.budget)? {
            (image, _) if image.kind() == Kind::DebugSymbols => {
                Err(AttemptOutcome::Unreadable("it holds debug info alone".to_owned()))
            }
            opened => Ok(opened),
        };
        let Some((image, file)) = self.first(FileRole::Binary, self.macos_binary_places(), open) else {
            return self.image_of_cache();
        };
        self.found.binary = Some(file);
        Some(image)
    }

    fn macos_binary_places(&self) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = self.places_of_process().cloned().collect();
        let name = self.macos_name();
        places.extend(
            self.paths.symbol_dirs.iter().filter(|_| !name.is_empty()).map(|folder| folder.join(&name)),
        );
        places
    }

    fn macos_name(&self) -> OsString {
        self.request.path.file_name().unwrap_or_default().to_owned()
    }

    /// The bundles that may have the debug info.
    fn bundles(&self) -> Vec<PathBuf> {
        let binary = self.found.binary.as_ref().map(|file| &file.path);
        let mut names = Vec::new();
        let mut bundles = Vec::new();
        for path in binary.into_iter().chain(self.places_of_process()) {
            // The debug info of `App.app/Contents/MacOS/App` may also be beside its bundle.
            let is_bundle = |folder: &&Path| folder.extension().is_some();
            let outer = path.ancestors().skip(1).filter(is_bundle);
            for path in std::iter::once(path.as_path()).chain(outer) {
                let Some(name) = path.file_name() else { continue };
                let name = with_suffix(name, ".dSYM");
                bundles.push(path.with_file_name(&name));
                names.push(name);
            }
        }
        let uuid = self.found.slice.or_else(|| self.requested_macos_id()).map(uuid_of);
        names.extend(uuid.map(|uuid| format!("{uuid}.dSYM").into()));
        for folder in &self.paths.symbol_dirs {
            bundles.extend(names.iter().map(|name| folder.join(name)));
        }
        without_doubles(bundles)
    }

    fn macos_debug_places(&self, id: DebugId) -> Vec<PathBuf> {
        let name = self.macos_name();
        let flat = with_suffix(&name, ".dwarf");
        let mut places: Vec<PathBuf> = self.bundles().iter().flat_map(|bundle| files_of(bundle)).collect();
        let binary = self.found.binary.as_ref().map(|file| &file.path);
        places.extend(
            binary.into_iter().chain(self.places_of_process()).map(|path| path.with_file_name(&flat)),
        );
        let debug_name = self.macos_debug_name();
        for folder in self.paths.symbol_dirs.iter().filter(|_| !name.is_empty()) {
            places.extend([folder.join(&flat), folder.join(&name)]);
            places.push(folder.join(layouts::symbol_file_name(&debug_name)));
            places.extend(layouts::breakpad(&debug_name, id).map(|path| folder.join(path)));
        }
        without_doubles(places)
    }

    fn macos_debug_name(&self) -> String {
        let provided = layouts::file_name(&self.request.debug_name);
        if provided.is_empty() {
            self.macos_name().to_string_lossy().into_owned()
        } else {
            provided.to_owned()
        }
    }

    /// The file with the debug info: in a bundle, beside the image or in the user's folders, or from a server.
    fn macos_debug_file(&mut self, id: DebugId) -> Option<OpenFile> {
        let mut places = self.macos_debug_places(id);
        // The image itself may be among these places.
        let binary = self.found.binary.as_ref().map(|file| &file.path);
        places.retain(|path| Some(path) != binary);
        let open = |search: &Self, path: &Path| open_debug_file(path, id, search.budget);
        let name = self.macos_debug_name();
        self.first(FileRole::DebugFile, places, open)
            .or_else(|| self.fetch(FileRole::DebugFile, &RemoteFile::Breakpad { name: &name, id }, open))
    }

    /// Records for the first object files whether they still exist. They are opened when they are needed.
    fn object_files(&mut self, binary: Option<&MachOImage>) {
        let folders = self.paths.symbol_dirs.clone();
        let Some(map) = binary.and_then(DebugMap::read) else { return };
        let mut seen = BTreeSet::new();
        let objects = (0..map.len()).filter_map(|number| map.object(number));
        let files = objects.filter(|object| seen.insert(object.file.clone()));
        for object in files.take(MAX_OBJECTS_TOLD) {
            find_object(&object, &folders, self.budget, |path, outcome| {
                let (path, outcome) = (path.to_owned(), outcome.clone());
                let is_used = outcome == AttemptOutcome::Used;
                self.found.tried.push(Attempt { requested: FileRole::ObjectFile, path, outcome });
                is_used
            });
        }
        self.found.split_folders = folders;
    }
}

/// Opens a Mach-O file, or the requested file of a universal one.
fn open_image(
    path: &Path,
    requested: Option<DebugId>,
    budget: Option<&Budget>,
) -> Result<(MachOImage, OpenFile), AttemptOutcome> {
    let source = open_source(path, budget)?;
    let opened = images(&(source.clone() as SharedSource))?;
    let ids: Vec<_> = opened.iter().map(id_text).collect();
    let image = choose(opened, requested).ok_or_else(|| AttemptOutcome::OtherIdentity(ids.join(", ")))?;
    Ok((image, OpenFile { path: path.to_owned(), source }))
}

/// Opens a debug file: one with debug info, or a Breakpad symbol file.
fn open_debug_file(path: &Path, id: DebugId, budget: Option<&Budget>) -> Result<OpenFile, AttemptOutcome> {
    let source = open_source(path, budget)?;
    if let FileKind::Breakpad(symbols) = FileKind::open(source.clone() as SharedSource)? {
        let found = breakpad::debug_id(&symbols)?;
        if found != id {
            return Err(AttemptOutcome::OtherIdentity(format!("debug id {}", found.breakpad())));
        }
        return Ok(OpenFile { path: path.to_owned(), source });
    }
    let (image, file) = open_image(path, Some(id), budget)?;
    if !image.has_debug_info() {
        return Err(AttemptOutcome::Unreadable("it holds no debug info".to_owned()));
    }
    Ok(file)
}

/// The files in a bundle: first the one with the name of the bundle, then the others.
fn files_of(bundle: &Path) -> Vec<PathBuf> {
    let folder = bundle.join("Contents/Resources/DWARF");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.take(MAX_IN_BUNDLE).map(|entry| entry.path()).collect();
    let own = bundle.file_stem().map(OsStr::to_owned).unwrap_or_default();
    found.sort_by_key(|path| (path.file_name() != Some(&own), path.clone()));
    // A missing bundle is reported as its expected file.
    if found.is_empty() { vec![folder.join(own)] } else { found }
}

fn id_text(image: &MachOImage) -> String {
    image.uuid().map_or_else(|| "no UUID".to_owned(), |uuid| format!("UUID {}", uuid.grouped()))
}

/// The UUID in an id, in groups.
fn uuid_of(id: DebugId) -> String {
    let text = id.breakpad();
    let digits = text.get(..32).unwrap_or_default();
    nyquist_object::MachUuid::from_text(digits).map(|uuid| uuid.grouped()).unwrap_or_default()
}
