//! The contents of the files of an ELF module for names and stacks: the binary, its debug file, its package.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nyquist_object::{Elf, FileSource, ObjectError};
use nyquist_system::{HeldFile, OpenRoot};

use crate::contents::{Contents, Language, MAX_DESCRIBED_PERCENT};
use crate::find::{Attempt, AttemptOutcome, Finder, ModuleRequest, OpenFile, SymbolFiles};

/// The facts about a module's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Its path.
    pub path: PathBuf,
    /// Its build id, in hexadecimal digits.
    pub build_id: Option<String>,
    /// The contents of the binary.
    pub contents: Contents,
    /// A separate debug file that was found, with its contents.
    pub debug_file: Option<(PathBuf, Contents)>,
    /// Whether the package of split debug info was found.
    pub has_package: bool,
    /// Every path that was tried, in order.
    pub tried: Vec<Attempt>,
}

/// The source of names, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource<'a> {
    /// Debug info: of the binary itself, or of this file.
    DebugInfo(Option<&'a Path>),
    /// The tables that a Go program has for its own runtime.
    GoTables,
    /// `.symtab`
    SymbolTable,
    /// `.gnu_debugdata`
    MiniDebugInfo,
    /// `.dynsym`, which only has exported functions.
    Exports,
    /// The files have no names.
    None,
}

/// The method of unwinding stacks, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindSource {
    /// `.eh_frame`
    UnwindInformation,
    /// `.debug_frame`
    DebugFrame,
    /// The frame pointers that Go keeps.
    GoFramePointers,
    /// Frame pointers alone, if there are any.
    FramePointers,
}

/// Why nothing is known of a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleFactsError {
    /// The binary was not found, or cannot be opened.
    #[error("{0}")]
    NotFound(AttemptOutcome),
    /// It is no ELF file, or a damaged one.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl ModuleFacts {
    /// Looks for a module's files as a recording does.
    ///
    /// # Errors
    /// The binary cannot be read.
    pub fn read(path: &Path, finder: &Finder) -> Result<Self, ModuleFactsError> {
        Self::of_request(&ModuleRequest { path: path.to_owned(), ..ModuleRequest::default() }, finder)
    }

    /// The same of a file that is held open. What lies beside it is first looked for below `roots`.
    ///
    /// # Errors
    /// The binary cannot be read.
    pub fn of_held(
        path: &Path,
        file: HeldFile,
        roots: Vec<OpenRoot>,
        finder: &Finder,
    ) -> Result<Self, ModuleFactsError> {
        let held = OpenFile { path: path.to_owned(), source: Arc::new(FileSource::new(file)) };
        let (path, held) = (path.to_owned(), Some(held));
        Self::of_request(&ModuleRequest { path, held, roots, ..ModuleRequest::default() }, finder)
    }

    fn of_request(request: &ModuleRequest, finder: &Finder) -> Result<Self, ModuleFactsError> {
        let SymbolFiles { binary, debug_file, package, tried, .. } = finder.find(request);
        let Some(binary) = binary else {
            let first = tried.into_iter().next().map(|attempt| attempt.outcome);
            return Err(ModuleFactsError::NotFound(first.unwrap_or(AttemptOutcome::Missing)));
        };
        let elf = open(&binary)?;
        let debug_file =
            debug_file.and_then(|file| Some((file.path.clone(), Contents::of(&open(&file).ok()?))));
        Ok(Self {
            path: request.path.clone(),
            build_id: elf.build_id().map(|id| id.to_string()),
            contents: Contents::of(&elf),
            debug_file,
            has_package: package.is_some(),
            tried,
        })
    }

    /// The source of its names.
    pub fn names(&self) -> NameSource<'_> {
        let separate = self.debug_file.as_ref();
        let has = |part: fn(&Contents) -> bool| {
            part(&self.contents) || separate.is_some_and(|(_, contents)| part(contents))
        };
        match separate {
            _ if self.contents.debug_info => NameSource::DebugInfo(None),
            Some((path, contents)) if contents.debug_info => NameSource::DebugInfo(Some(path)),
            _ if self.contents.go_tables => NameSource::GoTables,
            _ if has(|it| it.symbol_table) => NameSource::SymbolTable,
            _ if has(|it| it.mini_debug_info) => NameSource::MiniDebugInfo,
            _ if has(|it| it.dynamic_symbols) => NameSource::Exports,
            _ => NameSource::None,
        }
    }

    /// The method of unwinding its stacks.
    pub fn unwinding(&self) -> UnwindSource {
        let in_debug_file = self.debug_file.as_ref().is_some_and(|(_, contents)| contents.debug_frame);
        if self.contents.unwound_percent >= MAX_DESCRIBED_PERCENT {
            UnwindSource::UnwindInformation
        } else if self.contents.debug_frame || in_debug_file {
            UnwindSource::DebugFrame
        } else if self.contents.language == Some(Language::Go) {
            UnwindSource::GoFramePointers
        } else {
            UnwindSource::FramePointers
        }
    }

    /// Whether the debug info is split, so that most of it is in a package or in `.dwo` files.
    pub fn is_split(&self) -> bool {
        self.debug_file.as_ref().map_or(&self.contents, |(_, contents)| contents).split
    }
}

