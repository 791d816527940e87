//! Symbol tables, which find the function of an address even without debug info.

mod cached_rows;
mod elf_symbols;
mod entry;
mod row_table;
mod rows;

use crate::Origin;
use crate::cache::{CachedAnswers, TableFile};
use crate::demangle::readable;
use crate::go::GoTables;
use crate::guess::unnamed_functions;
use crate::named_range::NamedRange;
use crate::plt::plt_entries;
use crate::section_contents::{SectionContents, SharedSource};
use cached_rows::CachedRows;
#[cfg(feature = "test-hooks")]
pub(crate) use cached_rows::sealed_table;
use elf_symbols::ElfSymbols;
use entry::SymbolTableEntry;
use nyquist_object::{ByteSource as _, Elf, Svma};
use nyquist_resources::{Budget, Charge};
use row_table::{RowTable, SymbolRow};
use rows::{CachedTable, SymbolRows};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// How many functions before an address are checked whether they reach it, past those that end earlier.
const MAX_STEPS: usize = 1024;

/// The most names of one function that are compared, in either direction.
const MAX_ALIASES: usize = 32;

/// A symbol that states no size, such as those of Mach-O files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsizedSymbol {
    pub(crate) start: u64,
    /// The upper bound of its end.
    pub(crate) limit: u64,
    /// The offset of its name in the strings.
    pub(crate) name: u32,
    /// The quality of the name among those at the same address. The highest one is used.
    pub(crate) rank: u8,
}

/// The function symbols of one table, by address.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    rows: SymbolRows,
    /// Whether names have a leading underscore, as from compilers for macOS.
    has_underscores: bool,
    strings: SectionContents,
    /// The kind of the table.
    pub(crate) origin: Origin,
    /// The share of the rows in the memory budget.
    _charge: Option<Charge>,
}

/// A function that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableSymbol {
    /// Demangled, without its version.
    pub(crate) name: Arc<str>,
    /// Whether the name was a mangled one.
    pub(crate) was_mangled: bool,
    /// Where it is.
    pub(crate) range: Range<Svma>,
    pub(crate) origin: Origin,
}

impl SymbolTable {
    /// Reads the functions of the symbol table in the section with this name. `None` if there are none. If
    /// the table is in the cache of the module's answers, rows are read when they are needed.
    pub(crate) fn read(
        elf: &Elf<SharedSource>,
        name: &'static str,
        origin: Origin,
        answers: Option<&CachedAnswers>,
    ) -> Option<Self> {
        let header = elf.section(name)?;
        let strings = elf.sections().get(header.link as usize)?;
        let strings = SectionContents::open(elf, &strings.name).ok()?;
        let rows = read_rows(elf, name, answers)?;
        let charge = elf.source().budget().map(Budget::charge);
        let has_room = charge.as_ref().is_none_or(|charge| charge.take(rows.size()));
        has_room.then_some(Self { rows, has_underscores: false, strings, origin, _charge: charge })
    }

    /// The entries of the procedure linkage table, named after the functions that they jump to.
    pub(crate) fn of_plt(elf: &Elf<SharedSource>) -> Option<Self> {
        Self::of_ranges(plt_entries(elf), Origin::Plt)
    }

    /// The functions that the unwind information describes, with stand-ins for names.
    pub(crate) fn of_unwind_info(elf: &Elf<SharedSource>) -> Option<Self> {
        Self::of_ranges(unnamed_functions(elf), Origin::UnwindInfo)
    }

    /// The functions that Go's own tables list.
    pub(crate) fn of_go(tables: &GoTables) -> Option<Self> {
        let entry = |(start, end, name)| {
            let name = u32::try_from(name).ok()?;
            Some(SymbolTableEntry { start, end, name, rank: 0, is_sized: true })
        };
        Self::new(tables.names().filter_map(entry).collect(), tables.strings(), Origin::GoTables)
    }

    /// Named pieces of code.
    pub(crate) fn of_ranges(ranges: Vec<NamedRange>, origin: Origin) -> Option<Self> {
        let mut strings = vec![0];
        let entry = |NamedRange { start, end, name: text }: NamedRange| {
            let name = u32::try_from(strings.len()).ok()?;
            strings.extend_from_slice(&text);
            strings.push(0);
            Some(SymbolTableEntry { start, end, name, rank: 0, is_sized: true })
        };
        let entries = ranges.into_iter().filter_map(entry).collect();
        Self::new(entries, SectionContents::from(strings), origin)
    }

    /// Symbols of a Mach-O file: each reaches up to the next one, and has an underscore before its name.
    pub(crate) fn of_unsized(
        symbols: impl Iterator<Item = UnsizedSymbol>,
        strings: SectionContents,
    ) -> Option<Self> {
        let entry = |UnsizedSymbol { start, limit, name, rank }| {
            (start < limit).then_some(SymbolTableEntry { start, end: limit, name, rank, is_sized: false })
        };
        let table = Self::new(symbols.filter_map(entry).collect(), strings, Origin::SymbolTable)?;
        Some(Self { has_underscores: true, ..table })
    }

