//! The symbols of one module: answers from its symbol tables and its debug info together.

mod functions;

use crate::cache::{Extent, KeptAnswers, push_unless_covered};
use crate::debug_answer::DebugAnswer;
use crate::debug_info::DebugInfo;
use crate::disassemble::{MAX_CODE, disassemble};
use crate::dwarf::{Dwarf, DwarfFile, Scratch, SplitFiles, SplitPlaces};
use crate::go::GoTables;
use crate::macho::{MachoFiles, MachoModule};
use crate::section::Source;
use crate::source_files::special_source_path;
use crate::stated::StatedModule;
use crate::symbol_table::SymbolTable;
use crate::windows::WindowsFiles;
use crate::{AddressInfo, AnswerCache, Disassembly, DisassemblyError, SymbolFiles, SymbolsError};
pub(crate) use functions::{FunctionPosition, Functions};
use nyquist_object::elf::Segment;
use nyquist_object::{Architecture, ByteSource, Elf, ObjectError, Pe, RelativeAddress, Svma};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The symbols and debug info of one module. Threads can share it.
#[derive(Default)]
pub struct ModuleSymbols {
    image_base: Svma,
    /// The files with symbol tables, the best first.
    files: Vec<Elf<Source>>,
    /// The index in `files` of the binary that was mapped, with its code.
    binary: Option<usize>,
    /// The binary, if it is a PE image.
    pe: Option<Pe<Source>>,
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
    kept: Option<KeptAnswers>,
    /// The answers that came with the profile.
    stated: Option<Arc<StatedModule>>,
}

