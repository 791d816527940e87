//! Finds the files of a module of Windows: its image, and a PDB or a Breakpad symbol file.
//!
//! The order of the places:
//!
//! 1. the **image**: the alternatives, the recorded path, and in each of the user's folders `NAME` and
//!    `NAME/TIMESTAMPSIZE/NAME` as a symbol store has it;
//! 2. the **PDB**: beside the image, at the path in the image, and in each of the user's folders `PDB`,
//!    `PDB/GUIDAGE/PDB` as a symbol store has it;
//! 3. a **Breakpad symbol file** in the same folders: `NAME.sym`, `PDB/ID/NAME.sym`.
//!
//! If none of these places has the image, or debug info, it is fetched with a [`Fetch`](crate::Fetch).
//!
//! The GUID and the age must be those in the image or in the recording.

use super::{Attempt, AttemptOutcome, FileRole, OpenFile, Search, open_source};
use crate::RemoteFile;
use crate::file_kind::FileKind;
use crate::layouts;
use crate::section_contents::SharedSource;
use nyquist_object::{DebugId, ModuleId, Pe, PeCodeId};
use nyquist_system::is_regular;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The suffixes of the names of images and PDBs.
const SUFFIXES: [&str; 8] = [".exe", ".dll", ".sys", ".pdb", ".ocx", ".drv", ".cpl", ".efi"];

