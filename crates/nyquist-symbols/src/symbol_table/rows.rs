//! Functions by address: all of them in memory, or in blocks of a cached file that are read when they are
//! needed.

use super::cached_rows::{CachedRows, DamagedBlock};
use super::row_table::{RowTable, SymbolRow};
use std::fmt;
use std::sync::OnceLock;

/// The rows of one table, by their starts. Each has the same number in every form of the table.
#[derive(Debug)]
pub(super) enum SymbolRows {
    Read(RowTable),
    /// The rows from the cache.
    Kept(CachedTable),
}

/// Makes a table again from its symbols.
pub(super) type RebuildTable = Box<dyn Fn() -> RowTable + Send + Sync>;

/// Rows of a cached file, and the whole table after one of its blocks was found to be damaged.
pub(super) struct CachedTable {
    cached: CachedRows,
    rebuild: RebuildTable,
    whole: OnceLock<RowTable>,
}

impl SymbolRows {
    /// How many bytes of memory they take.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Read(table) => table.size(),
            Self::Kept(_) => 0,
        }
    }

    /// The row with this index.
    pub(super) fn row(&self, index: usize) -> Option<SymbolRow> {
        match self {
            Self::Read(table) => table.row(index),
            Self::Kept(table) => table.ask(|cached| cached.row(index), |whole| whole.row(index)),
        }
    }

    /// How many rows begin at or before an address.
    pub(super) fn after(&self, address: u64) -> usize {
        match self {
            Self::Read(table) => table.after(address),
            Self::Kept(table) => table.ask(|cached| cached.after(address), |whole| whole.after(address)),
        }
    }
}

impl CachedTable {
    pub(super) fn new(cached: CachedRows, rebuild: RebuildTable) -> Self {
        Self { cached, rebuild, whole: OnceLock::new() }
    }

    /// Uses the cached rows, or the whole table after one of their blocks was found to be damaged.
    fn ask<T>(
        &self,
        cached: impl FnOnce(&CachedRows) -> Result<T, DamagedBlock>,
        whole: impl FnOnce(&RowTable) -> T,
    ) -> T {
        if self.whole.get().is_none()
            && let Ok(answer) = cached(&self.cached)
        {
            return answer;
        }
        whole(self.whole.get_or_init(&self.rebuild))
    }
}

impl fmt::Debug for CachedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptTable").field("kept", &self.cached).finish_non_exhaustive()
    }
}
