//! The list of functions, and what is recorded of each.

use super::memory::Memory;
use crate::section::Section;
use nyquist_object::Cursor;
use nyquist_object::go::{Header, More, Record, Version};

/// Which of a function's tables says the inlined call of each address, and which of its additional data lists these
/// calls (`runtime/funcdata.h`), since Go 1.16.
const PCDATA_INLINED: u64 = 2;
const FUNCDATA_INLINED: u64 = 3;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where its record begins.
    record: u64,
}

/// What is recorded of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) record: Record,
    pub(super) inlined: Option<Inlined>,
}

/// Which calls were inlined into a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inlined {
    /// Where the table is that says the call's number for each address.
    pub(super) numbers: u32,
    /// Where the calls are in memory.
    pub(super) calls: u64,
}

/// The functions by address, none over another, as far as there is code. `address` is where the tables are in memory,
/// `text` where the code begins.
pub(super) fn functions(
    table: &Section,
    header: &Header,
    memory: &Memory,
    address: u64,
    text: u64,
) -> Vec<Function> {
    let list = List { table, header, memory, address, text };
    let mut starts = list.read().unwrap_or_default();
    starts.sort_unstable();
    starts.dedup_by_key(|(start, _)| *start);
    let mut functions = Vec::with_capacity(starts.len());
    for two in starts.windows(2) {
        let &[(start, record), (next, _)] = two else { continue };
        let Some(record) = record else { continue };
        // The tables' word alone is not enough to spend time on the length of a function.
        if let Some(code) = memory.code().find(|code| code.contains(&start)) {
            functions.push(Function { start, end: next.min(code.end), record });
        }
    }
    functions
}

struct List<'a> {
    table: &'a Section,
    header: &'a Header,
    memory: &'a Memory,
    address: u64,
    text: u64,
}

impl List<'_> {
    /// Where each function begins, and its record; the last one without a record is where the code ends.
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

    /// Where a function begins, given what is in the list; before Go 1.18 that is a pointer, which may be filled only
    /// when the program is loaded.
    fn start(&self, stated: u64, position: u64) -> Option<u64> {
        if self.header.version >= Version::Eighteen {
            return self.text.checked_add(stated);
        }
        if stated != 0 { Some(stated) } else { self.memory.word(self.address.checked_add(position)?) }
    }
}

impl Described {
    /// Reads what is recorded of a function. `function_data` is what the positions of additional data count from.
    pub(super) fn read(
        function: &Function,
        table: &Section,
        header: &Header,
        memory: &Memory,
        (address, function_data): (u64, Option<u64>),
    ) -> Option<Self> {
        let record = Record::parse(&table.window(function.record, Record::MAX_SIZE)?, header)?;
        // What is additional before Go 1.16 is numbered differently by each version, and the file does not say
        // which it is.
        let additional = Additional { table, header, memory, address, function_data };
        let inlined = record.more.and_then(|more| additional.inlined(function.record, more));
        Some(Self { record, inlined })
    }
}

/// What follows a record: positions of further tables, then of additional data.
struct Additional<'a> {
    table: &'a Section,
    header: &'a Header,
    memory: &'a Memory,
    address: u64,
    function_data: Option<u64>,
}

impl Additional<'_> {
    fn inlined(&self, record: u64, more: More) -> Option<Inlined> {
        let table_count = u64::from(more.tables);
        if table_count <= PCDATA_INLINED || u64::from(more.data) <= FUNCDATA_INLINED {
            return None;
        }
        let tables = record.checked_add(more.size)?;
        let numbers = self.number(tables.checked_add(PCDATA_INLINED * 4)?)?;
        let data = tables.checked_add(table_count * 4)?;
        let calls = self.calls(data)?;
        (numbers != 0).then_some(Inlined { numbers, calls })
    }

    /// Where the calls are, which the additional data at `data` says.
    fn calls(&self, data: u64) -> Option<u64> {
        if self.header.version >= Version::Eighteen {
            let position = self.number(data.checked_add(FUNCDATA_INLINED * 4)?)?;
            // All ones say that there are none.
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
