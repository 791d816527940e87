//! Addresses to functions, files, lines and inlined frames.
//!
//! The addresses given are *lookup addresses*: whoever unwinds has already subtracted one from each return
//! address, so that a call at the very end of a function is not taken for the next function.

#![forbid(unsafe_code)]

mod answer;
mod batch;
mod cursor;
mod demangle;
mod disassemble;
mod dwarf;
mod error;
mod find;
mod kernel;
mod mini_debug_info;
mod module;
mod plt;
mod section;
mod symbol_table;

pub use answer::{AddressInfo, Frame, Origin, Reason, Symbol};
pub use batch::{Batch, symbolicate};
pub use demangle::demangle;
pub use disassemble::{Disassembly, DisassemblyError, Instruction};
pub use error::SymbolsError;
pub use find::{Attempt, Finder, Found, ModuleRequest, OpenFile, Outcome, SearchPaths, Wanted};
pub use kernel::{KernelError, KernelModule, KernelSymbols};
pub use module::ModuleSymbols;
