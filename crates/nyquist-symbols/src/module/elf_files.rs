//! The files of an ELF module: its binary, its debug file, and the parts of its DWARF that are in other files.

use crate::cache::CachedAnswers;
use crate::debug_info::DebugInfo;
use crate::dwarf::{Dwarf, DwarfFile, SplitFiles, SplitPlaces};
use crate::go::GoTables;
use crate::mini_debug_info::mini_debug_info;
use crate::section_contents::SharedSource;
use crate::symbol_table::SymbolTable;
use crate::{OpenFile, Origin, SymbolFiles, SymbolsError};
use nyquist_object::{Elf, ObjectError, Svma};
use std::path::Path;
use std::sync::OnceLock;

/// The files of an ELF module.
#[derive(Default)]
pub(crate) struct ElfFiles {
    debug: Option<Elf<SharedSource>>,
    /// The binary that was mapped, with its code.
    binary: Option<Elf<SharedSource>>,
    supplementary: Option<Elf<SharedSource>>,
    package: Option<Elf<SharedSource>>,
    split: SplitPlaces,
    /// The debug info, which is opened when it is first needed. Compressed sections have to be inflated, and
    /// cached answers do not need it.
    debug_info: OnceLock<Option<DebugInfo>>,
}

impl ElfFiles {
    /// Reads the headers of the files that were found. A damaged file is left out if another one is usable.
    pub(super) fn open(found: &SymbolFiles) -> Result<Self, SymbolsError> {
        let debug = found.debug_file.as_ref().map(open).transpose();
        let binary = found.binary.as_ref().map(open).transpose();
        let (debug, binary) = match (debug, binary) {
            (Ok(None), Ok(None)) => return Err(SymbolsError::NoFile),
            (Err(error), Ok(None) | Err(_)) | (Ok(None), Err(error)) => return Err(error),
            (debug, binary) => (debug.ok().flatten(), binary.ok().flatten()),
        };
        let supplementary = found.supplementary.as_ref().and_then(|file| open(file).ok());
        let package = found.package.as_ref().and_then(|file| open(file).ok());
        let split = SplitPlaces { folders: found.split_folders.clone(), roots: found.roots.clone() };
        Ok(Self { debug, binary, supplementary, package, split, debug_info: OnceLock::new() })
    }

    /// Reads the headers of a file that is in memory.
    pub(super) fn of_bytes(bytes: SharedSource) -> Result<Self, SymbolsError> {
        let binary = Elf::open(bytes).map_err(|error| unreadable(Path::new("[image]"), error))?;
        Ok(Self { binary: Some(binary), ..Self::default() })
    }

    /// The binary that was mapped.
    pub(super) fn binary(&self) -> Option<&Elf<SharedSource>> {
        self.binary.as_ref()
    }

    /// The files with symbol tables, the best first.
    pub(super) fn files(&self) -> impl Iterator<Item = &Elf<SharedSource>> + Clone {
        [&self.debug, &self.binary].into_iter().flatten()
    }

    /// The file that states the addresses.
    fn layout(&self) -> Option<&Elf<SharedSource>> {
        self.binary.as_ref().or(self.debug.as_ref())
    }

    pub(super) fn image_base(&self) -> Svma {
        self.layout().map_or(Svma(0), |elf| image_base(elf.image_base(), Svma(first_code(elf))))
    }

    pub(super) fn debug_info(&self, cached: Option<&CachedAnswers>) -> Option<&DebugInfo> {
        self.debug_info.get_or_init(|| self.open_debug_info(cached)).as_ref()
    }

    pub(super) fn opened_debug_info(&self) -> Option<&Option<DebugInfo>> {
        self.debug_info.get()
    }

    /// Opens the debug info of the first file that has any.
    fn open_debug_info(&self, cached: Option<&CachedAnswers>) -> Option<DebugInfo> {
        let cache = cached.map(CachedAnswers::cache);
        let open = |file: &Elf<SharedSource>| DwarfFile::open(file, cache);
        let Some(main) = self.files().find_map(open) else {
            return Some(DebugInfo::Go(Box::new(GoTables::open(self.binary()?)?)));
        };
        let supplementary = self.supplementary.as_ref().and_then(open);
        let split = SplitFiles::new(self.package.as_ref(), self.split.clone());
        let first_code = self.layout().map_or(0, first_code);
        Some(DebugInfo::Dwarf(Box::new(Dwarf::new(main, supplementary, split, first_code))))
    }

    pub(super) fn tables(&self, cached: Option<&CachedAnswers>) -> Vec<SymbolTable> {
        let read = |name, origin| self.files().find_map(|elf| SymbolTable::read(elf, name, origin, cached));
        if let Some(symbols) = read(".symtab", Origin::SymbolTable) {
            return vec![symbols];
        }
        let mini = self.files().find_map(mini_debug_info);
        let mini = mini.and_then(|elf| SymbolTable::read(&elf, ".symtab", Origin::MiniDebugInfo, None));
        mini.into_iter().chain(read(".dynsym", Origin::DynamicSymbols)).collect()
    }

    /// The linkage table, and the functions from the unwind information of a stripped file.
    pub(super) fn fallbacks(
        &self,
        tables: &[SymbolTable],
        cached: Option<&CachedAnswers>,
    ) -> Vec<SymbolTable> {
        let full = [Origin::SymbolTable, Origin::MiniDebugInfo];
        let is_stripped = !tables.iter().any(|table| full.contains(&table.origin));
        let plt = self.binary().and_then(SymbolTable::of_plt);
        let go = match self.debug_info(cached) {
            Some(DebugInfo::Go(tables)) => SymbolTable::of_go(tables),
            _ => None,
        };
        let unnamed = self.binary().filter(|_| is_stripped).and_then(SymbolTable::of_unwind_info);
        plt.into_iter().chain(go).chain(unnamed).collect()
    }
}

fn open(file: &OpenFile) -> Result<Elf<SharedSource>, SymbolsError> {
    Elf::open(file.source.clone() as SharedSource).map_err(|error| unreadable(&file.path, error))
}

fn unreadable(path: &Path, source: ObjectError) -> SymbolsError {
    SymbolsError::Object { path: path.to_owned(), source }
}

/// The address at which a file's first executable segment begins.
fn first_code(elf: &Elf<SharedSource>) -> u64 {
    let code = elf.segments().iter().filter(|segment| segment.executable);
    code.map(|segment| segment.address.0).min().unwrap_or(0)
}

/// The base of relative addresses. Kernels have a segment at 0, from which 32 bits do not reach their code.
fn image_base(lowest: Svma, first_code: Svma) -> Svma {
    let is_near = first_code.offset_from(lowest).is_none_or(|distance| u32::try_from(distance).is_ok());
    if is_near { lowest } else { Svma(first_code.0 & !0xfff) }
}
