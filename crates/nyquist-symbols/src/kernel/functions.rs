//! The kernel's functions by address: all of them in memory, or in blocks of a cached file that are read when
//! they are needed.

use super::cached_functions::CachedFunctions;
use super::function_table::{FunctionTable, NearestFunction};

/// The places, modules and names of functions.
#[derive(Debug)]
pub(crate) enum KernelFunctions {
    /// The functions that the kernel listed.
    Read(FunctionTable),
    /// The functions from the cache.
    Kept(CachedFunctions),
}

impl KernelFunctions {
    /// The function at or before an address. `None` before the first one, and if the cached data cannot be
    /// read.
    pub(crate) fn around(&self, address: u64) -> Option<NearestFunction<'_>> {
        match self {
            Self::Read(table) => table.around(address),
            Self::Kept(cached) => cached.around(address),
        }
    }
}

impl Default for KernelFunctions {
    fn default() -> Self {
        Self::Read(FunctionTable::default())
    }
}
