//! Functions by address, all of them in memory.

use super::entry::SymbolTableEntry;
use std::cmp::Reverse;

/// A function, or one of several names of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SymbolRow {
    pub(super) start: u64,
    /// Its length in bytes. 32 bits suffice, because look-ups use relative addresses of 32 bits.
    pub(super) len: u32,
    /// The offset of the name in the strings.
    pub(super) name: u32,
    /// The distance in bytes from the start to the furthest end of this row and all rows before it.
    pub(super) reach: u32,
}

/// Rows in memory, in separate arrays without padding, because tables have hundreds of thousands of them.
#[derive(Debug, Default)]
pub(super) struct RowTable {
    functions: Vec<SymbolRange>,
    /// The reach of each.
    reach: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct SymbolRange {
    start: u64,
    len: u32,
    name: u32,
}

impl SymbolRow {
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.len.into())
    }

    /// The furthest end of this row and all rows before it.
    pub(super) fn furthest_end(&self) -> u64 {
        self.start.saturating_add(self.reach.into())
    }
}

impl RowTable {
    /// How much memory the rows of a table take while they are made, for each of its symbols.
    pub(super) const BYTES_AN_ENTRY: u64 = (size_of::<SymbolTableEntry>() + size_of::<u32>()) as u64;

    /// The rows of these symbols of a table.
    pub(super) fn of(mut entries: Vec<SymbolTableEntry>) -> Self {
        // Integers are sorted faster than structures, and few functions have more than one name.
        entries.sort_unstable_by_key(|entry| entry.start);
        for same in entries.chunk_by_mut(|one, other| one.start == other.start).filter(|same| same.len() > 1)
        {
            same.sort_unstable_by_key(|entry| (Reverse(entry.rank), entry.name));
        }
        entries.dedup_by(|next, cached| next.start == cached.start && next.rank < cached.rank);
        drop_labels(&mut entries);
        end_at_next(&mut entries);
        let reach = entries.iter().scan(0, |reach: &mut u64, entry| {
            *reach = (*reach).max(entry.end);
            Some(len(entry.start, *reach))
        });
        let reach = reach.collect();
        let function = |entry: SymbolTableEntry| SymbolRange {
            start: entry.start,
            len: len(entry.start, entry.end),
            name: entry.name,
        };
        // The ranges take the place of the entries, which are larger.
        Self { functions: entries.into_iter().map(function).collect(), reach }
    }

    /// Rows in the given order.
    pub(super) fn of_rows(rows: impl Iterator<Item = SymbolRow>) -> Self {
        let part = |SymbolRow { start, len, name, reach }| (SymbolRange { start, len, name }, reach);
        let (functions, reach) = rows.map(part).unzip();
        Self { functions, reach }
    }

    pub(super) fn row(&self, index: usize) -> Option<SymbolRow> {
        let (SymbolRange { start, len, name }, reach) =
            (*self.functions.get(index)?, *self.reach.get(index)?);
        Some(SymbolRow { start, len, name, reach })
    }

    pub(super) fn after(&self, address: u64) -> usize {
        self.functions.partition_point(|function| function.start <= address)
    }

    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }

    /// How many bytes of memory they take.
    pub(super) fn size(&self) -> u64 {
        (self.len() * (size_of::<SymbolRange>() + size_of::<u32>())) as u64
    }
}

/// The number of bytes from a start to an end, as far as that is known.
fn len(start: u64, end: u64) -> u32 {
    u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX)
}

/// Drops labels: symbols without a size within a function that has one.
fn drop_labels(entries: &mut Vec<SymbolTableEntry>) {
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
fn end_at_next(entries: &mut [SymbolTableEntry]) {
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
