//! The functions of Go's own table, each with its stack depth at each instruction.

use crate::rule::Rule;
use nyquist_object::go::{FuncHeader, ListEntry, PcValueReader, TableHeader, Version};
use std::ops::Range;

/// The functions at which Go's own unwinder ends, for versions without this flag in their tables
/// (`topofstack` in `runtime/traceback.go` of Go 1.15).
const OUTERMOST: [&[u8]; 6] = [
    b"runtime.goexit",
    b"runtime.mstart",
    b"runtime.mcall",
    b"runtime.morestack",
    b"runtime.rt0_go",
    b"_rt0_go",
];

/// The functions that switch to another stack and back, for versions without this flag in their tables
/// (`runtime/asm_amd64.s` of Go 1.15).
const STACK_SWITCHES: [&[u8]; 3] =
    [b"runtime.asmcgocall", b"runtime.systemstack", b"runtime.cgocallback_gofunc"];

/// The functions that the runtime makes interrupted code call, as if at any of its instructions
/// (`isAsyncSafePoint` and `preparePanic` in `runtime/preempt.go` and `runtime/signal_arm64.go` of Go 1.19).
const INJECTED: [&[u8]; 3] = [b"runtime.asyncPreempt", b"runtime.sigpanic", b"runtime.debugCallV2"];

/// The offset in a function at which each of its rules begins to hold, in ascending order, and the rule.
pub(super) type RuleRows = Vec<(u32, Rule)>;

/// The table of functions.
pub(super) struct GoFunctions<'a> {
    /// Where the code of all functions begins. 0 if only the loader knows it.
    pub(super) text: u64,
    /// The start of the first function in the list. 0 if the list's addresses are relative to it.
    first: u64,
    /// Whether records have flags for outermost functions.
    has_flags: bool,
    header: TableHeader,
    table: &'a [u8],
}

/// The description of a function.
pub(super) struct GoFunctionEntry<'a> {
    /// Its code, relative to the first function's start.
    pub(super) range: Range<u32>,
    /// Whether it has no caller.
    pub(super) is_top: bool,
    /// Whether it sets the stack pointer to an address outside of its own frame.
    pub(super) writes_stack_pointer: bool,
    /// Whether the runtime makes interrupted code call it.
    pub(super) is_injected: bool,
    /// The distances in bytes from the stack pointer to the return address.
    depths: PcValueReader<'a>,
}

impl<'a> GoFunctions<'a> {
    /// Reads the header. `None` for another form, or for a machine that is not 64-bit or has another
    /// instruction size than `quantum`.
    pub(super) fn new(table: &'a [u8], quantum: u8) -> Option<Self> {
        let header = TableHeader::parse(table)?;
        if (header.quantum, header.pointer_size, header.little_endian) != (quantum, 8, true) {
            return None;
        }
        let counts_from_text = header.version >= Version::Eighteen;
        let mut functions = Self { text: header.text, first: 0, has_flags: counts_from_text, header, table };
        if !counts_from_text {
            let start = functions.header.entries(functions.list()?).next()?.start;
            (functions.text, functions.first) = (start, start);
            // Go 1.16 and 1.17 have the same header, and only the latter's linker sets the flag of outermost
            // functions.
            let has_flags =
                functions.records().any(|record| record.details.is_some_and(|details| details.is_top));
            functions.has_flags = has_flags;
        }
        Some(functions)
    }

    /// The functions by address. Functions without a description are left out.
    pub(super) fn entries(&self) -> impl Iterator<Item = GoFunctionEntry<'a>> + '_ {
        let list = self.list().unwrap_or_default();
        let ends = self.header.entries(list).skip(1);
        self.header.entries(list).zip(ends).filter_map(|(function, next)| self.entry(function, next))
    }

