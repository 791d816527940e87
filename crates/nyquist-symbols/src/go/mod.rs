//! Go's own function tables (`.gopclntab`), which every Go program has for its runtime, even if it is
//! stripped. They map addresses to functions, files, lines and inlined calls.
//!
//! The tables themselves are read by [`nyquist_object::go`]. Inlined calls are known since Go 1.16.

mod functions;
mod locate;
mod memory;
mod module_data;
mod pc_values;

use crate::SourceFrame;
use crate::allowance::Allowance;
use crate::debug_answer::DebugAnswer;
use crate::section_contents::{SectionContents, SharedSource};
use functions::{FunctionRecord, GoSymbol, InlinedCalls, functions};
use locate::{LocatedTables, locate};
pub(crate) use locate::{has_tables, is_go};
use memory::FileMemory;
use module_data::ModuleData;
use nyquist_object::go::{TableHeader, Version};
use nyquist_object::{Elf, Svma};
use pc_values::PcValues;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// The deepest nesting of inlined calls that is followed. The compiler's own limit is much lower.
const MAX_DEPTH: usize = 256;

/// The function tables of one program.
#[derive(Debug)]
pub(crate) struct GoTables {
    table: SectionContents,
    /// Where the tables are in memory.
    address: u64,
    header: TableHeader,
    memory: FileMemory,
    layout: OnceLock<Layout>,
}

/// The data that is read when an address is first looked up.
#[derive(Debug)]
struct Layout {
    functions: Vec<GoSymbol>,
    function_data: Option<u64>,
}

impl GoTables {
    /// Finds the tables of a program. `None` if it has none.
    pub(crate) fn open(elf: &Elf<SharedSource>) -> Option<Self> {
        let LocatedTables { table, address, header } = locate(elf)?;
        Some(Self { table, address, header, memory: FileMemory::of(elf), layout: OnceLock::new() })
    }

    fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| {
            let Self { table, header, memory, address, .. } = self;
            let data = ModuleData::find(memory, *address, header);
            // The header does not have it since Go 1.26, and with other linkers than Go's own, which leave it
            // to be filled at start.
            let provided = Some(header.text).filter(|&text| text != 0);
            let text = provided.or(data.map(|data| data.text)).unwrap_or(0);
            Layout {
                functions: functions(table, header, memory, *address, text),
                function_data: data.and_then(|data| data.function_data),
            }
        })
    }

    /// The index of the function that contains an address.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        let functions = &self.layout().functions;
        let after = functions.partition_point(|function| function.start <= address);
        let number = after.checked_sub(1)?;
        functions.get(number).filter(|function| address < function.end).map(|_| number as u64)
    }

    /// Answers for `requested`, which are addresses of the function with this index.
    pub(crate) fn look_up(
        &self,
        number: u64,
        requested: &[u64],
        allowance: &mut Allowance,
    ) -> Vec<DebugAnswer> {
        match self.body(number) {
            Some(mut body) => {
                requested.iter().map(|&address| allowance.admitted(body.find(address))).collect()
            }
            None => vec![DebugAnswer::default(); requested.len()],
        }
    }

    /// Whether the function names a source file.
    pub(crate) fn names_source(&self, number: u64, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        let Some(mut body) = self.body(number) else { return false };
        let mut files: Vec<u32> = body.files.all().collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter().any(|index| body.path(index).is_some_and(|path| is_it(&path)))
    }

    /// Each function's code and the position of its name in the tables.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.layout().functions.iter().filter_map(|function| {
            let name = self.header.names.checked_add(self.record(function)?.record.name.into())?;
            Some((function.start, function.end, name))
        })
    }

    /// The bytes that contain these names.
    pub(crate) fn strings(&self) -> SectionContents {
        self.table.unread()
    }

    fn record(&self, function: &GoSymbol) -> Option<FunctionRecord> {
        let bases = (self.address, self.layout().function_data);
        FunctionRecord::read(function, &self.table, &self.header, &self.memory, bases)
    }

    fn body(&self, number: u64) -> Option<FunctionTables<'_>> {
        let function = *self.layout().functions.get(usize::try_from(number).ok()?)?;
        let FunctionRecord { record, inlined } = self.record(&function)?;
        let values = |position: u32| {
            let header = &self.header;
            let Some(offset) = header.values.checked_add(position.into()).filter(|_| position != 0) else {
                return PcValues::default();
            };
            let size = function.end - function.start;
            PcValues::read(&self.table, offset, header.quantum, size)
        };
        Some(FunctionTables {
            tables: self,
            function,
            name: self.name(record.name),
            unit: record.details.map_or(0, |details| details.unit),
            files: values(record.files),
            lines: values(record.lines),
            inlined: inlined.map(|inlined| (inlined, values(inlined.numbers))),
            paths: FxHashMap::default(),
        })
    }

    fn name(&self, position: u32) -> Option<Arc<str>> {
        let name = self.table.string(self.header.names.checked_add(position.into())?)?;
        (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into())
    }

    /// The path of a file, by the number that a function of the compilation unit whose files begin at `unit`
    /// gives it.
    fn path(&self, unit: u32, index: u32) -> Option<Arc<str>> {
        let header = &self.header;
        let number = |list: u64, index: u64| {
            let bytes = self.table.window(list.checked_add(index * 4)?, 4)?;
            nyquist_object::Cursor::new(&bytes, 0, header.little_endian).u32()
        };
        let position = if header.version == Version::Two {
            number(header.files, index.into()).filter(|_| index != 0).map(u64::from)
        } else {
            // All bits set mean a file that is not named anywhere.
            let position = number(header.units, u64::from(unit) + u64::from(index));
            let position = position.filter(|&position| position != u32::MAX);
            position.and_then(|position| header.files.checked_add(position.into()))
        };
        let path = self.table.string(position?)?;
        (!path.is_empty()).then(|| String::from_utf8_lossy(&path).into())
    }

    /// An inlined call: the name of the function, and the place of the call in the function around it, as the
    /// offset of an instruction there (`inlinedCall`).
    fn call(&self, calls: u64, number: u32) -> Option<(Option<Arc<str>>, u64)> {
        let (size, name_at) = if self.header.version >= Version::Twenty { (16, 4) } else { (20, 12) };
        let bytes = self.memory.window(calls.checked_add(u64::from(number) * size)?, size)?;
        let mut cursor = self.memory.cursor(&bytes);
        cursor.skip(name_at)?;
        let (name, place) = (cursor.u32()?, cursor.u32()?);
        Some((self.name(name), place.into()))
    }
}

/// One function and its tables.
struct FunctionTables<'a> {
    tables: &'a GoTables,
    function: GoSymbol,
    name: Option<Arc<str>>,
    unit: u32,
    files: PcValues,
    lines: PcValues,
    inlined: Option<(InlinedCalls, PcValues)>,
    paths: FxHashMap<u32, Option<Arc<str>>>,
}

impl FunctionTables<'_> {
    fn find(&mut self, address: u64) -> DebugAnswer {
        let mut at = address.saturating_sub(self.function.start);
        let mut frames = Vec::new();
        while frames.len() < MAX_DEPTH
            && let Some((name, place)) = self.call(at)
        {
            frames.push(self.frame(name, at));
            at = place;
        }
        frames.push(self.frame(self.name.clone(), at));
        let function = Svma(self.function.start)..Svma(self.function.end);
        DebugAnswer { frames, is_complete: true, function: Some(function) }
    }

    /// The inlined call of the instruction at an offset.
    fn call(&self, at: u64) -> Option<(Option<Arc<str>>, u64)> {
        let (inlined, numbers) = self.inlined.as_ref()?;
        self.tables.call(inlined.calls, numbers.at(at)?)
    }

    fn frame(&mut self, function: Option<Arc<str>>, at: u64) -> SourceFrame {
        let file = self.files.at(at).and_then(|index| self.path(index));
        let line = self.lines.at(at).filter(|&line| line != 0);
        SourceFrame { function, file, line, ..SourceFrame::default() }
    }

    fn path(&mut self, index: u32) -> Option<Arc<str>> {
        let (tables, unit) = (self.tables, self.unit);
        self.paths.entry(index).or_insert_with(|| tables.path(unit, index)).clone()
    }
}
