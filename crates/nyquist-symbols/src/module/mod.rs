//! The symbols of one module: answers from its symbol tables and its debug info together.

mod answers;
#[cfg(feature = "disassembly")]
mod disassembly;
mod functions;

use crate::cache::CachedAnswers;
use crate::debug_answer::DebugAnswer;
use crate::debug_info::DebugInfo;
use crate::dwarf::{Dwarf, DwarfFile, Scratch, SplitFiles, SplitPlaces};
use crate::go::GoTables;
use crate::macho::{MachoFiles, MachoModule};
use crate::provided::ProvidedModule;
use crate::section_contents::SharedSource;
use crate::source_files::special_source_path;
use crate::symbol_table::SymbolTable;
use crate::windows::WindowsFiles;
use crate::{AnswerCache, SymbolFiles, SymbolsError};
pub(crate) use functions::{FunctionPosition, ModuleFunctions};
use nyquist_object::{Elf, ObjectError, Pe, RelativeAddress, Svma};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The symbols and debug info of one module. Threads can share it.
#[derive(Default)]
pub struct ModuleSymbols {
    image_base: Svma,
    /// The files with symbol tables, the best first.
    files: Vec<Elf<SharedSource>>,
    /// The index in `files` of the binary that was mapped, with its code.
    binary: Option<usize>,
    /// The binary, if it is a PE image.
    pe: Option<Pe<SharedSource>>,
    /// The files of a module of macOS.
    macho: Option<MachoFiles>,
    /// The debug info, which is opened when it is first needed. Compressed sections have to be inflated, and
    /// cached answers do not need it.
    debug_info: OnceLock<Option<DebugInfo>>,
    beside: DwarfBeside,
    tables: OnceLock<Vec<SymbolTable>>,
    /// The linkage table, and the functions from the unwind information of a stripped file. They are used
    /// last, and only read if an address is in no other table.
    fallbacks: OnceLock<Vec<SymbolTable>>,
    /// The cached answers.
    cached: Option<CachedAnswers>,
    /// The answers that came with the profile.
    provided: Option<Arc<ProvidedModule>>,
}

/// The parts of a module's DWARF that are not in its own files.
#[derive(Default)]
struct DwarfBeside {
    supplementary: Option<Elf<SharedSource>>,
    package: Option<Elf<SharedSource>>,
    split: SplitPlaces,
}

impl ModuleSymbols {
    /// Reads the headers of the files that were found. A damaged part is left out, and the answers then come
    /// from the next-best source.
    pub fn open(found: &SymbolFiles) -> Result<Self, SymbolsError> {
        Self::open_with(found, None)
    }

    pub(crate) fn open_with(
        found: &SymbolFiles,
        cache: Option<&Arc<AnswerCache>>,
    ) -> Result<Self, SymbolsError> {
        let symbols = match Self::open_files(found) {
            Err(_) if found.provided.is_some() => Self::default(),
            symbols => symbols?,
        };
        let cached = cache.and_then(|cache| cache.open(found));
        Ok(Self { cached, provided: found.provided.clone(), ..symbols })
    }

    fn open_files(found: &SymbolFiles) -> Result<Self, SymbolsError> {
        if let Some(module) = MachoModule::of(found) {
            return Ok(Self::from_macos_files(module));
        }
        if let Some(windows) = WindowsFiles::of(found) {
            return Ok(Self::from_windows_files(windows));
        }
        let open = |file: &crate::OpenFile| {
            Elf::open(file.source.clone() as SharedSource).map_err(|error| unreadable(&file.path, error))
        };
        let debug = found.debug_file.as_ref().map(open).transpose();
        let binary = found.binary.as_ref().map(open).transpose();
        let supplementary = found.supplementary.as_ref().and_then(|file| open(file).ok());
        let package = found.package.as_ref().and_then(|file| open(file).ok());
        let split = SplitPlaces { folders: found.split_folders.clone(), roots: found.roots.clone() };
        let beside = DwarfBeside { supplementary, package, split };
        let (debug, binary) = match (debug, binary) {
            (Err(error), Ok(None) | Err(_)) | (Ok(None), Err(error)) => return Err(error),
            (debug, binary) => (debug.ok().flatten(), binary.ok().flatten()),
        };
        Self::from_files(debug, binary, beside)
    }

    /// Reads an object, a PDB or a Breakpad symbol file in memory, such as the vDSO's image.
    pub fn from_image(image: Vec<u8>) -> Result<Self, SymbolsError> {
        let image = Arc::new(image) as SharedSource;
        if let Some(module) = MachoModule::of_image(&image) {
            return Ok(Self::from_macos_files(module));
        }
        if let Some(windows) = WindowsFiles::of_image(image.clone()) {
            return Ok(Self::from_windows_files(windows));
        }
        let elf = Elf::open(image);
        let elf = elf.map_err(|error| unreadable(Path::new("[image]"), error))?;
        Self::from_files(None, Some(elf), DwarfBeside::default())
    }