/// The parts of a module's DWARF that are not in its own files.
#[derive(Default)]
struct DwarfBeside {
    supplementary: Option<Elf<Source>>,
    package: Option<Elf<Source>>,
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
            Err(_) if found.stated.is_some() => Self::default(),
            symbols => symbols?,
        };
        let kept = cache.and_then(|cache| cache.open(found));
        Ok(Self { kept, stated: found.stated.clone(), ..symbols })
    }

    fn open_files(found: &SymbolFiles) -> Result<Self, SymbolsError> {
        if let Some(module) = MachoModule::of(found) {
            return Ok(Self::from_macos_files(module));
        }
        if let Some(windows) = WindowsFiles::of(found) {
            return Ok(Self::from_windows_files(windows));
        }
        let open = |file: &crate::OpenFile| {
            Elf::open(file.source.clone() as Source).map_err(|error| unreadable(&file.path, error))
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
        let image = Arc::new(image) as Source;
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
        debug: Option<Elf<Source>>,
        binary: Option<Elf<Source>>,
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
        let cache = self.kept.as_ref().map(KeptAnswers::cache);
        let open = |file: &Elf<Source>| DwarfFile::open(file, cache);
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

    /// Answers for one address.
    pub fn lookup(&self, address: RelativeAddress) -> AddressInfo {
        if let Some(known) = self.available_answers(&[address]).pop().flatten() {
            return Arc::unwrap_or_clone(known);
        }
        let svma = address.to_svma(self.image_base);
        let unit = self.unit_of(svma);
        let found = unit.map(|unit| self.debug_info(unit, &[svma.0], &mut Scratch::default()));
        let functions = self.functions();
        functions.address_info(functions.around(svma), found.and_then(|mut found| found.pop()))
    }

    /// The machine code from `start` on as text: `size` bytes of it, or up to the function's end if this is
    /// requested.
    pub fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, DisassemblyError> {
        let (architecture, segments, source) = self.binary().ok_or(DisassemblyError::NoBinary)?;
        let address = self.svma(start);
        let function = self.functions().around(address).filter(|_| until_function_end);
        let rest = function.and_then(|function| function.range.end.offset_from(address));
        let rest = u32::try_from(rest.unwrap_or(0)).unwrap_or(MAX_CODE);
        let code = self.code(&segments, source, start, size.max(rest).min(MAX_CODE))?;
        disassemble(architecture, &code, start, address, |target| self.name_of_target(target))
    }

    /// The binary's instruction set, its mapped segments, and its bytes.
    fn binary(&self) -> Option<(Architecture, Cow<'_, [Segment]>, &Source)> {
        if let Some(pe) = &self.pe {
            return Some((pe.architecture(), pe.segments().into(), pe.source()));
        }
        if let Some(image) = self.macho.as_ref().and_then(MachoFiles::binary) {
            return Some((image.architecture(), MachoFiles::segments(image).into(), image.source()));
        }
        let elf = self.binary.and_then(|number| self.files.get(number))?;
        Some((elf.architecture(), elf.segments().into(), elf.source()))
    }

    /// The bytes of the code at `start`, up to the end of their segment.
    fn code(
        &self,
        segments: &[Segment],
        source: &Source,
        start: RelativeAddress,
        size: u32,
    ) -> Result<Vec<u8>, DisassemblyError> {
        let address = self.svma(start);
        let inside = |segment: &&Segment| {
            let offset = address.offset_from(segment.address);
            segment.executable && offset.is_some_and(|offset| offset < segment.file_size)
        };
        let no_code = DisassemblyError::NoCode(start);
        let Some(segment) = segments.iter().find(inside) else { return Err(no_code) };
        let offset = address.0 - segment.address.0;
        let len = u64::from(size).min(segment.file_size - offset);
        let Some(file_offset) = segment.offset.checked_add(offset) else { return Err(no_code) };
        Ok(source.read_range(file_offset.0, len)?)
    }

    /// The name of a called function, or of a place within one, such as `name+0x10`.
    fn name_of_target(&self, target: Svma) -> Option<String> {
        let function = self.functions().around(target)?;
        let offset = target.offset_from(function.range.start)?;
        Some(if offset == 0 { function.name.to_string() } else { format!("{}+{offset:#x}", function.name) })
    }

    /// How the debug info of the code at `address` spells the source file `file`, as [`crate::Frame::file`]
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
    pub fn stated_in(&self) -> Option<&Path> {
        self.used_answers().map(StatedModule::file)
    }

    /// Whether the answers that came with the profile name the source file `file`, by its path or by its
    /// special path.
    pub fn states_source(&self, file: &str) -> bool {
        let special = special_source_path(file);
        let is_it = |named: &str| special_source_path(named) == special;
        self.used_answers().is_some_and(|stated| stated.names_source(is_it))
    }

    fn used_answers(&self) -> Option<&StatedModule> {
        self.stated.as_deref().filter(|_| !self.has_debug_info())
    }

    /// The available answers to `wanted`, which are sorted, without a look-up: those that came with the
    /// profile, and cached ones.
    pub(crate) fn available_answers(&self, wanted: &[RelativeAddress]) -> Vec<Option<Arc<AddressInfo>>> {
        let mut known = match &self.kept {
            Some(kept) => kept.find(wanted),
            None => vec![None; wanted.len()],
        };
        if let Some(stated) = self.used_answers() {
            for (known, address) in known.iter_mut().zip(wanted) {
                if let Some(info) = stated.find(*address) {
                    *known = Some(Arc::clone(info));
                }
            }
        }
        known
    }

    /// Stores answers, whose addresses ascend, in the cache. Answers of units in `.dwo` files are not stored,
    /// because these files may appear, change or disappear.
    pub fn keep<'a>(&self, answers: impl Iterator<Item = (RelativeAddress, &'a AddressInfo)>) {
        let functions = self.tables.get().map(|_| self.functions());
        self.keep_answers(answers, functions.as_ref());
    }

    /// As [`ModuleSymbols::keep`], given the functions that were used because there was no debug info.
    pub(crate) fn keep_answers<'a>(
        &self,
        answers: impl Iterator<Item = (RelativeAddress, &'a AddressInfo)>,
        functions: Option<&Functions<'_>>,
    ) {
        // Debug info that was never opened is not the source of any answer.
        let opened = self.debug_info.get();
        let reads_others =
            opened.is_some_and(|info| info.as_ref().is_some_and(DebugInfo::reads_single_files));
        let Some(kept) = self.kept.as_ref().filter(|_| !reads_others) else { return };
        let functions = functions.filter(|_| opened.is_some_and(Option::is_none));
        let mut all = Vec::new();
        for (address, info) in answers {
            let extent = functions.and_then(|functions| functions.extent(address));
            push_unless_covered(&mut all, extent.unwrap_or(Extent::of(address)), info);
        }
        kept.keep(&all);
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
    pub(crate) fn debug_info(&self, unit: u64, wanted: &[u64], scratch: &mut Scratch) -> Vec<DebugAnswer> {
        let found = self.opened_debug_info().map(|info| info.look_up(unit, wanted, scratch));
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
fn first_code(elf: &Elf<Source>) -> u64 {
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::{Finder, ModuleRequest, SearchPaths};
    use std::sync::atomic::AtomicBool;

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn kept_answers_need_no_debug_info() {
        let folder = std::env::temp_dir().join(format!("nyquist-kept-{}", std::process::id()));
        let finder = Finder::new(SearchPaths::default()).with_cache(Arc::new(AnswerCache::new(&folder)));
        let path = std::env::current_exe().unwrap();
        let found = finder.find(&ModuleRequest { path, ..ModuleRequest::default() });
        let ask = || {
            let module = finder.open(&found).unwrap();
            let text = module.files[0].section(".text").unwrap().address;
            let address = RelativeAddress::from_svma(text, module.image_base).unwrap();
            let answers = module.symbolicate(&[address], NonZeroUsize::MIN, &AtomicBool::new(false));
            (answers, module.debug_info.get().is_some())
        };
        let [(first, first_opened), (second, second_opened)] = [ask(), ask()];
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, second);
        assert_eq!([first_opened, second_opened], [true, false]);
    }
}
