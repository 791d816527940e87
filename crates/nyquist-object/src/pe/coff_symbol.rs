//! Symbols of the COFF symbol table, and the position of the table.

use crate::RelativeAddress;

/// The size of a symbol ("COFF Symbol Table").
pub(super) const SYMBOL: usize = 18;

/// The position of the table in the file; if `offset` is 0, there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableLocation {
    pub(super) offset: u32,
    pub(super) count: u32,
}

impl TableLocation {
    /// The start of the strings, after the symbols.
    pub(super) fn strings(self) -> Option<u64> {
        (self.offset != 0).then(|| u64::from(self.offset) + self.size())
    }

    pub(super) fn size(self) -> u64 {
        u64::from(self.count) * SYMBOL as u64
    }
}

/// A symbol that names code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoffSymbol {
    /// Its address.
    pub address: RelativeAddress,
    /// The linker's name.
    pub name: Vec<u8>,
    /// Whether other object files can link to it.
    pub is_external: bool,
    /// Whether it is marked as a function; symbols of assembly code have no type.
    pub is_function: bool,
}