impl Search<'_> {
    /// Whether the module is one of Windows: by its ids, its name, or the first bytes of the file.
    pub(crate) fn is_of_windows(&self) -> bool {
        match self.request.id {
            Some(ModuleId::Pe(_)) => true,
            Some(_) => false,
            None => {
                let is_elsewhere = || !self.places_of_process().any(|path| is_regular(path));
                self.places_of_process().any(|path| begins_as_image(path))
                    || (self.has_name_of_windows() && is_elsewhere())
            }
        }
    }

    fn has_name_of_windows(&self) -> bool {
        let path = self.request.path.to_string_lossy().to_ascii_lowercase();
        let debug_name = self.request.debug_name.to_ascii_lowercase();
        [path, debug_name].iter().any(|name| SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
    }

    pub(crate) fn places_of_process(&self) -> impl Iterator<Item = &PathBuf> {
        self.request.alternatives.iter().chain([&self.request.path])
    }

    /// Finds the image and its debug info.
    pub(crate) fn run_for_windows(&mut self) {
        let image = self.image();
        let id = self.requested_debug_id().or_else(|| image.as_ref()?.id().ok().map(|id| id.debug));
        let Some(id) = id else { return };
        let check = |kind: &FileKind| match kind {
            FileKind::Pdb(_) | FileKind::Breakpad(_) => match kind.windows_debug_id() {
                Ok(Some(found)) if found == id => AttemptOutcome::Used,
                Ok(found) => AttemptOutcome::OtherIdentity(id_text(found)),
                Err(error) => AttemptOutcome::Unreadable(error.to_string()),
            },
            FileKind::Pe(_) | FileKind::Other => {
                AttemptOutcome::Unreadable("it is not a debug file".to_owned())
            }
        };
        let (name, places) = self.debug_places(image.as_ref(), id);
        if self.first_of_windows(FileRole::DebugFile, places, check).is_none() {
            let files = [RemoteFile::Pdb { name: &name, id }, RemoteFile::Breakpad { name: &name, id }];
            files.iter().find_map(|file| self.fetch_of_windows(FileRole::DebugFile, file, check));
        }
    }

    /// Finds the image alone.
    pub(crate) fn image(&mut self) -> Option<Pe<SharedSource>> {
        let mut paths: Vec<PathBuf> = self.places_of_process().cloned().collect();
        let name = layouts::file_name(&self.request.path.to_string_lossy()).to_owned();
        let stored = self.requested_code_id().and_then(|id| layouts::symbol_store_image(&name, id));
        for folder in self.paths.symbol_dirs.iter().filter(|_| !name.is_empty()) {
            paths.push(folder.join(&name));
            paths.extend(stored.iter().map(|stored| folder.join(stored)));
        }
        let (code_id, debug_id) = (self.requested_code_id(), self.requested_debug_id());
        let check = |kind: &FileKind| {
            let FileKind::Pe(pe) = kind else {
                return AttemptOutcome::Unreadable("it is not a PE image".to_owned());
            };
            match pe.id() {
                Err(error) => AttemptOutcome::Unreadable(error.to_string()),
                Ok(id) if code_id.is_some_and(|requested| requested != id.code) => {
                    AttemptOutcome::OtherIdentity(format!("code id {}", id.code))
                }
                Ok(id) if debug_id.is_some_and(|requested| requested != id.debug) => {
                    AttemptOutcome::OtherIdentity(id_text(Some(id.debug)))
                }
                Ok(_) => AttemptOutcome::Used,
            }
        };
        let found = self.first_of_windows(FileRole::Binary, paths, check).or_else(|| {
            let code_id = code_id?.to_string();
            self.fetch_of_windows(FileRole::Binary, &RemoteFile::Pe { name: &name, code_id: &code_id }, check)
        });
        match found {
            Some(FileKind::Pe(pe)) => Some(pe),
            _ => None,
        }
    }

    fn requested_code_id(&self) -> Option<PeCodeId> {
        match &self.request.id {
            Some(ModuleId::Pe(id)) => Some(id.code),
            _ => None,
        }
    }

    fn requested_debug_id(&self) -> Option<DebugId> {
        match &self.request.id {
            Some(ModuleId::Pe(id)) => Some(id.debug),
            _ => self.request.debug_id,
        }
    }

    /// The name of the PDB, and the possible places of it or of a symbol file.
    fn debug_places(&self, image: Option<&Pe<SharedSource>>, id: DebugId) -> (String, Vec<PathBuf>) {
        let recorded = image.and_then(|pe| pe.code_view().ok()?);
        let recorded =
            recorded.map(|view| String::from_utf8_lossy(&view.path).into_owned()).unwrap_or_default();
        let name = self.debug_name(&recorded);
        let symbol_file = layouts::symbol_file_name(&name);
        let found = self.found.binary.as_ref().and_then(|file| file.path.parent());
        let beside: Vec<&Path> = found.into_iter().chain(self.request.path.parent()).collect();
        let folders = &self.paths.symbol_dirs;
        let mut places: Vec<PathBuf> = beside.iter().map(|folder| folder.join(&name)).collect();
        places.extend(Some(PathBuf::from(&recorded)).filter(|path| path.is_absolute()));
        for folder in folders {
            places.push(folder.join(&name));
            places.extend(layouts::symbol_store_pdb(&name, id).map(|path| folder.join(path)));
        }
        places.extend(beside.iter().map(|folder| folder.join(&symbol_file)));
        for folder in folders {
            places.push(folder.join(&symbol_file));
            places.extend(layouts::breakpad(&name, id).map(|path| folder.join(path)));
        }
        let mut seen = Vec::new();
        places.retain(|place| {
            let is_new = !seen.contains(place);
            seen.push(place.clone());
            is_new
        });
        (name, places)
    }

    /// The PDB's name: from the recording or the image, or derived from the module's name.
    fn debug_name(&self, recorded: &str) -> String {
        let provided = [self.request.debug_name.as_str(), recorded].map(layouts::file_name);
        if let Some(name) = provided.into_iter().find(|name| !name.is_empty()) {
            return name.to_owned();
        }
        let path = self.request.path.to_string_lossy();
        let module = layouts::file_name(&path);
        let stem = module.rsplit_once('.').map_or(module, |(stem, _)| stem);
        format!("{stem}.pdb")
    }

    /// Opens one path after the other until one is the requested file, and records all attempts.
    fn first_of_windows(
        &mut self,
        requested: FileRole,
        paths: Vec<PathBuf>,
        check: impl Fn(&FileKind) -> AttemptOutcome,
    ) -> Option<FileKind> {
        for path in paths {
            let (outcome, opened) = match open(&path) {
                Ok((kind, file)) => (check(&kind), Some((kind, file))),
                Err(outcome) => (outcome, None),
            };
            let opened = opened.filter(|_| outcome == AttemptOutcome::Used);
            self.found.tried.push(Attempt { requested, path, outcome });
            if let Some((kind, file)) = opened {
                self.take(requested, file);
                return Some(kind);
            }
        }
        None
    }

    /// Fetches a file, and records the attempts.
    fn fetch_of_windows(
        &mut self,
        requested: FileRole,
        file: &RemoteFile<'_>,
        check: impl Fn(&FileKind) -> AttemptOutcome,
    ) -> Option<FileKind> {
        let check_file = |path: &Path| open(path).map_or_else(|outcome| outcome, |(kind, _)| check(&kind));
        let fetched = self.fetch?.fetch(file, &check_file);
        let tried = fetched.tried.into_iter();
        self.found.tried.extend(tried.map(|(path, outcome)| Attempt { requested, path, outcome }));
        let (kind, file) = open(&fetched.path?).ok()?;
        self.take(requested, file);
        Some(kind)
    }

    fn take(&mut self, requested: FileRole, file: OpenFile) {
        match requested {
            FileRole::Binary => self.found.binary = Some(file),
            _ => self.found.debug_file = Some(file),
        }
    }
}

fn open(path: &Path) -> Result<(FileKind, OpenFile), AttemptOutcome> {
    let source = open_source(path)?;
    let kind = FileKind::open(source.clone() as SharedSource);
    let kind = kind.map_err(|error| AttemptOutcome::Unreadable(error.to_string()))?;
    Ok((kind, OpenFile { path: path.to_owned(), source }))
}

fn begins_as_image(path: &Path) -> bool {
    let mut start = [0; 2];
    let file = nyquist_system::open_regular(path);
    file.and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"MZ"
}

fn id_text(id: Option<DebugId>) -> String {
    id.map_or_else(|| "no id".to_owned(), |id| format!("debug id {}", id.breakpad()))
}
