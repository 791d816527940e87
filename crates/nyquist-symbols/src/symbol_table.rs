//! Symbol tables: which function an address is in, whether or not there is debug info.

mod near;

use crate::Origin;
use crate::cursor::Cursor;
use crate::demangle::readable;
use crate::go::GoTables;
use crate::guess::unnamed_functions;
use crate::plt::plt_entries;
use crate::section::{Section, Source, Window};
use near::Near;
use nyquist_object::elf::Section as Header;
use nyquist_object::{Elf, Svma};
use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// Symbol types and bindings (System V gABI, "Symbol Table").
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;
const STB_GNU_UNIQUE: u8 = 10;

/// How many functions before an address are asked whether they reach it, past those that end earlier.
const MAX_STEPS: usize = 1024;

/// How many names of one function are compared, in either direction.
const MAX_ALIASES: usize = 32;

/// A function symbol as it is read.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    /// Where it ends, as far as its stated size, the next symbol and its section tell.
    end: u64,
    /// Where the name is in the strings.
    name: u32,
    /// How good a name it is among those at the same address; the highest wins.
    rank: u8,
    /// Whether the symbol states its size.
    is_sized: bool,
}

/// A function symbol as it is kept: tables have hundreds of thousands of them.
#[derive(Clone, Copy, Debug)]
struct Kept {
    start: u64,
    /// How many bytes on it ends. Addresses that are asked for are less than this can tell apart.
    len: u32,
    name: u32,
}

/// A piece of code whose name is not in a symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The linker's name.
    pub(crate) name: Vec<u8>,
}

/// A symbol that states no size, as those of Mach-O files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsizedSymbol {
    pub(crate) start: u64,
    /// Where it ends at the latest.
    pub(crate) limit: u64,
    /// Where its name is in the strings.
    pub(crate) name: u32,
    /// How good a name it is among those at the same address; the highest wins.
    pub(crate) rank: u8,
}

/// The function symbols of one table, by address.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    entries: Vec<Kept>,
    /// Whether names have an underscore in front, as compilers for macOS write it.
    has_underscores: bool,
    /// For each entry, how many bytes from its start on the furthest end of it and all before it is.
    reach: Vec<u32>,
    strings: Section,
    /// What the table was.
    pub(crate) origin: Origin,
}

/// A function that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Demangled, without its version.
    pub(crate) name: Arc<str>,
    /// Whether the name was a mangled one.
    pub(crate) was_mangled: bool,
    /// Where it is.
    pub(crate) range: Range<Svma>,
    pub(crate) origin: Origin,
}

impl SymbolTable {
    /// Reads the functions of the symbol table in the section of that name; `None` where there are none. Of a large table, where
    /// it is asked for a few addresses only, which ascend: those that tell of these.
    pub(crate) fn read(
        elf: &Elf<Source>,
        name: &str,
        origin: Origin,
        wanted: Option<&[u64]>,
    ) -> Option<Self> {
        let header = elf.section(name)?;
        let strings = elf.sections().get(header.link as usize)?;
        let strings = Section::open(elf, &strings.name).ok()?;
        let symbols = Section::open(elf, name).ok()?;
        let count = symbols.len() / symbol_size(elf);
        match wanted.filter(|wanted| near::pays_off(count, wanted.len())) {
            Some(wanted) => {
                Some(Self::of_entries(Self::entries_near(elf, &symbols, wanted)?, strings, origin))
            }
            None => {
                let mut entries = Vec::with_capacity(usize::try_from(count).ok()?);
                each_entry(elf, &symbols, |entry| entries.push(entry));
                Self::new(entries, strings, origin)
            }
        }
    }

    /// The entries of a table that tell of some addresses; `None` where it has none at all.
    fn entries_near(elf: &Elf<Source>, symbols: &Section, wanted: &[u64]) -> Option<Vec<Entry>> {
        let is_empty = Cell::new(true);
        let near = Near::find(wanted, |visit| {
            each_entry(elf, symbols, |entry| {
                is_empty.set(false);
                visit(&entry);
            });
        });
        let mut entries = Vec::new();
        each_entry(elf, symbols, |entry| entries.extend(near.has(&entry).then_some(entry)));
        (!is_empty.get()).then_some(entries)
    }

    /// The entries of the procedure linkage table, named after the functions that they jump to.
    pub(crate) fn of_plt(elf: &Elf<Source>) -> Option<Self> {
        Self::of_ranges(plt_entries(elf), Origin::Plt)
    }

