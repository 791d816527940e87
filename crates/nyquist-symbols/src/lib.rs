//! Maps addresses to functions, files, lines and inlined frames.
//!
//! [`Finder`] finds a module's files by its identity, [`ModuleSymbols`] opens them and answers: for one
//! address ([`ModuleSymbols::lookup`]) or for many of many modules together ([`symbolicate`]).
//! [`KernelSymbols`] answers for the kernel. Modules of Windows (PE images, PDBs, Breakpad symbol files) and
//! of macOS (Mach-O files, `.dSYM` bundles, object files) are used in the same way as those of Linux. Files
//! are not mapped. They are read by `pread`, and only the needed parts. With an [`AnswerCache`], an address
//! that was answered once is not looked up again.
//!
//! ```no_run
//! use nyquist_object::RelativeAddress;
//! use nyquist_symbols::{Finder, ModuleRequest, ModuleSymbols, SearchPaths};
//!
//! # fn main() -> Result<(), nyquist_symbols::SymbolsError> {
//! let request = ModuleRequest { path: "/usr/bin/cat".into(), ..ModuleRequest::default() };
//! let found = Finder::new(SearchPaths::default()).find(&request);
//! let symbols = ModuleSymbols::open(&found)?;
//! for frame in symbols.lookup(RelativeAddress(0x1234)).frames {
//!     println!("{:?} {:?}:{:?}", frame.function, frame.file, frame.line);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The addresses given are *lookup addresses*. The unwinder has already subtracted one from each return
//! address, so that a call at the end of a function is not attributed to the next function.

#![forbid(unsafe_code)]

mod allowance;
mod answer;
mod batch;
mod breakpad;
mod cache;
mod contents;
mod debug_answer;
mod debug_info;
mod demangle;
#[cfg(feature = "disassembly")]
mod disassemble;
mod dwarf;
mod error;
mod fetch;
mod file_kind;
mod find;
mod frame_pointers;
mod go;
mod guess;
#[cfg(feature = "kernel")]
mod kernel;
pub mod layouts;
mod loader;
#[cfg(feature = "disassembly")]
mod machine_code;
mod macho;
mod mini_debug_info;
mod module;
mod module_facts;
mod named_range;
mod needed_libraries;
#[cfg(feature = "pdb")]
mod pdb;
#[cfg(not(feature = "pdb"))]
#[path = "pdb_unsupported.rs"]
mod pdb;
mod plt;
mod provided;
mod section_contents;
mod source_files;
mod symbol_table;
#[cfg(feature = "test-hooks")]
pub mod test_hooks;
mod unpack;
mod windows;

pub use answer::{AddressInfo, EarlyAnswer, Origin, Reason, SourceFrame, Symbol};
pub use batch::{Batch, symbolicate};
pub use cache::{AnswerCache, CachedModule};
pub use contents::{Contents, Language};
pub use demangle::demangle;
#[cfg(feature = "disassembly")]
pub use disassemble::{Disassembly, DisassemblyError, Instruction, disassemble_code, instruction_around};
pub use error::SymbolsError;
pub use fetch::{Fetch, FetchResult, RemoteFile};
pub use find::{
    Attempt, AttemptOutcome, FileRole, Finder, ModuleRequest, OpenFile, SearchPaths, SymbolFiles,
};
pub use frame_pointers::FramePointers;
#[cfg(feature = "kernel")]
pub use kernel::{KERNEL_LIB, KernelError, KernelFiles, KernelModule, KernelSymbols};
#[cfg(all(feature = "disassembly", feature = "kernel"))]
pub use kernel::{KernelCode, KernelCodeError};
pub use loader::{missing_loader, missing_loader_of};
#[cfg(feature = "disassembly")]
pub use machine_code::{MachineCode, MachineCodeError, PlacedInstruction, folded_names};
pub use macho::MachoContents;
pub use module::ModuleSymbols;
pub use module_facts::{ModuleFacts, ModuleFactsError, NameSource, UnwindSource};
pub use needed_libraries::needed_libraries;
pub use provided::{ProvidedAnswers, ProvidedModule};
#[cfg(feature = "source-files")]
pub use source_files::{SourceError, SourceFile, SourceFiles};
pub use source_files::{disk_source_path, short_source_path, special_source_path};
pub use windows::{ImageContents, WindowsContents};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
