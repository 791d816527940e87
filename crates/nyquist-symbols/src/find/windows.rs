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

use super::open::first_bytes;
use super::search::{Platform, Search, without_doubles};
use super::{AttemptOutcome, FileRole, OpenFile, open_source};
use crate::RemoteFile;
use crate::file_kind::FileKind;
use crate::layouts;
use crate::section_contents::SharedSource;
use nyquist_object::{DebugId, ModuleId, Pe, PeCodeId};
use nyquist_resources::Budget;
use nyquist_system::is_regular;
use std::path::{Path, PathBuf};

/// The suffixes of the names of images and PDBs.
const SUFFIXES: [&str; 8] = [".exe", ".dll", ".sys", ".pdb", ".ocx", ".drv", ".cpl", ".efi"];

/// Windows, and programs for it that run elsewhere.
pub(super) struct Windows;

impl Platform for Windows {
    /// By its ids, its name, or the first bytes of the file.
    fn has_module(&self, search: &Search<'_>) -> bool {
        match search.request.id {
            Some(ModuleId::Pe(_)) => true,
            Some(_) => false,
            None => {
                let is_elsewhere = || !search.places_of_process().any(|path| is_regular(path));
                search.places_of_process().any(|path| first_bytes(path) == Some(*b"MZ"))
                    || (search.has_name_of_windows() && is_elsewhere())
            }
        }
    }

    fn find_files(&self, search: &mut Search<'_>) {
        let image = search.image();
        let id = search.requested_debug_id().or_else(|| image.as_ref()?.id().ok().map(|id| id.debug));
        let Some(id) = id else { return };
        let (name, places) = search.debug_places(image.as_ref(), id);
        let open = |search: &Search<'_>, path: &Path| open_debug_file(path, id, search.budget);
        let found = search.first(FileRole::DebugFile, places, open).or_else(|| {
            let files = [RemoteFile::Pdb { name: &name, id }, RemoteFile::Breakpad { name: &name, id }];
            files.iter().find_map(|file| search.fetch(FileRole::DebugFile, file, open))
        });
        search.found.debug_file = found;
    }

    fn find_binary(&self, search: &mut Search<'_>) {
        search.image();
    }
}

impl Search<'_> {
    fn has_name_of_windows(&self) -> bool {
        let path = self.request.path.to_string_lossy().to_ascii_lowercase();
        let debug_name = self.request.debug_name.to_ascii_lowercase();
        [path, debug_name].iter().any(|name| SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
    }

    /// Finds the image alone.
    fn image(&mut self) -> Option<Pe<SharedSource>> {
        let mut paths: Vec<PathBuf> = self.places_of_process().cloned().collect();
        let name = layouts::file_name(&self.request.path.to_string_lossy()).to_owned();
        let code_id = self.requested_code_id();
        let stored = code_id.and_then(|id| layouts::symbol_store_image(&name, id));
        for folder in self.paths.symbol_dirs.iter().filter(|_| !name.is_empty()) {
            paths.push(folder.join(&name));
            paths.extend(stored.iter().map(|stored| folder.join(stored)));
        }
        let open = |search: &Self, path: &Path| search.open_image(path);
        let (pe, file) = self.first(FileRole::Binary, paths, open).or_else(|| {
            let code_id = code_id?.to_string();
            self.fetch(FileRole::Binary, &RemoteFile::Pe { name: &name, code_id: &code_id }, open)
        })?;
        self.found.binary = Some(file);
        Some(pe)
    }

    /// Opens the image if it has the requested identity.
    fn open_image(&self, path: &Path) -> Result<(Pe<SharedSource>, OpenFile), AttemptOutcome> {
        let (FileKind::Pe(pe), file) = open(path, self.budget)? else {
            return Err(AttemptOutcome::Unreadable("it is not a PE image".to_owned()));
        };
        let id = pe.id()?;
        if self.requested_code_id().is_some_and(|requested| requested != id.code) {
            return Err(AttemptOutcome::OtherIdentity(format!("code id {}", id.code)));
        }
        if self.requested_debug_id().is_some_and(|requested| requested != id.debug) {
            return Err(AttemptOutcome::OtherIdentity(id_text(Some(id.debug))));
        }
        Ok((pe, file))
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
        (name, without_doubles(places))
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
}

/// Opens a PDB or a Breakpad symbol file with this id.
fn open_debug_file(path: &Path, id: DebugId, budget: Option<&Budget>) -> Result<OpenFile, AttemptOutcome> {
    let (kind, file) = open(path, budget)?;
    match kind {
        FileKind::Pdb(_) | FileKind::Breakpad(_) => match kind.windows_debug_id()? {
            Some(found) if found == id => Ok(file),
            found => Err(AttemptOutcome::OtherIdentity(id_text(found))),
        },
        FileKind::Pe(_) | FileKind::Other => {
            Err(AttemptOutcome::Unreadable("it is not a debug file".to_owned()))
        }
    }
}

fn open(path: &Path, budget: Option<&Budget>) -> Result<(FileKind, OpenFile), AttemptOutcome> {
    let source = open_source(path, budget)?;
    let kind = FileKind::open(source.clone() as SharedSource)?;
    Ok((kind, OpenFile { path: path.to_owned(), source }))
}

fn id_text(id: Option<DebugId>) -> String {
    id.map_or_else(|| "no id".to_owned(), |id| format!("debug id {}", id.breakpad()))
}