    /// The functions that the unwind information tells of, with stand-ins for names.
    pub(crate) fn of_unwind_info(elf: &Elf<Source>) -> Option<Self> {
        Self::of_ranges(unnamed_functions(elf), Origin::UnwindInfo)
    }

    /// The functions that Go's own tables list.
    pub(crate) fn of_go(tables: &GoTables) -> Option<Self> {
        let entry = |(start, end, name)| {
            let name = u32::try_from(name).ok()?;
            Some(Entry { start, end, name, rank: 0, is_sized: true })
        };
        Self::new(tables.names().filter_map(entry).collect(), tables.strings(), Origin::GoTables)
    }

    /// Code that was found to have names.
    pub(crate) fn of_ranges(ranges: Vec<NamedRange>, origin: Origin) -> Option<Self> {
        let mut strings = vec![0];
        let entry = |NamedRange { start, end, name: text }: NamedRange| {
            let name = u32::try_from(strings.len()).ok()?;
            strings.extend_from_slice(&text);
            strings.push(0);
            Some(Entry { start, end, name, rank: 0, is_sized: true })
        };
        let entries = ranges.into_iter().filter_map(entry).collect();
        Self::new(entries, Section::Memory(strings), origin)
    }

    /// Symbols of a Mach-O file: each reaches up to the next one, and has an underscore before its name.
    pub(crate) fn of_unsized(symbols: impl Iterator<Item = UnsizedSymbol>, strings: Section) -> Option<Self> {
        let entry = |UnsizedSymbol { start, limit, name, rank }| {
            (start < limit).then_some(Entry { start, end: limit, name, rank, is_sized: false })
        };
        let table = Self::new(symbols.filter_map(entry).collect(), strings, Origin::SymbolTable)?;
        Some(Self { has_underscores: true, ..table })
    }

    /// A table of all entries that there are; `None` of none.
    fn new(entries: Vec<Entry>, strings: Section, origin: Origin) -> Option<Self> {
        (!entries.is_empty()).then(|| Self::of_entries(entries, strings, origin))
    }

    fn of_entries(mut entries: Vec<Entry>, strings: Section, origin: Origin) -> Self {
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
        let entries = entries.iter().map(Kept::of).collect();
        Self { entries, has_underscores: false, reach, strings, origin }
    }

    /// The number of the function that contains the address: of nested ones, the innermost.
    pub(crate) fn find(&self, address: Svma) -> Option<usize> {
        let after = self.entries.partition_point(|entry| entry.start <= address.0);
        let reachable = (0..after)
            .rev()
            .take_while(|&index| address.0 - self.entries[index].start < self.reach[index].into())
            .take(MAX_STEPS);
        reachable.into_iter().find(|&index| address.0 < self.entries[index].end())
    }

    /// The addresses around one for which [`SymbolTable::find`] gives the same number, `index`: from the function's start or, where others
    /// begin before the address, from there, and up to the next one.
    pub(crate) fn extent(&self, index: usize, address: Svma) -> Range<Svma> {
        let after = self.entries.partition_point(|entry| entry.start <= address.0);
        let entry = self.entries.get(index);
        let start = entry.filter(|_| index + 1 == after).map_or(address.0, |entry| entry.start);
        let next = self.entries.get(after).map_or(u64::MAX, |entry| entry.start);
        Svma(start)..Svma(entry.map_or(start, |entry| entry.end().min(next)))
    }

    /// Function number `index` of those that [`SymbolTable::find`] finds.
    pub(crate) fn function(&self, index: usize) -> Option<Function> {
        let entry = self.entries.get(index)?;
        let raw = self.best_name(index)?;
        let raw = String::from_utf8_lossy(&raw);
        let plain = match raw.strip_prefix('_').filter(|_| self.has_underscores) {
            Some(plain) => plain,
            // Microsoft's names are full of the character that stands before a version.
            None if self.has_underscores || raw.starts_with('?') => &*raw,
            None => without_version(&raw),
        };
        let name = readable(plain);
        let was_mangled = !plain.ends_with(&*name);
        let name = if self.origin == Origin::Plt { Cow::Owned(format!("{name}@plt")) } else { name };
        let range = Svma(entry.start)..Svma(entry.end());
        Some(Function { name: name.into(), was_mangled, range, origin: self.origin })
    }
}

