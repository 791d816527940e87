//! A symbol of the COFF symbol table, and where the table is.

use crate::RelativeAddress;

/// The size of a symbol ("COFF Symbol Table").
pub(super) const SYMBOL: usize = 18;

/// Where the table is in the file; nowhere where `offset` is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) offset: u32,
    pub(super) count: u32,
}

impl Place {
    /// Where the strings begin: behind the symbols.
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
    /// Where it is.
    pub address: RelativeAddress,
    /// The linker's name.
    pub name: Vec<u8>,
    /// Whether other object files can link to it.
    pub is_external: bool,
    /// Whether it is said to be a function: in assembly code symbols are of no type.
    pub is_function: bool,
}