    fn records(&self) -> impl Iterator<Item = FuncHeader> + '_ {
        let functions = self.header.entries(self.list().unwrap_or_default());
        functions.filter_map(|function| self.record(function))
    }

    fn record(&self, function: ListEntry) -> Option<FuncHeader> {
        FuncHeader::parse(self.from(function.record?)?, &self.header)
    }

    /// The bytes of the list of functions.
    fn list(&self) -> Option<&'a [u8]> {
        let start = self.header.list;
        let end = start.checked_add(self.header.list_size()?)?;
        self.table.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    fn entry(&self, function: ListEntry, next: ListEntry) -> Option<GoFunctionEntry<'a>> {
        let record = self.record(function)?;
        let depths = self.from(self.header.values.checked_add(record.depths.into())?)?;
        let (is_top, writes_stack_pointer) = match record.details {
            Some(details) if self.has_flags => (details.is_top, details.writes_stack_pointer),
            _ => (self.is_named(record.name, &OUTERMOST), self.is_named(record.name, &STACK_SWITCHES)),
        };
        let start = |entry: ListEntry| u32::try_from(entry.start.checked_sub(self.first)?).ok();
        Some(GoFunctionEntry {
            range: start(function)?..start(next)?,
            is_top,
            writes_stack_pointer,
            is_injected: self.is_named(record.name, &INJECTED),
            depths: PcValueReader::new(depths, self.header.quantum),
        })
    }

    /// Whether a function's name is one of the known ones.
    fn is_named(&self, position: u32, known: &[&[u8]]) -> bool {
        let name = self.header.names.checked_add(position.into()).and_then(|position| self.from(position));
        let is = |known: &&[u8]| {
            name.and_then(|name| name.strip_prefix(*known)).is_some_and(|rest| rest.first() == Some(&0))
        };
        known.iter().any(is)
    }

    fn from(&self, position: u64) -> Option<&'a [u8]> {
        self.table.get(usize::try_from(position).ok()?..)
    }
}

