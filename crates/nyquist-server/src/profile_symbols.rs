//! The symbol source over the binaries and debug files of a profile's libs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use nyquist_object::{DebugId, ModuleId, RelativeAddress};
use nyquist_profile::{Lib, LibId, Profile};
use nyquist_resources::cpu_count;
use nyquist_symbols::{
    Attempt, AttemptOutcome, Disassembly, Finder, KERNEL_LIB, KernelCode, ModuleRequest, ModuleSymbols,
    SourceFiles, SourceFrame, SymbolFiles, folded_names, special_source_path,
};

use crate::generated_code::{GeneratedCode, GeneratedLib, NoGeneratedCode};
use crate::symbol_source::{
    AddressInfo, Assembly, AssemblyInstruction, AssemblyRequest, InlineFrame, LibKey, LookupError,
    SourceRequest, SymbolSource,
};

/// The number of wrong files that are reported to the viewer.
const FILES_NAMED: usize = 2;

/// Provides symbols from the files of a profile's libs. A lib's files are searched and opened at the first
/// request for it, and stay open.
pub struct ProfileSymbols {
    libs: BTreeMap<LibKey, LibFiles>,
    finder: Finder,
    source_files: SourceFiles,
    generated_code: Box<dyn GeneratedCode>,
    threads: NonZeroUsize,
}

/// The description of a lib, and its files after the first search.
struct LibFiles {
    lib: Lib,
    request: ModuleRequest,
    /// The source files of the lib in the profile, by their special paths if they have them.
    sources: HashSet<Box<str>>,
    /// The error is text, because it is sent to every request.
    module: OnceLock<Result<ModuleSymbols, String>>,
    /// The same for code generated at run time; `None` for all other libs.
    made: OnceLock<Option<Result<Box<dyn GeneratedLib>, String>>>,
    /// The same for the kernel's code in memory.
    kernel: OnceLock<Result<KernelCode, String>>,
}

impl ProfileSymbols {
    /// Copies the descriptions of libs from a profile; the profile itself is not kept. O(libs and
    /// functions). No file is accessed. Libs without a name or an id are left out, because without an id
    /// any file would match. Source files that `source_files` does not allow are served only if the lib's
    /// debug info contains their names.
    pub fn new(profile: &Profile, finder: Finder, source_files: SourceFiles) -> Self {
        let mut symbols = Self {
            libs: BTreeMap::new(),
            finder,
            source_files,
            generated_code: Box::new(NoGeneratedCode),
            threads: cpu_count(),
        };
        symbols.take_libs(profile);
        symbols
    }

    /// Adds libs, and source files of known libs, from a later profile of the same recording. O(libs and
    /// functions).
    pub fn take_libs(&mut self, profile: &Profile) {
        for (lib, sources) in profile.libs().iter().zip(sources_by_lib(profile)) {
            if !lib.debug_name.is_empty() && !lib.breakpad_id.is_empty() && LibFiles::has_identity(lib) {
                let files = self.libs.entry(key(lib)).or_insert_with(|| LibFiles::new(lib));
                files.sources.extend(sources);
            }
        }
    }

    /// The same, with a finder for the code of libs that are not files.
    #[must_use]
    pub fn with_generated_code(self, generated_code: impl GeneratedCode + 'static) -> Self {
        Self { generated_code: Box::new(generated_code), ..self }
    }

    fn lib(&self, key: &LibKey) -> Result<&LibFiles, LookupError> {
        self.libs.get(key).ok_or_else(|| LookupError::UnknownLib(key.clone()))
    }

    fn module(&self, key: &LibKey) -> Result<&ModuleSymbols, LookupError> {
        let lib = self.lib(key)?;
        let no_binary = |reason: &str| LookupError::NoBinary { lib: key.clone(), reason: reason.to_owned() };
        // No file of it is searched.
        if self.generated_code.is_generated(&lib.lib) {
            return Err(no_binary("its code was made while the program ran"));
        }
        lib.open(&self.finder).map_err(no_binary)
    }

    /// The code of a lib that is not a file; `None` for ordinary libs.
    fn generated_lib(&self, key: &LibKey) -> Result<Option<&dyn GeneratedLib>, LookupError> {
        let lib = self.lib(key)?;
        match lib.made.get_or_init(|| self.generated_code.open(&lib.lib)) {
            None => Ok(None),
            Some(Ok(made)) => Ok(Some(&**made)),
            Some(Err(reason)) => Err(LookupError::NoBinary { lib: key.clone(), reason: reason.clone() }),
        }
    }

    /// The path of the file in the lib's debug info, if it is there. Only this permits reading it, because
    /// a profile may name any file.
    fn named(&self, request: &SourceRequest) -> Option<String> {
        if let Ok(Some(made)) = self.generated_lib(&request.lib) {
            return made.named_source(&request.file);
        }
        self.module(&request.lib).ok()?.named_source(&request.file, request.address)
    }
}