    /// A table of these entries. `None` if there are none.
    fn new(entries: Vec<SymbolTableEntry>, strings: SectionContents, origin: Origin) -> Option<Self> {
        (!entries.is_empty()).then(|| Self::of_entries(entries, strings, origin))
    }

    fn of_entries(entries: Vec<SymbolTableEntry>, strings: SectionContents, origin: Origin) -> Self {
        let rows = SymbolRows::Read(RowTable::of(entries));
        Self { rows, has_underscores: false, strings, origin, _charge: None }
    }

    /// The index of the function that contains the address. If functions are nested, it is the innermost.
    pub(crate) fn find(&self, address: Svma) -> Option<usize> {
        let before = (0..self.rows.after(address.0)).rev();
        let mut reachable = before
            .map_while(|index| Some((index, self.rows.row(index)?)))
            .take_while(|(_, row)| address.0 < row.furthest_end())
            .take(MAX_STEPS);
        reachable.find(|(_, row)| address.0 < row.end()).map(|(index, _)| index)
    }

    /// The addresses around one for which [`SymbolTable::find`] returns the same `index`. They begin at the
    /// function's start, or at the last start before the address, and go up to the next one.
    pub(crate) fn extent(&self, index: usize, address: Svma) -> Range<Svma> {
        let after = self.rows.after(address.0);
        let row = self.rows.row(index);
        let start = row.filter(|_| index + 1 == after).map_or(address.0, |row| row.start);
        let next = self.rows.row(after).map_or(u64::MAX, |next| next.start);
        Svma(start)..Svma(row.map_or(start, |row| row.end().min(next)))
    }

    /// Function number `index` of those that [`SymbolTable::find`] finds.
    pub(crate) fn function(&self, index: usize) -> Option<TableSymbol> {
        let row = self.rows.row(index)?;
        let raw = self.best_name(index)?;
        let (name, was_mangled) = self.readable_name(&raw);
        let name = if self.origin == Origin::Plt { format!("{name}@plt") } else { name };
        let range = Svma(row.start)..Svma(row.end());
        Some(TableSymbol { name: name.into(), was_mangled, range, origin: self.origin })
    }

    /// All names of the function that begins at an address, in order. A linker that folds functions with the
    /// same code leaves the names of all at one address.
    pub(crate) fn names_at(&self, start: Svma) -> BTreeSet<String> {
        let before = (0..self.rows.after(start.0)).rev().map_while(|index| self.rows.row(index));
        let same = before.take_while(|row: &SymbolRow| row.start == start.0).take(MAX_ALIASES);
        let names = same.filter_map(|row| self.strings.string(u64::from(row.name)));
        names.map(|raw| self.readable_name(&raw).0).collect()
    }

    /// A name for people, and whether it was mangled.
    fn readable_name(&self, raw: &[u8]) -> (String, bool) {
        let raw = String::from_utf8_lossy(raw);
        let plain = match raw.strip_prefix('_').filter(|_| self.has_underscores) {
            Some(plain) => plain,
            // Microsoft's names often contain the character that separates a version.
            None if self.has_underscores || raw.starts_with('?') => &*raw,
            None => without_version(&raw),
        };
        let name = readable(plain);
        let was_mangled = !plain.ends_with(&*name);
        (name.into_owned(), was_mangled)
    }
}

impl SymbolTable {
    /// Of the equally good names of one function, the one with the fewest leading underscores, and then the
    /// first one in the strings. Names are only read here, because they can be the largest part of a library.
    fn best_name(&self, index: usize) -> Option<Cow<'_, [u8]>> {
        let start = self.rows.row(index)?.start;
        let same = |index| self.rows.row(index).filter(|row: &SymbolRow| row.start == start);
        let before = (0..index).rev().map_while(same).take(MAX_ALIASES);
        let after = (index..).map_while(same).take(MAX_ALIASES);
        let names = before.chain(after).filter_map(|row| {
            let name = self.strings.string(u64::from(row.name))?;
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            Some((underscores, row.name, name))
        });
        names.min_by_key(|&(underscores, at, _)| (underscores, at)).map(|(_, _, name)| name)
    }
}

