//! The list of functions, and the record of each.

use super::memory::FileMemory;
use crate::section_contents::SectionContents;
use nyquist_object::Cursor;
use nyquist_object::go::{FuncHeader, FunctionDetails, TableHeader, Version};

/// The index of the table that maps each address to its inlined call, and of the additional data that lists
/// these calls (`runtime/funcdata.h`), since Go 1.16.
const PCDATA_INLINED: u64 = 2;
const FUNCDATA_INLINED: u64 = 3;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GoSymbol {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where its record begins.
    record: u64,
}

/// The record of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FunctionRecord {
    pub(super) record: FuncHeader,
    pub(super) inlined: Option<InlinedCalls>,
}

/// The calls that were inlined into a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InlinedCalls {
    /// The place of the table that maps each address to the call's number.
    pub(super) numbers: u32,
    /// The address of the calls in memory.
    pub(super) calls: u64,
}

/// The functions by address, without overlaps, as far as the file has code. `address` is the address of the
/// tables in memory, and `text` that of the code.
pub(super) fn functions(
    table: &SectionContents,
    header: &TableHeader,
    memory: &FileMemory,
    address: u64,
    text: u64,
) -> Vec<GoSymbol> {
    let list = FunctionList { table, header, memory, address, text };
    let mut starts = list.read().unwrap_or_default();
    starts.sort_unstable();
    starts.dedup_by_key(|(start, _)| *start);
    let mut functions = Vec::with_capacity(starts.len());
    for two in starts.windows(2) {
        let &[(start, record), (next, _)] = two else { continue };
        let Some(record) = record else { continue };
        // The time that is spent on a function depends on its length. So functions are limited to real code,
        // because the tables are not trusted.
        if let Some(code) = memory.code().find(|code| code.contains(&start)) {
            functions.push(GoSymbol { start, end: next.min(code.end), record });
        }
    }
    functions
}

struct FunctionList<'a> {
    table: &'a SectionContents,
    header: &'a TableHeader,
    memory: &'a FileMemory,
    address: u64,
    text: u64,
}

impl FunctionList<'_> {
    /// The start of each function, and its record. The last entry, which has no record, is the end of the
    /// code.
    fn read(&self) -> Option<Vec<(u64, Option<u64>)>> {
        let header = self.header;
        let end = header.list.checked_add(header.list_size()?)?;
        let mut scratch = Vec::new();
        let bytes = self.table.slice(header.list..end, &mut scratch)?;
        let mut starts = Vec::new();
        for (number, entry) in header.entries(bytes).enumerate() {
            let position = header.list + number as u64 * 2 * u64::from(header.field_size());
            starts.push((self.start(entry.start, position)?, entry.record));
        }
        Some(starts)
    }

    /// Where a function begins, given its value in the list. Before Go 1.18 that is a pointer, which may only
    /// be filled when the program is loaded.
    fn start(&self, provided: u64, position: u64) -> Option<u64> {
        if self.header.version >= Version::Eighteen {
            return self.text.checked_add(provided);
        }
        if provided != 0 { Some(provided) } else { self.memory.word(self.address.checked_add(position)?) }
    }
}

impl FunctionRecord {
    /// Reads the record of a function. `function_data` is the base of the positions of additional data.
    pub(super) fn read(
        function: &GoSymbol,
        table: &SectionContents,
        header: &TableHeader,
        memory: &FileMemory,
        (address, function_data): (u64, Option<u64>),
    ) -> Option<Self> {
        let record = FuncHeader::parse(&table.window(function.record, FuncHeader::MAX_SIZE)?, header)?;
        // Before Go 1.16, each version numbers the additional data differently, and the file does not state
        // its version.
        let additional = AdditionalData { table, header, memory, address, function_data };
        let inlined = record.details.and_then(|details| additional.inlined(function.record, details));
        Some(Self { record, inlined })
    }
}

/// The data after a record: positions of further tables, then of additional data.
struct AdditionalData<'a> {
    table: &'a SectionContents,
    header: &'a TableHeader,
    memory: &'a FileMemory,
    address: u64,
    function_data: Option<u64>,
}

impl AdditionalData<'_> {
    fn inlined(&self, record: u64, details: FunctionDetails) -> Option<InlinedCalls> {
        let table_count = u64::from(details.tables);
        if table_count <= PCDATA_INLINED || u64::from(details.data) <= FUNCDATA_INLINED {
            return None;
        }
        let tables = record.checked_add(details.size)?;
        let numbers = self.number(tables.checked_add(PCDATA_INLINED * 4)?)?;
        let data = tables.checked_add(table_count * 4)?;
        let calls = self.calls(data)?;
        (numbers != 0).then_some(InlinedCalls { numbers, calls })
    }

    /// The address of the calls, from the additional data at `data`.
    fn calls(&self, data: u64) -> Option<u64> {
        if self.header.version >= Version::Eighteen {
            let position = self.number(data.checked_add(FUNCDATA_INLINED * 4)?)?;
            // All bits set mean that there are none.
            return self.function_data?.checked_add(position.into()).filter(|_| position != u32::MAX);
        }
        let pointer = u64::from(self.header.pointer_size);
        let first = self.address.checked_add(data)?.checked_next_multiple_of(pointer)?;
        self.memory.word(first.checked_add(FUNCDATA_INLINED * pointer)?).filter(|&calls| calls != 0)
    }

    fn number(&self, position: u64) -> Option<u32> {
        let bytes = self.table.window(position, 4)?;
        Cursor::new(&bytes, 0, self.header.little_endian).u32()
    }
}