    fn from_files(
        debug: Option<Elf<SharedSource>>,
        binary: Option<Elf<SharedSource>>,
        beside: DwarfBeside,
    ) -> Result<Self, SymbolsError> {
        let has_binary = binary.is_some();
        let files: Vec<_> = debug.into_iter().chain(binary).collect();
        let layout = files.last().ok_or(SymbolsError::NoFile)?;
        let image_base = image_base(layout.image_base(), Svma(first_code(layout)));
        let binary = has_binary.then(|| files.len() - 1);
        Ok(Self { image_base, files, binary, beside, ..Self::default() })
    }

    fn opened_debug_info(&self) -> Option<&DebugInfo> {
        self.debug_info.get_or_init(|| self.open_debug_info()).as_ref()
    }

    /// Opens the debug info of the first ELF file that has any.
    fn open_debug_info(&self) -> Option<DebugInfo> {
        let DwarfBeside { supplementary, package, split } = &self.beside;
        let cache = self.cached.as_ref().map(CachedAnswers::cache);
        let open = |file: &Elf<SharedSource>| DwarfFile::open(file, cache);
        let Some(main) = self.files.iter().find_map(open) else {
            let binary = self.binary.and_then(|binary| self.files.get(binary));
            return Some(DebugInfo::Go(Box::new(GoTables::open(binary?)?)));
        };
        let supplementary = supplementary.as_ref().and_then(open);
        let split = SplitFiles::new(package.as_ref(), split.clone());
        let first_code = self.files.last().map_or(0, first_code);
        Some(DebugInfo::Dwarf(Box::new(Dwarf::new(main, supplementary, split, first_code))))
    }

    /// Combines a PE image and its debug info.
    fn from_windows_files(windows: WindowsFiles) -> Self {
        let WindowsFiles { pe, debug_info } = windows;
        let image_base = pe.as_ref().map_or(Svma(0), Pe::image_base);
        Self { image_base, pe, debug_info: debug_info.into(), ..Self::default() }
    }

    /// Combines the files of a module of macOS.
    fn from_macos_files(module: MachoModule) -> Self {
        let MachoModule { files, debug_info } = module;
        let image_base = files.image_base();
        Self { image_base, macho: Some(files), debug_info: debug_info.into(), ..Self::default() }
    }

    /// How the debug info of the code at `address` spells the source file `file`, as [`crate::SourceFrame::file`]
    /// does; `None` if it does not name the file. `file` may have this spelling, or be its special path.
    pub fn named_source(&self, file: &str, address: RelativeAddress) -> Option<String> {
        let svma = address.to_svma(self.image_base);
        let info = self.opened_debug_info()?;
        let unit = info.unit_of(svma.0)?;
        let (special, mut spelled) = (special_source_path(file), None);
        info.names_source(unit, &mut |named| {
            let is_it = special_source_path(named) == special;
            spelled = is_it.then(|| named.to_owned());
            is_it
        });
        spelled
    }

    /// The file with the answers that came with the profile, if they are used, because there is no debug
    /// info.
    pub fn provided_in(&self) -> Option<&Path> {
        self.used_answers().map(ProvidedModule::file)
    }

    /// Whether the answers that came with the profile name the source file `file`, by its path or by its
    /// special path.
    pub fn states_source(&self, file: &str) -> bool {
        let special = special_source_path(file);
        let is_it = |named: &str| special_source_path(named) == special;
        self.used_answers().is_some_and(|provided| provided.names_source(is_it))
    }

    fn used_answers(&self) -> Option<&ProvidedModule> {
        self.provided.as_deref().filter(|_| !self.has_debug_info())
    }

    /// The base of relative addresses.
    pub(crate) fn image_base(&self) -> Svma {
        self.image_base
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        self.opened_debug_info().is_some()
    }

    pub(crate) fn svma(&self, address: RelativeAddress) -> Svma {
        address.to_svma(self.image_base)
    }

    /// The unit of the debug info that contains an address.
    pub(crate) fn unit_of(&self, address: Svma) -> Option<u64> {
        self.opened_debug_info()?.unit_of(address.0)
    }

    /// The answers of the debug info for sorted addresses of one unit.
    pub(crate) fn debug_info(&self, unit: u64, requested: &[u64], scratch: &mut Scratch) -> Vec<DebugAnswer> {
        let found = self.opened_debug_info().map(|info| info.look_up(unit, requested, scratch));
        found.unwrap_or_default()
    }
}

impl std::fmt::Debug for ModuleSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut f = f.debug_struct("ModuleSymbols");
        f.field("image_base", &self.image_base).field("debug_info", &self.debug_info);
        f.finish_non_exhaustive()
    }
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

fn unreadable(path: &Path, source: ObjectError) -> SymbolsError {
    SymbolsError::Object { path: PathBuf::from(path), source }
}
