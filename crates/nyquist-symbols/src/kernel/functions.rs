//! The kernel's functions by address: all of them in memory, or in blocks of a kept file that are read when they are asked for.

use super::blocks::KeptFunctions;
use super::function_table::{Around, FunctionTable};

/// The places, modules and names of functions.
#[derive(Debug)]
pub(crate) enum Functions {
    /// Those that the kernel listed.
    Read(FunctionTable),
    /// Those that were kept before.
    Kept(KeptFunctions),
}

impl Functions {
    /// The function at or before an address; `None` before the first, and where what was kept cannot be read.
    pub(crate) fn around(&self, address: u64) -> Option<Around<'_>> {
        match self {
            Self::Read(table) => table.around(address),
            Self::Kept(kept) => kept.around(address),
        }
    }
}

impl Default for Functions {
    fn default() -> Self {
        Self::Read(FunctionTable::default())
    }
}
