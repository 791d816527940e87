//! The answer for an address: the symbol, the chain of inlined frames, and the source of the answer.

use nyquist_object::RelativeAddress;
use std::fmt;
use std::sync::Arc;

/// All information about one lookup address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressInfo {
    /// The machine-code function that contains the address, as the symbol table (or, without one, the debug
    /// info) delimits it.
    pub symbol: Option<Symbol>,
    /// The source-level frames at the address, the innermost inlined one first, and the function that was
    /// really called last. Empty if nothing is known. One frame without file and line if only the symbol is
    /// known.
    pub frames: Vec<SourceFrame>,
    /// The best source that had an answer.
    pub origin: Origin,
}

/// An answer that was available before all addresses were known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyAnswer {
    /// The answer for the address.
    pub info: Arc<AddressInfo>,
    /// Whether it came from the cache.
    pub was_kept: bool,
}

/// A function of the machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The demangled name, without symbol version.
    pub name: Arc<str>,
    /// Where the function begins.
    pub address: RelativeAddress,
    /// Its size in bytes: stated by the symbol, or up to the next symbol or the section's end.
    pub size: Option<u32>,
}

/// A source-level function, and the place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFrame {
    /// The demangled name.
    pub function: Option<Arc<str>>,
    /// The source file, as an absolute path if the debug info allows it. For all frames but the innermost
    /// one, the place is that of the inlined call.
    pub file: Option<Arc<str>>,
    /// The file in which the function is declared, if it is not `file`. A function may include parts of its
    /// body from other files.
    pub declared_in: Option<Arc<str>>,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The column, counted from 1.
    pub column: Option<u32>,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// DWARF debug info, a PDB or a Breakpad symbol file.
    DebugInfo,
    /// `.symtab`, or the symbol table of a Mach-O file or a PE image.
    SymbolTable,
    /// The symbol table within `.gnu_debugdata`.
    MiniDebugInfo,
    /// `.dynsym`, exported functions only.
    DynamicSymbols,
    /// The public symbols of a PDB or a Breakpad symbol file, which state no size.
    PublicSymbols,
    /// The exports of a Mach-O file or a PE image.
    Exports,
    /// The tables that a Go program carries for its runtime (`.gopclntab`): functions, files, lines, inlined
    /// calls.
    GoTables,
    /// The relocation of the slot that a PLT entry jumps through, or the symbol of a Mach-O stub.
    Plt,
    /// The unwind information, or another list of function starts. The name is a stand-in: `fun_` and the
    /// address.
    UnwindInfo,
    /// `/proc/kallsyms`.
    Kallsyms,
    /// A file of answers that came with the profile.
    Provided,
    /// No source had an answer, for this reason.
    Unknown(Reason),
}

/// Why nothing is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The files that were found have neither symbols nor debug info.
    NoSymbols,
    /// The address is outside of all functions that the files name.
    NotCovered,
    /// The work was cancelled before this address's turn, and no symbol table covers it.
    Cancelled,
}

impl AddressInfo {
    /// An address of which nothing is known.
    pub fn unknown(reason: Reason) -> Self {
        Self { symbol: None, frames: Vec::new(), origin: Origin::Unknown(reason) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DebugInfo => "debug info",
            Self::SymbolTable => "symbol table",
            Self::MiniDebugInfo => "mini debug info",
            Self::DynamicSymbols => "dynamic symbols",
            Self::PublicSymbols => "public symbols",
            Self::Exports => "export table",
            Self::GoTables => "Go's function tables",
            Self::Plt => "procedure linkage table",
            Self::UnwindInfo => "unwind information",
            Self::Kallsyms => "kallsyms",
            Self::Provided => "a file that came with the profile",
            Self::Unknown(reason) => return reason.fmt(f),
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSymbols => "no symbols and no debug info",
            Self::NotCovered => "outside of every known function",
            Self::Cancelled => "cancelled",
        })
    }
}