impl SymbolTable {
    /// Of the names of one function that are equally good, the one with the fewest underscores in front, then the
    /// first in the strings. Names are read only here: a library may have more of them than of anything else.
    fn best_name(&self, index: usize) -> Option<Cow<'_, [u8]>> {
        let start = self.entries.get(index)?.start;
        let same = |entry: &&Kept| entry.start == start;
        let before = self.entries[..index].iter().rev().take_while(same).take(MAX_ALIASES);
        let after = self.entries[index..].iter().take_while(same).take(MAX_ALIASES);
        let names = before.chain(after).filter_map(|entry| {
            let name = self.strings.string(u64::from(entry.name))?;
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            Some((underscores, entry.name, name))
        });
        names.min_by_key(|&(underscores, at, _)| (underscores, at)).map(|(_, _, name)| name)
    }
}

impl Kept {
    fn of(entry: &Entry) -> Self {
        Self { start: entry.start, len: len(entry.start, entry.end), name: entry.name }
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.len.into())
    }
}

/// How many bytes it is from a start to an end, as far as that can be told.
fn len(start: u64, end: u64) -> u32 {
    u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX)
}

/// The name without the version that the linker appends: `memcpy@@GLIBC_2.14`.
fn without_version(name: &str) -> &str {
    match name.find('@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// How many bytes a symbol takes in a file.
fn symbol_size(elf: &Elf<Source>) -> u64 {
    if elf.is_64_bit() { 24 } else { 16 }
}

/// Calls `visit` with all symbols that name code, as far as they can be read.
fn each_entry(elf: &Elf<Source>, symbols: &Section, mut visit: impl FnMut(Entry)) {
    const AT_ONCE: u64 = 4096;
    let (size, sections) = (symbol_size(elf), elf.sections());
    let little_endian = elf.is_little_endian();
    let mut buffer = Vec::new();
    let (mut window, mut at) = (Window::new(&mut buffer, 0), 0);
    while let Some(bytes) = window.read(symbols, at, AT_ONCE * size).filter(|bytes| !bytes.is_empty()) {
        at += bytes.len() as u64;
        let symbols = bytes.chunks_exact(size as usize).filter_map(|symbol| {
            let mut cursor = Cursor::new(symbol, 0, little_endian);
            if size == 24 { read_64(&mut cursor, sections) } else { read_32(&mut cursor, sections) }
        });
        symbols.for_each(&mut visit);
    }
}

fn read_64(cursor: &mut Cursor<'_>, sections: &[Header]) -> Option<Entry> {
    let (name, info, _, section) = (cursor.u32()?, cursor.u8()?, cursor.u8()?, cursor.u16()?);
    entry(name, info, section, cursor.u64()?, cursor.u64()?, sections)
}

fn read_32(cursor: &mut Cursor<'_>, sections: &[Header]) -> Option<Entry> {
    let (name, start, size) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let (info, _, section) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
    entry(name, info, section, start.into(), size.into(), sections)
}

/// An entry for a symbol that names code.
fn entry(name: u32, info: u8, section: u16, start: u64, size: u64, sections: &[Header]) -> Option<Entry> {
    let kind = info & 0xf;
    let section = sections.get(usize::from(section)).filter(|_| section != 0)?;
    let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
    let is_code = section.is_code() && (is_function || kind == STT_NOTYPE);
    if !is_code || name == 0 {
        return None;
    }
    let section_end = section.address.0.saturating_add(section.size);
    let end = if size > 0 { start.saturating_add(size) } else { section_end };
    let binding = match info >> 4 {
        STB_GLOBAL | STB_GNU_UNIQUE => 2,
        STB_WEAK => 1,
        _ => 0,
    };
    let rank = u8::from(size > 0) << 3 | u8::from(is_function) << 2 | binding;
    (start < end).then_some(Entry { start, end, name, rank, is_sized: size > 0 })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, &str, u8)]) -> SymbolTable {
        let mut strings = vec![0];
        let entries = symbols.iter().map(|&(start, size, name, rank)| {
            let at = strings.len() as u32;
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            let end = if size > 0 { start + size } else { 0x1000 };
            Entry { start, end, name: at, rank, is_sized: size > 0 }
        });
        let entries = entries.collect();
        SymbolTable::new(entries, Section::Memory(strings), Origin::SymbolTable).unwrap()
    }

    fn check(table: &SymbolTable, address: u64, expected: Option<(&str, u64, u64)>) {
        let function = table.find(Svma(address)).and_then(|index| table.function(index));
        let found = function.as_ref().map(|f| (&*f.name, f.range.start.0, f.range.end.0));
        assert_eq!(found, expected, "{address:#x}");
    }

    #[test]
    fn a_function_reaches_to_its_stated_end_or_to_the_next() {
        let table = table(&[(0x100, 0x10, "sized", 8), (0x200, 0, "unsized", 0), (0x300, 0x20, "last", 8)]);
        check(&table, 0xff, None);
        check(&table, 0x10f, Some(("sized", 0x100, 0x110)));
        check(&table, 0x110, None);
        check(&table, 0x2ff, Some(("unsized", 0x200, 0x300)));
        check(&table, 0x320, None);
    }

    #[test]
    fn the_innermost_of_nested_functions_answers_and_labels_do_not() {
        let table = table(&[(0x100, 0x100, "outer", 8), (0x120, 0x10, "inner", 8), (0x180, 0, "label", 0)]);
        check(&table, 0x125, Some(("inner", 0x120, 0x130)));
        check(&table, 0x130, Some(("outer", 0x100, 0x200)));
        check(&table, 0x190, Some(("outer", 0x100, 0x200)));
    }

    #[test]
    fn the_underscore_of_macos_is_no_part_of_a_name() {
        let strings = b"\0__ZN3foo3barEv\0_main\0-[View draw@]\0";
        let symbol = |start, name, rank| UnsizedSymbol { start, limit: 0x300, name, rank };
        let symbols = [symbol(0x100, 1, 0), symbol(0x180, 16, 0), symbol(0x180, 22, 1), symbol(0x300, 16, 0)];
        let table = SymbolTable::of_unsized(symbols.into_iter(), Section::Memory(strings.to_vec())).unwrap();
        check(&table, 0x17f, Some(("foo::bar()", 0x100, 0x180)));
        check(&table, 0x2ff, Some(("-[View draw@]", 0x180, 0x300)));
        check(&table, 0x300, None);
        assert!(table.function(0).unwrap().was_mangled);
    }

    #[test]
    fn of_several_names_the_best_is_shown() {
        let table = table(&[
            (0x100, 0x10, "__write", 9),
            (0x100, 0x10, "write", 9),
            (0x100, 0x10, "local", 8),
            (0x200, 0x10, "memcpy@@GLIBC_2.14", 9),
            (0x300, 0, "_alias", 1),
            (0x300, 0, "name", 1),
            (0x400, 0, "next", 1),
        ]);
        check(&table, 0x3ff, Some(("name", 0x300, 0x400)));
        check(&table, 0x100, Some(("write", 0x100, 0x110)));
        check(&table, 0x200, Some(("memcpy", 0x200, 0x210)));
    }

    /// Entries that overlap, nest, have several names and labels, all near each other; the same for the same seed.
    fn crowded(seed: u64) -> Vec<Entry> {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let entry = |name| {
            let (start, is_sized) = (below(60), below(3) > 0);
            let longest = if below(4) == 0 { 60 } else { 8 };
            let end = if is_sized { start + 1 + below(longest) } else { 100 };
            Entry { start, end, name, rank: u8::from(is_sized) << 3 | below(3) as u8, is_sized }
        };
        (1..4 + seed as u32 % 12).map(entry).collect()
    }

    #[test]
    fn what_tells_of_a_few_addresses_says_the_same_of_them_as_all() {
        let strings = || Section::Memory((0..100).map(|byte| byte % 2 * b'f').collect());
        for seed in 0..20_000 {
            let entries = crowded(seed);
            let all = SymbolTable::of_entries(entries.clone(), strings(), Origin::SymbolTable);
            let wanted: Vec<u64> =
                (0..110).filter(|address| (address * 7 + seed) % (1 + seed % 9) == 0).collect();
            let near = Near::find(&wanted, |visit| entries.iter().for_each(visit));
            let some = entries.into_iter().filter(|entry| near.has(entry)).collect();
            let some = SymbolTable::of_entries(some, strings(), Origin::SymbolTable);
            for address in wanted {
                let of = |table: &SymbolTable| {
                    let index = table.find(Svma(address))?;
                    let extent = table.extent(index, Svma(address));
                    Some((table.function(index)?, table.entries[index].name, extent))
                };
                assert_eq!(of(&some), of(&all), "{address} of table {seed}");
                let extent = of(&some).map_or(Svma(address)..Svma(address), |(.., extent)| extent);
                for inside in extent.start.0..extent.end.0 {
                    assert_eq!(all.find(Svma(inside)), all.find(Svma(address)), "{inside} of table {seed}");
                }
            }
        }
    }
}