impl ProfileSymbols {
    /// The text of a source file that is not on this machine, downloaded from the server of the lib's
    /// debug info.
    fn fetched_source(&self, request: &SourceRequest) -> Option<String> {
        let Some(ModuleId::BuildId(id)) = &self.lib(&request.lib).ok()?.request.id else { return None };
        // Servers know the path that the compiler has written.
        let named = self.named(request);
        let named = named.map_or_else(|| self.source_files.place_of(&request.file), Cow::Owned);
        let path = self.finder.fetch_source(id, &named).path?;
        let path = path.to_str()?;
        self.source_files.read(path, || Some(path.to_owned())).ok().map(|file| file.text)
    }
}

impl LibFiles {
    /// Whether the lib has any id.
    fn has_identity(lib: &Lib) -> bool {
        let request = Self::new(lib).request;
        request.id.is_some() || request.debug_id.is_some()
    }

    fn new(lib: &Lib) -> Self {
        let debug_id = DebugId::from_breakpad(&lib.breakpad_id);
        let request = ModuleRequest {
            path: PathBuf::from(&lib.path),
            id: lib.code_id.as_deref().and_then(|code_id| ModuleId::from_profile(code_id, debug_id)),
            debug_id,
            debug_name: lib.debug_name.clone(),
            ..ModuleRequest::default()
        };
        let lib = lib.clone();
        Self {
            lib,
            request,
            sources: HashSet::new(),
            module: OnceLock::new(),
            made: OnceLock::new(),
            kernel: OnceLock::new(),
        }
    }

    fn is_kernel(&self) -> bool {
        self.lib.debug_name == KERNEL_LIB
    }

    /// The kernel's code in memory, if the lib is the running kernel.
    fn kernel_code(&self) -> Result<&KernelCode, &str> {
        let open = || KernelCode::open(self.request.id.as_ref()).map_err(|error| error.to_string());
        let code = self.kernel.get_or_init(open);
        code.as_ref().map_err(String::as_str)
    }

    /// The lib's symbols. Concurrent requests wait while the files are being opened.
    fn open(&self, finder: &Finder) -> Result<&ModuleSymbols, &str> {
        self.module.get_or_init(|| open(finder, &finder.find(&self.request))).as_ref().map_err(String::as_str)
    }
}

fn open(finder: &Finder, found: &SymbolFiles) -> Result<ModuleSymbols, String> {
    let tried = attempts_text(&found.tried);
    finder.open(found).map_err(|error| format!("{error}{tried}"))
}

/// The attempts as text to append to an error: the files that exist and were not used. Places without a
/// file, which are many for the kernel, are not included.
fn attempts_text(attempts: &[Attempt]) -> String {
    let there = attempts.iter().filter(|attempt| attempt.outcome != AttemptOutcome::Missing);
    let text = |attempt: &Attempt| format!("; {}: {}", attempt.path.display(), attempt.outcome);
    there.take(FILES_NAMED).map(text).collect()
}

fn key(lib: &Lib) -> LibKey {
    LibKey { debug_name: lib.debug_name.clone(), breakpad_id: lib.breakpad_id.clone() }
}

/// For each lib, in order, the source files of its functions and their lines.
fn sources_by_lib(profile: &Profile) -> Vec<HashSet<Box<str>>> {
    let mut named = vec![HashSet::new(); profile.libs().len()];
    let of_funcs = profile.funcs().iter().filter_map(|func| Some((func.lib?, func.source?)));
    let elsewhere =
        profile.frames().iter().filter_map(|frame| Some((profile.func(frame.func).lib?, frame.source?)));
    for (lib, source) in of_funcs.chain(elsewhere).collect::<HashSet<_>>() {
        let file = profile.string(profile.source(source).filename);
        named[LibId::index(lib)].insert(special_source_path(file).into());
    }
    named
}

impl SymbolSource for ProfileSymbols {
    fn symbolicate(&self, lib: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        let module = self.module(lib).ok()?;
        let answers = module.symbolicate(addresses, self.threads, &AtomicBool::new(false));
        Some(
            addresses.iter().zip(answers).map(|(address, info)| AddressInfo::known(*address, info)).collect(),
        )
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        let file = &request.file;
        // A file that neither of them names is refused, even in an allowed folder.
        if !self.lib(&request.lib)?.sources.contains(&*special_source_path(file)) {
            let is_provided = match self.generated_lib(&request.lib)? {
                Some(_) => false,
                None => self.module(&request.lib)?.states_source(file),
            };
            if !is_provided && self.named(request).is_none() {
                return Err(LookupError::SourceNotNamed { lib: request.lib.clone(), file: file.clone() });
            }
        }
        match self.source_files.read(file, || self.named(request)) {
            Ok(read) => Ok(read.text),
            Err(source) => {
                let no_source = LookupError::NoSource { file: file.clone(), source };
                self.fetched_source(request).ok_or(no_source)
            }
        }
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        let (start, size, whole) = (request.start, request.size, request.continue_until_function_end);
        let lib = self.lib(&request.lib)?;
        let code = match self.generated_lib(&request.lib)? {
            Some(made) => made.disassemble(start, size, whole),
            None => match self.module(&request.lib) {
                Ok(module) => module.disassemble(start, size, whole).map_err(|error| error.to_string()),
                Err(_) if lib.is_kernel() => {
                    let no_code = |reason: &str| LookupError::NoKernelCode { reason: reason.to_owned() };
                    let code = lib.kernel_code().map_err(no_code)?;
                    code.disassemble(start, size, whole).map_err(|error| error.to_string())
                }
                Err(error) => return Err(error),
            },
        };
        let lib = request.lib.clone();
        code.map(Assembly::from).map_err(|reason| LookupError::NoInstructions { lib, start, reason })
    }