impl GoFunctionEntry<'_> {
    /// The offset in the function at which each depth begins to hold, and the depth. `None` for an impossible
    /// depth.
    pub(super) fn depths(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let len = u64::from(self.range.end.saturating_sub(self.range.start));
        let held = self.depths.clone().take_while(move |value| value.start < len);
        held.map(|value| (value.start as u32, u32::try_from(value.value).ok()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const MAGIC_18: u32 = 0xffff_fff0;
    const MAGIC_20: u32 = 0xffff_fff1;

    fn entry(len: u32, depths: &[u8]) -> Vec<(u32, Option<u32>)> {
        let depths = PcValueReader::new(depths, 1);
        let (is_top, writes_stack_pointer, is_injected) = (false, false, false);
        GoFunctionEntry { range: 0..len, is_top, writes_stack_pointer, is_injected, depths }
            .depths()
            .collect()
    }

    #[test]
    fn depths_are_changes_from_the_one_before() {
        // + 1 from - 1 for 4 bytes, + 24 for 200, - 24 for 1.
        let depths = [2, 4, 48, 200, 1, 47, 1, 0];
        assert_eq!(entry(205, &depths), [(0, Some(0)), (4, Some(24)), (204, Some(0))]);
        assert_eq!(entry(4, &depths), [(0, Some(0))]);
        assert_eq!(entry(205, &depths[..4]), [(0, Some(0))]);
        assert_eq!(entry(9, &[0, 1, 0]), [(0, None)]);
        assert!(entry(9, &[2, 0, 2, 0]).is_empty());
        assert!(entry(9, &[0xff; 9]).is_empty());
    }

    /// A handmade table of one function.
    pub(in crate::go) fn table(magic: u32, quantum: u8, flags: u8, depths: &[u8]) -> Vec<u8> {
        let mut bytes = [magic, 0x0800_0000 | u32::from(quantum) << 16].map(u32::to_le_bytes).concat();
        let numbers = 72;
        let table = (numbers + depths.len()).next_multiple_of(8) as u64;
        for long in [1, 0, 0x40_1000, 0, 0, 0, numbers as u64, table] {
            bytes.extend(u64::to_le_bytes(long));
        }
        bytes.extend(depths);
        bytes.resize(table as usize, 0);
        bytes.extend([0x10_u32, 12, 0x40].map(u32::to_le_bytes).concat());
        let mut description = vec![0; 48];
        description[if magic == MAGIC_18 { 37 } else { 41 }] = flags;
        bytes.extend(description);
        bytes
    }

    #[test]
    fn both_forms_are_read() {
        for magic in [MAGIC_18, MAGIC_20] {
            let bytes = table(magic, 1, 3, &[2, 4, 0]);
            let functions = GoFunctions::new(&bytes, 1).unwrap();
            let found: Vec<_> = functions.entries().collect();
            let [entry] = &*found else { panic!("{} functions", found.len()) };
            assert_eq!((functions.text, &entry.range), (0x40_1000, &(0x10..0x40)));
            assert!(entry.is_top && entry.writes_stack_pointer);
            assert_eq!(entry.depths().collect::<Vec<_>>(), [(0, Some(0))]);
            for len in 0..bytes.len() {
                let _ = GoFunctions::new(&bytes[..len], 1).map(|functions| functions.entries().count());
            }
        }
    }

    /// The list of these functions (a name and flags each, 16 bytes of code from 0x40_1000 on, nothing on the
    /// stack) as Go 1.2 or 1.16 write it.
    fn old_table(version: Version, functions: &[(&str, u8)]) -> Vec<u8> {
        let is_two = version == Version::Two;
        let header = if is_two { 16 } else { 64 };
        let records = header + 16 * functions.len() + if is_two { 12 } else { 8 };
        let names = records + 48 * functions.len();
        let mut text = vec![2, 16, 0];
        let positions: Vec<usize> = functions
            .iter()
            .map(|(name, _)| {
                let position = text.len();
                text.extend(name.bytes().chain([0]));
                position
            })
            .collect();
        let (magic, base) = if is_two { (0xffff_fffb_u32, 0) } else { (0xffff_fffa, names) };
        let mut bytes = [magic, 0x0801_0000].map(u32::to_le_bytes).concat();
        bytes.extend((functions.len() as u64).to_le_bytes());
        if !is_two {
            for part in [0, names, names, names, names, header] {
                bytes.extend((part as u64).to_le_bytes());
            }
        }
        let origin = if is_two { 0 } else { header };
        for number in 0..functions.len() {
            let record = records + 48 * number - origin;
            bytes.extend([0x40_1000 + 16 * number as u64, record as u64].map(u64::to_le_bytes).concat());
        }
        bytes.extend((0x40_1000 + 16 * functions.len() as u64).to_le_bytes());
        bytes.resize(records, 0);
        for ((_, flags), position) in functions.iter().zip(positions) {
            let numbers = [names + position - base, 0, 0, names - base];
            bytes.extend([0; 8]);
            bytes.extend(numbers.map(|number| (number as u32).to_le_bytes()).concat());
            bytes.extend([0; 17]);
            bytes.push(*flags);
            bytes.extend([0; 6]);
        }
        bytes.extend(text);
        bytes
    }

    #[test]
    fn names_say_what_old_tables_do_not() {
        let check = |version, functions: &[(&str, u8)], expected: &[(bool, bool)]| {
            let bytes = old_table(version, functions);
            let table = GoFunctions::new(&bytes, 1).unwrap();
            assert_eq!(table.text, 0x40_1000);
            let entries: Vec<_> = table.entries().collect();
            let found: Vec<_> =
                entries.iter().map(|entry| (entry.is_top, entry.writes_stack_pointer)).collect();
            assert_eq!(found, expected, "{version:?} {functions:?}");
            for (number, entry) in entries.iter().enumerate() {
                assert_eq!(entry.range, 16 * number as u32..16 * number as u32 + 16);
                assert_eq!(entry.depths().collect::<Vec<_>>(), [(0, Some(0))]);
            }
            for len in 0..bytes.len() {
                let _ = GoFunctions::new(&bytes[..len], 1).map(|functions| functions.entries().count());
            }
        };
        let functions =
            [("main.main", 0), ("runtime.goexit", 0), ("runtime.goexit1", 0), ("runtime.systemstack", 0)];
        for version in [Version::Two, Version::Sixteen] {
            check(version, &functions, &[(false, false), (true, false), (false, false), (false, true)]);
        }
        // The table of Go 1.17 has flags.
        let functions = [("main.main", 0), ("runtime.goexit", 1), ("runtime.mcall", 2)];
        check(Version::Sixteen, &functions, &[(false, false), (true, false), (false, true)]);
    }
}