/// The name without the version that the linker appends: `memcpy@@GLIBC_2.14`.
fn without_version(name: &str) -> &str {
    match name.find('@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// The functions of a section's symbols, as [`SymbolTable::read`] reads them.
fn read_rows(
    elf: &Elf<SharedSource>,
    name: &'static str,
    answers: Option<&CachedAnswers>,
) -> Option<SymbolRows> {
    let symbols = ElfSymbols::open(elf, name)?;
    let largest = cached_rows::largest_file(symbols.count());
    let file = largest.zip(answers).and_then(|(largest, answers)| answers.table_file(elf, name, largest));
    if let Some(cached) = file.as_ref().and_then(|file| open_kept(elf, name, file)) {
        return Some(SymbolRows::Kept(cached));
    }
    // A table that is read for the second time will probably be read again. Then storing it is worth the
    // sorting.
    let keeper = answers.filter(|answers| answers.is_known()).zip(file);
    let table = RowTable::of(symbols.all());
    (table.len() > 0).then_some(())?;
    if let Some((answers, file)) = keeper {
        answers.keep_table(&file, &cached_rows::encode(&table, file.seed));
    }
    Some(SymbolRows::Read(table))
}

/// The cached functions of a section's symbols, if there are any. If one of their blocks is damaged, the
/// symbols are read.
fn open_kept(elf: &Elf<SharedSource>, name: &'static str, file: &TableFile) -> Option<CachedTable> {
    let cached = CachedRows::open(&file.open()?, file.seed)?;
    let (file, source) = (file.clone(), elf.source().clone());
    let remake = move || {
        file.remove();
        let elf = Elf::open(source.clone()).ok();
        let symbols = elf.as_ref().and_then(|elf| ElfSymbols::open(elf, name));
        symbols.map(|symbols| RowTable::of(symbols.all())).unwrap_or_default()
    };
    Some(CachedTable::new(cached, Box::new(remake)))
}

/// The names of the functions around addresses. `seed` is that of the head's checksum in the cached function
/// table, and its names are in the strings. `None` if its head is damaged. Functions in a damaged block have
/// no name.
#[cfg(any(test, feature = "test-hooks"))]
pub(crate) fn read_table(
    file: Vec<u8>,
    seed: u64,
    strings: Vec<u8>,
    addresses: &[u64],
) -> Option<Vec<Option<Arc<str>>>> {
    let cached = CachedRows::open(&(Arc::new(file) as SharedSource), seed)?;
    let rows = SymbolRows::Kept(CachedTable::new(cached, Box::new(RowTable::default)));
    let strings = SectionContents::from(strings);
    let table =
        SymbolTable { rows, has_underscores: false, strings, origin: Origin::SymbolTable, _charge: None };
    let name = |address: &u64| {
        let index = table.find(Svma(*address))?;
        let _ = table.extent(index, Svma(*address));
        Some(table.function(index)?.name)
    };
    Some(addresses.iter().map(name).collect())
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
            SymbolTableEntry { start, end, name: at, rank, is_sized: size > 0 }
        });
        let entries = entries.collect();
        SymbolTable::new(entries, SectionContents::from(strings), Origin::SymbolTable).unwrap()
    }

    fn check(table: &SymbolTable, address: u64, expected: Option<(&str, u64, u64)>) {
        let function = table.find(Svma(address)).and_then(|index| table.function(index));
        let found = function.as_ref().map(|f| (&*f.name, f.range.start.0, f.range.end.0));
        assert_eq!(found, expected, "{address:#x}");
    }

    #[test]
    fn a_function_ends_at_its_stated_end_or_the_next() {
        let table = table(&[(0x100, 0x10, "sized", 8), (0x200, 0, "unsized", 0), (0x300, 0x20, "last", 8)]);
        check(&table, 0xff, None);
        check(&table, 0x10f, Some(("sized", 0x100, 0x110)));
        check(&table, 0x110, None);
        check(&table, 0x2ff, Some(("unsized", 0x200, 0x300)));
        check(&table, 0x320, None);
    }

    #[test]
    fn the_innermost_function_answers_and_no_label() {
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
        let table =
            SymbolTable::of_unsized(symbols.into_iter(), SectionContents::from(strings.to_vec())).unwrap();
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

    #[test]
    fn folded_functions_have_all_their_names() {
        let table = table(&[
            (0x100, 0x10, "_Z9get_pricev", 9),
            (0x100, 0x10, "get_weight@V1", 9),
            (0x108, 0, "label", 0),
            (0x200, 0x10, "other", 9),
        ]);
        let names = |start| table.names_at(Svma(start)).into_iter().collect::<Vec<_>>();
        assert_eq!(names(0x100), ["get_price()", "get_weight"]);
        assert_eq!((names(0x200), names(0x104)), (vec!["other".to_owned()], vec![]));
    }

    /// `count` entries close together, which overlap, nest, and have several names and labels. They only
    /// depend on the seed.
    pub(super) fn crowded(seed: u64, count: u32, span: u64) -> Vec<SymbolTableEntry> {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let entry = |name| {
            let (start, is_sized) = (below(span), below(3) > 0);
            let longest = if below(4) == 0 { 60 } else { 8 };
            let end = if is_sized { start + 1 + below(longest) } else { span + 40 };
            SymbolTableEntry { start, end, name, rank: u8::from(is_sized) << 3 | below(3) as u8, is_sized }
        };
        (1..=count).map(entry).collect()
    }
}