    /// With servers, only files that were opened before are read, because opening a lib may download it.
    fn folded_names(&self, lib: &LibKey, start: RelativeAddress, name: &str) -> Vec<String> {
        let is_open = self.libs.get(lib).is_some_and(|files| files.module.get().is_some());
        if self.finder.asks_servers() && !is_open {
            return Vec::new();
        }
        self.module(lib).map(|module| folded_names(name, &module.names_at(start))).unwrap_or_default()
    }
}

impl AddressInfo {
    /// `None` if nothing is known. The outermost function of the debug info is the symbol's; its name
    /// there is the better one. Without a symbol the function's start is not known. The address replaces
    /// it, because the API cannot leave it out.
    fn known(address: RelativeAddress, mut info: nyquist_symbols::AddressInfo) -> Option<Self> {
        let outermost = info.frames.pop().unwrap_or_default();
        let symbol = info.symbol;
        let function = outermost.function.or_else(|| symbol.as_ref().map(|symbol| symbol.name.clone()))?;
        Some(Self {
            function: function.as_ref().to_owned(),
            function_offset: symbol.as_ref().and_then(|it| address.offset_from(it.address)).unwrap_or(0),
            function_size: symbol.and_then(|symbol| symbol.size),
            file: outermost.file.as_deref().map(special),
            line: outermost.line,
            inlines: info.frames.into_iter().map(InlineFrame::from).collect(),
        })
    }
}

impl From<SourceFrame> for InlineFrame {
    fn from(frame: SourceFrame) -> Self {
        Self {
            function: frame.function.as_deref().map(str::to_owned),
            file: frame.file.as_deref().map(special),
            line: frame.line,
        }
    }
}

/// A file's path in the form of profiles, so that the viewer treats both as the same file.
fn special(file: &str) -> String {
    special_source_path(file).into_owned()
}

impl From<Disassembly> for Assembly {
    fn from(code: Disassembly) -> Self {
        let instruction =
            |one: nyquist_symbols::Instruction| AssemblyInstruction { offset: one.offset, text: one.text };
        Self {
            start: code.start,
            size: code.size,
            arch: code.architecture.to_owned(),
            syntax: "Intel".to_owned(),
            instructions: code.instructions.into_iter().map(instruction).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nyquist_symbols::{Origin, Reason, Symbol};

    use super::*;

    fn frame(function: Option<&str>, line: u32) -> SourceFrame {
        SourceFrame {
            function: function.map(Arc::from),
            file: Some("/a.c".into()),
            line: Some(line),
            ..SourceFrame::default()
        }
    }

    fn known(symbol: bool, frames: Vec<SourceFrame>) -> Option<AddressInfo> {
        let address = RelativeAddress(0x1000);
        let symbol = symbol.then(|| Symbol { name: "sym".into(), address, size: Some(0x20) });
        let info = nyquist_symbols::AddressInfo { symbol, frames, origin: Origin::DebugInfo };
        AddressInfo::known(RelativeAddress(0x1008), info)
    }

    #[test]
    fn the_last_frame_inlines_the_others() {
        let info = known(true, vec![frame(Some("c"), 3), frame(None, 2), frame(Some("a"), 1)]).unwrap();
        assert_eq!((&*info.function, info.function_offset, info.function_size), ("a", 8, Some(0x20)));
        assert_eq!((info.file.as_deref(), info.line), (Some("/a.c"), Some(1)));
        let inlines: Vec<_> = info.inlines.iter().map(|one| (one.function.as_deref(), one.line)).collect();
        assert_eq!(inlines, [(Some("c"), Some(3)), (None, Some(2))]);
    }

    #[test]
    fn a_symbol_names_what_the_debug_info_does_not() {
        assert_eq!(known(true, vec![frame(None, 1)]).unwrap().function, "sym");
        assert_eq!(known(true, Vec::new()).unwrap().function, "sym");
        assert_eq!(known(false, vec![frame(Some("a"), 1)]).unwrap().function_offset, 0);
    }

    #[test]
    fn what_is_not_known_is_none() {
        assert_eq!(known(false, Vec::new()), None);
        let unknown = nyquist_symbols::AddressInfo::unknown(Reason::NotCovered);
        assert_eq!(AddressInfo::known(RelativeAddress(1), unknown), None);
    }
}