fn open(file: &OpenFile) -> Result<Elf<&FileSource>, ObjectError> {
    Elf::open(&*file.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::SearchPaths;
    use nyquist_object::Architecture;

    const NOTHING: Contents = Contents {
        architecture: Architecture::X86_64,
        debug_info: false,
        split: false,
        symbol_table: false,
        mini_debug_info: false,
        dynamic_symbols: false,
        go_tables: false,
        debug_link: false,
        unwound_percent: 0,
        frame_pointers: None,
        debug_frame: false,
        language: None,
    };

    fn facts(contents: Contents, debug_file: Option<Contents>) -> ModuleFacts {
        ModuleFacts {
            path: "/bin/app".into(),
            build_id: None,
            contents,
            debug_file: debug_file.map(|contents| ("/debug/app".into(), contents)),
            has_package: false,
            tried: Vec::new(),
        }
    }

    #[test]
    fn names_come_from_the_best_there_is() {
        let check = |contents, debug_file, expected| {
            assert_eq!(facts(contents, debug_file).names(), expected);
        };
        let exports = Contents { dynamic_symbols: true, ..NOTHING };
        let mini = Contents { mini_debug_info: true, ..exports };
        let symbols = Contents { symbol_table: true, ..mini };
        let go = Contents { go_tables: true, ..symbols };
        let whole = Contents { debug_info: true, ..go };
        check(NOTHING, None, NameSource::None);
        check(exports, None, NameSource::Exports);
        check(mini, None, NameSource::MiniDebugInfo);
        check(exports, Some(symbols), NameSource::SymbolTable);
        check(go, None, NameSource::GoTables);
        check(whole, Some(whole), NameSource::DebugInfo(None));
        check(exports, Some(whole), NameSource::DebugInfo(Some(Path::new("/debug/app"))));
    }

    #[test]
    fn stacks_are_unwound_by_the_best_there_is() {
        let check = |contents, debug_file, expected| {
            assert_eq!(facts(contents, debug_file).unwinding(), expected);
        };
        let debug_frame = Contents { debug_frame: true, ..NOTHING };
        let go = Contents { language: Some(Language::Go), ..NOTHING };
        check(Contents { unwound_percent: 50, ..debug_frame }, None, UnwindSource::UnwindInformation);
        check(Contents { unwound_percent: 49, ..NOTHING }, None, UnwindSource::FramePointers);
        check(debug_frame, None, UnwindSource::DebugFrame);
        check(NOTHING, Some(debug_frame), UnwindSource::DebugFrame);
        check(go, None, UnwindSource::GoFramePointers);
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn a_file_on_this_machine_is_looked_into() {
        let finder = Finder::new(SearchPaths::default());
        let this = std::env::current_exe().unwrap();
        let facts = ModuleFacts::read(&this, &finder).unwrap();
        assert_eq!(facts.contents.language, Some(Language::Rust));
        let error = ModuleFacts::read(Path::new("/proc/nonexistent/app"), &finder).unwrap_err();
        assert_eq!(error.to_string(), "no such file");
    }
}
