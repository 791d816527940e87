//! Modules of macOS: Mach-O images, the files in their `.dSYM` bundles, and the object files that they were
//! linked from.

#[cfg(feature = "disassembly")]
mod code;
mod contents;
mod debug_map;
mod images;
pub(crate) mod objects;
mod shared_cache;
mod symbols;

pub use contents::MachoContents;
pub(crate) use debug_map::DebugMap;
pub(crate) use images::{MachOImage, choose, id_of, images};
use objects::ObjectFiles;
pub(crate) use objects::find_object;
pub(crate) use shared_cache::{begins_as_cache, ids_in_cache, image_in_cache};

use crate::debug_info::DebugInfo;
use crate::dwarf::{Dwarf, DwarfFile, SplitFiles};
use crate::file_kind::FileKind;
use crate::section_contents::SharedSource;
use crate::symbol_table::SymbolTable;
use crate::{OpenFile, SymbolFiles};
use nyquist_object::{MachO, Svma};
use std::path::PathBuf;

/// The files of a module of macOS.
pub(crate) struct MachoFiles {
    /// The image that was mapped, with its code.
    binary: Option<MachOImage>,
    /// The file in its `.dSYM`.
    debug: Option<MachOImage>,
    pub(crate) debug_info: Option<DebugInfo>,
}

impl MachoFiles {
    /// Opens the files that were found. `None` if they are not of macOS. Damaged files are left out.
    pub(crate) fn open(found: &SymbolFiles) -> Option<Self> {
        let source = |file: &OpenFile| file.source.clone() as SharedSource;
        let open = |file: &OpenFile| {
            if begins_as_cache(&source(file)) {
                return image_in_cache(file, found.slice?).ok().flatten();
            }
            choose(images(&source(file)).ok()?, found.slice)
        };
        let binary = found.binary.as_ref().and_then(open);
        let debug = found.debug_file.as_ref().and_then(open);
        let image_base = binary.as_ref().map_or(Svma(0), MachO::image_base);
        let breakpad = found.debug_file.as_ref().and_then(|file| FileKind::open(source(file)).ok());
        let breakpad = breakpad.and_then(|file| DebugInfo::of_file(file, image_base));
        Self::join(binary, debug, breakpad, found.split_folders.clone())
    }

    /// Opens a file that is in memory.
    pub(crate) fn of_bytes(source: &SharedSource) -> Option<Self> {
        let image = choose(images(source).ok()?, None)?;
        Self::join(Some(image), None, None, Vec::new())
    }

    fn join(
        binary: Option<MachOImage>,
        debug: Option<MachOImage>,
        breakpad: Option<DebugInfo>,
        folders: Vec<PathBuf>,
    ) -> Option<Self> {
        if binary.is_none() && debug.is_none() {
            return None;
        }
        let dwarf = [&debug, &binary].into_iter().flatten().find_map(dwarf);
        let objects =
            || ObjectFiles::of(binary.as_ref()?, folders).map(|files| DebugInfo::Objects(Box::new(files)));
        let debug_info = dwarf.or(breakpad).or_else(objects);
        Some(Self { binary, debug, debug_info })
    }

    /// The preferred address of the image.
    pub(crate) fn image_base(&self) -> Svma {
        self.binary.as_ref().or(self.debug.as_ref()).map_or(Svma(0), MachO::image_base)
    }

    /// The tables of names, the best first: the symbol table, which names all functions, the exports of the
    /// image, and the public symbols of a Breakpad file. A `.dSYM` has the complete symbol table, because the
    /// image may be stripped.
    pub(crate) fn tables(&self) -> Vec<SymbolTable> {
        let starts = self.function_starts();
        let mut files = [&self.debug, &self.binary].into_iter().flatten();
        let symbols = files.find_map(|file| symbols::table(file, &starts));
        let exports = self.binary.as_ref().and_then(|image| symbols::exports(image, &starts));
        let publics = self.debug_info.as_ref().and_then(DebugInfo::public_symbols);
        symbols.into_iter().chain(exports).chain(publics).collect()
    }

    /// The tables that are used if no other table has an answer: stubs of imported functions, and starts of
    /// functions.
    pub(crate) fn fallbacks(&self) -> Vec<SymbolTable> {
        let stubs = self.binary.as_ref().and_then(symbols::stubs);
        let unnamed = self.binary.as_ref().and_then(|image| symbols::unnamed(image, &self.function_starts()));
        stubs.into_iter().chain(unnamed).collect()
    }

    /// Where functions begin (`LC_FUNCTION_STARTS`), in order.
    fn function_starts(&self) -> Vec<u64> {
        let of = |image: &MachOImage| {
            let starts = image.function_starts().unwrap_or_default();
            let base = image.image_base();
            starts.into_iter().map(|start| start.to_svma(base).0).collect::<Vec<_>>()
        };
        let files = [&self.binary, &self.debug].into_iter().flatten();
        files.map(of).find(|starts| !starts.is_empty()).unwrap_or_default()
    }
}

/// The DWARF in one file.
fn dwarf(file: &MachOImage) -> Option<DebugInfo> {
    let main = DwarfFile::open_macho(file)?;
    let code = file.sections().iter().filter(|section| section.is_code());
    let first_code = code.map(|section| section.address.0).min().unwrap_or(0);
    Some(DebugInfo::Dwarf(Box::new(Dwarf::new(main, None, SplitFiles::default(), first_code))))
}
