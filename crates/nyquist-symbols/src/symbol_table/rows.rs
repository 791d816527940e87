//! Functions by address: all of them in memory, or in blocks of a kept file that are read when they are asked for.

use super::entry::Entry;
use super::kept::{Damaged, KeptRows};
use std::cmp::Reverse;
use std::fmt;
use std::sync::OnceLock;

/// A function, or one of several names of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u64,
    /// How many bytes on it ends. Addresses that are asked for are less than this can tell apart.
    pub(super) len: u32,
    /// Where the name is in the strings.
    pub(super) name: u32,
    /// How many bytes from the start on the furthest end of this row and all before it is.
    pub(super) reach: u32,
}

/// The rows of one table, by their starts. Each has the same number in every form of the table.
#[derive(Debug)]
pub(super) enum Rows {
    Read(RowTable),
    /// Those that were kept before.
    Kept(KeptTable),
}

/// Rows in memory: tables have hundreds of thousands of them, so nothing is between them.
#[derive(Debug, Default)]
pub(super) struct RowTable {
    functions: Vec<Function>,
    /// The reach of each.
    reach: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    len: u32,
    name: u32,
}

/// Makes a table anew of what its rows were made of.
pub(super) type Remake = Box<dyn Fn() -> RowTable + Send + Sync>;

/// Rows of a kept file, and the whole table once a block of that turns out to be damaged.
pub(super) struct KeptTable {
    kept: KeptRows,
    remake: Remake,
    whole: OnceLock<RowTable>,
}

impl Rows {
    /// How many bytes of memory they take.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Read(table) => (table.len() * (size_of::<Function>() + size_of::<u32>())) as u64,
            Self::Kept(_) => 0,
        }
    }

    /// The row of that number.
    pub(super) fn row(&self, index: usize) -> Option<Row> {
        match self {
            Self::Read(table) => table.row(index),
            Self::Kept(table) => table.ask(|kept| kept.row(index), |whole| whole.row(index)),
        }
    }

    /// How many rows begin at or before an address.
    pub(super) fn after(&self, address: u64) -> usize {
        match self {
            Self::Read(table) => table.after(address),
            Self::Kept(table) => table.ask(|kept| kept.after(address), |whole| whole.after(address)),
        }
    }
}

impl Row {
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.len.into())
    }

    /// The furthest end of this row and all before it.
    pub(super) fn furthest_end(&self) -> u64 {
        self.start.saturating_add(self.reach.into())
    }
}

impl RowTable {
    /// The rows that all symbols of a table make, or those that tell of some addresses.
    pub(super) fn of(mut entries: Vec<Entry>) -> Self {
        // Numbers are sorted faster than what is compared part by part, and few functions have more than one name.
        entries.sort_unstable_by_key(|entry| entry.start);
        for same in entries.chunk_by_mut(|one, other| one.start == other.start).filter(|same| same.len() > 1)
        {
            same.sort_unstable_by_key(|entry| (Reverse(entry.rank), entry.name));
        }
        entries.dedup_by(|next, kept| next.start == kept.start && next.rank < kept.rank);
        drop_labels(&mut entries);
        end_at_next(&mut entries);
        let reach = entries.iter().scan(0, |reach: &mut u64, entry| {
            *reach = (*reach).max(entry.end);
            Some(len(entry.start, *reach))
        });
        let reach = reach.collect();
        let function = |entry: &Entry| Function {
            start: entry.start,
            len: len(entry.start, entry.end),
            name: entry.name,
        };
        Self { functions: entries.iter().map(function).collect(), reach }
    }

    /// Rows in the order that they are in.
    pub(super) fn of_rows(rows: impl Iterator<Item = Row>) -> Self {
        let part = |Row { start, len, name, reach }| (Function { start, len, name }, reach);
        let (functions, reach) = rows.map(part).unzip();
        Self { functions, reach }
    }

    pub(super) fn row(&self, index: usize) -> Option<Row> {
        let (Function { start, len, name }, reach) = (*self.functions.get(index)?, *self.reach.get(index)?);
        Some(Row { start, len, name, reach })
    }

    pub(super) fn after(&self, address: u64) -> usize {
        self.functions.partition_point(|function| function.start <= address)
    }

    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }
}

impl KeptTable {
    pub(super) fn new(kept: KeptRows, remake: Remake) -> Self {
        Self { kept, remake, whole: OnceLock::new() }
    }

    /// Asks the kept rows, or the whole table as soon as one of their blocks was found damaged.
    fn ask<T>(
        &self,
        kept: impl FnOnce(&KeptRows) -> Result<T, Damaged>,
        whole: impl FnOnce(&RowTable) -> T,
    ) -> T {
        if self.whole.get().is_none()
            && let Ok(answer) = kept(&self.kept)
        {
            return answer;
        }
        whole(self.whole.get_or_init(&self.remake))
    }
}

impl fmt::Debug for KeptTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptTable").field("kept", &self.kept).finish_non_exhaustive()
    }
}

/// How many bytes it is from a start to an end, as far as that can be told.
fn len(start: u64, end: u64) -> u32 {
    u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX)
}

/// Drops labels: symbols without a size within a function that has one.
fn drop_labels(entries: &mut Vec<Entry>) {
    let mut end = 0;
    entries.retain(|entry| {
        let is_label = !entry.is_sized && entry.start < end;
        if entry.is_sized {
            end = end.max(entry.end);
        }
        !is_label
    });
}

/// A symbol without a size reaches up to the next one.
fn end_at_next(entries: &mut [Entry]) {
    let (mut start, mut next) = (u64::MAX, u64::MAX);
    for entry in entries.iter_mut().rev() {
        if entry.start != start {
            (start, next) = (entry.start, start);
        }
        if !entry.is_sized {
            entry.end = entry.end.min(next);
        }
    }
}
