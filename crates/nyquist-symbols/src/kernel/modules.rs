//! Modules of the running kernel: their files with debug info on the disk, relocated to the addresses at
//! which the kernel loaded their sections.

use super::section_addresses::sections;
use crate::section_contents::SharedSource;
use crate::unpack::unpack_file;
use crate::{
    AddressInfo, Attempt, AttemptOutcome, FileRole, Finder, ModuleRequest, ModuleSymbols, SymbolFiles,
};
use nyquist_object::elf::build_id_in_notes;
use nyquist_object::{Avma, BuildId, Elf, ModuleId, RelativeAddress, Svma, placed};
use rustc_hash::FxHashMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// The folders of the distributions' packages with debug info, which have the layout of `/lib/modules`.
const DEBUG_FOLDERS: [&str; 2] = ["usr/lib/debug/lib/modules", "usr/lib/debug/usr/lib/modules"];

/// The folder of modules.
const FOLDER: &str = "lib/modules";

/// The suffixes of modules that `modules_install` compresses.
const COMPRESSED: [&str; 3] = [".xz", ".zst", ".gz"];

/// The most bytes of the list of modules that are read. Real lists have half a megabyte.
const MAX_LIST: usize = 16 << 20;

/// Where the files of modules are looked for.
#[derive(Debug)]
pub(crate) struct ModuleFiles {
    finder: Finder,
    root: PathBuf,
    release: String,
    /// The path of each module's file below the folder of the release, without the suffix of a compression,
    /// by the module's name.
    listed: OnceLock<FxHashMap<String, String>>,
}

/// A module with debug info.
#[derive(Debug)]
pub(crate) struct PlacedModule {
    symbols: ModuleSymbols,
    found: SymbolFiles,
}

impl ModuleFiles {
    pub(crate) fn new(finder: &Finder, root: &Path, release: &str) -> Self {
        let (finder, root, release) = (finder.clone().offline(), root.to_owned(), release.to_owned());
        Self { finder, root, release, listed: OnceLock::new() }
    }

    /// The module with this name, if its file with debug info is on this machine, and its load addresses are
    /// known.
    pub(crate) fn open(&self, name: &str) -> Option<PlacedModule> {
        // The name is used as a folder's name.
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        let loaded = self.root.join("sys/module").join(name);
        let notes = fs::read(loaded.join("notes/.note.gnu.build-id")).ok()?;
        let id = build_id_in_notes(&notes, cfg!(target_endian = "little"))?;
        let files = self.finder.kernel_files();
        let known = files.as_ref().and_then(|files| files.sections(name)).cloned();
        let sections = known.unwrap_or_else(|| sections(&loaded.join("sections"), ""));
        if sections.is_empty() {
            return None;
        }
        let listed = self.listed.get_or_init(|| self.list()).get(name);
        let below = listed.cloned().unwrap_or_else(|| format!("{name}.ko"));
        let (elf, found) = self.find(&below, &id)?;
        let image = placed(&elf, |name| sections.get(name).copied()).ok()?;
        let symbols = self.finder.open_image(image).ok().filter(ModuleSymbols::has_debug_info)?;
        Some(PlacedModule { symbols, found })
    }

    /// The modules that `depmod` has listed. Each line has a module's path, and the paths of the modules that
    /// it needs.
    fn list(&self) -> FxHashMap<String, String> {
        let list = self.root.join(FOLDER).join(&self.release).join("modules.dep");
        let Ok(mut list) = fs::read(list) else { return FxHashMap::default() };
        list.truncate(MAX_LIST);
        let list = String::from_utf8_lossy(&list);
        let entry = |line: &str| {
            let (path, _) = line.split_once(':')?;
            let path = COMPRESSED.iter().find_map(|suffix| path.strip_suffix(suffix)).unwrap_or(path);
            let name = path.rsplit('/').next()?.strip_suffix(".ko")?.replace('-', "_");
            let is_below = !path.starts_with('/') && path.split('/').all(|part| part != "..");
            is_below.then(|| (name, path.to_owned()))
        };
        list.lines().filter_map(entry).collect()
    }

    /// The file with debug info of the module at the path `below` the folder of the release.
    fn find(&self, below: &str, id: &BuildId) -> Option<(Elf<SharedSource>, SymbolFiles)> {
        let mut places = Vec::new();
        for folder in DEBUG_FOLDERS {
            let place = self.root.join(folder).join(&self.release).join(below);
            places.push(place.with_added_extension("debug"));
            places.push(place);
        }
        let path = self.root.join(FOLDER).join(&self.release).join(below);
        let request = ModuleRequest {
            path: path.clone(),
            id: Some(ModuleId::BuildId(id.clone())),
            alternatives: places,
            ..ModuleRequest::default()
        };
        let mut found = self.finder.find(&request);
        let file = found.debug_file.as_ref().or(found.binary.as_ref());
        let elf = file.and_then(|file| Elf::open(file.source.clone() as SharedSource).ok());
        match elf.filter(has_debug_info) {
            Some(elf) => Some((elf, found)),
            None => COMPRESSED.iter().find_map(|suffix| {
                let path = PathBuf::from(format!("{}{suffix}", path.display()));
                let elf = unpacked(&path, id)?;
                found.tried.push(Attempt {
                    requested: FileRole::Binary,
                    path,
                    outcome: AttemptOutcome::Used,
                });
                Some((elf, found.clone()))
            }),
        }
    }
}

impl PlacedModule {
    pub(crate) fn symbol_files(&self) -> &SymbolFiles {
        &self.found
    }

    /// The answers of the module's debug info for addresses in memory, in their order.
    pub(crate) fn symbolicate(&self, addresses: &[Avma], threads: NonZeroUsize) -> Vec<AddressInfo> {
        // An address that is not in the file is replaced by one that has no answer.
        let relative = |address: &Avma| {
            RelativeAddress::from_svma(Svma(address.0), self.symbols.image_base())
                .unwrap_or(RelativeAddress(u32::MAX))
        };
        let requested: Vec<_> = addresses.iter().map(relative).collect();
        self.symbols.symbolicate(&requested, threads, &AtomicBool::new(false))
    }
}

fn has_debug_info(elf: &Elf<SharedSource>) -> bool {
    [".debug_info", ".zdebug_info"].iter().any(|name| elf.section(name).is_some())
}

/// The module in a compressed file, if it is the right one and has debug info.
fn unpacked(path: &Path, id: &BuildId) -> Option<Elf<SharedSource>> {
    let elf = Elf::open(Arc::new(unpack_file(path)?) as SharedSource).ok()?;
    (elf.build_id().as_ref() == Some(id) && has_debug_info(&elf)).then_some(elf)
}
