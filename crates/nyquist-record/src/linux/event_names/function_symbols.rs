//! The functions in the symbol tables of a probe's file, within a budget of memory.

use std::borrow::Cow;

use nyquist_object::elf::ElfSection;
use nyquist_object::{ByteSource as _, Cursor, Elf, FileSource, Svma};
use nyquist_resources::{Budget, Charge};

use super::place_error::PlaceError;

/// Bytes of a symbol of a 64-bit file (ELF-64, "Symbol Table").
const ENTRY: u64 = 24;

/// How many symbols are read in one call.
const AT_ONCE: u64 = 4096;

/// Longer names are left out. No compiler makes them.
const MAX_NAME_LEN: usize = 64 << 10;

/// How many functions before an address are checked whether they reach it.
const MAX_STEPS: usize = 64;

/// A function: where it begins, and its size, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) start: Svma,
    pub(super) size: Option<u64>,
}

/// The functions of a file, in the order of its tables.
#[derive(Debug, Default)]
pub(super) struct FunctionSymbols {
    tables: Vec<Table>,
}

/// The functions of one table.
#[derive(Debug)]
struct Table {
    symbols: Vec<Symbol>,
    strings: Vec<u8>,
    _charge: Option<Charge>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    size: u64,
    /// The place of its name in the strings.
    name: u32,
}

impl FunctionSymbols {
    /// Reads both symbol tables of a 64-bit file.
    ///
    /// # Errors
    /// They take more memory than is allowed.
    pub(super) fn read(elf: &Elf<FileSource>) -> Result<Self, PlaceError> {
        if !elf.is_64_bit() {
            return Ok(Self::default());
        }
        let tables = [".symtab", ".dynsym"].iter().filter_map(|name| Table::read(elf, name).transpose());
        Ok(Self { tables: tables.collect::<Result<_, _>>()? })
    }

    /// All functions with their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, Function)> + Clone {
        self.tables.iter().flat_map(|table| {
            table.symbols.iter().filter_map(|symbol| Some((table.name(*symbol)?, symbol.function())))
        })
    }

    /// The ranges of the functions whose size is known.
    pub(super) fn ranges(self) -> FunctionRanges {
        let all = self.tables.into_iter().flat_map(|table| table.symbols);
        let mut ranges: Vec<_> =
            all.filter(|symbol| symbol.size > 0).map(|symbol| (symbol.start, symbol.size)).collect();
        ranges.sort_unstable();
        FunctionRanges(ranges)
    }
}

/// The starts and sizes of functions, by address.
pub(super) struct FunctionRanges(Vec<(u64, u64)>);

impl FunctionRanges {
    /// The innermost function around an address.
    pub(super) fn around(&self, address: Svma) -> Option<Function> {
        let after = self.0.partition_point(|(start, _)| *start <= address.0);
        let mut before = self.0[..after].iter().rev().take(MAX_STEPS);
        let &(start, size) = before.find(|(start, size)| address.0 - start < *size)?;
        Some(Function { start: Svma(start), size: Some(size) })
    }
}

impl Table {
    /// Reads a table. `None` if there is none, or it is damaged.
    fn read(elf: &Elf<FileSource>, name: &str) -> Result<Option<Self>, PlaceError> {
        let is_plain = |section: &&ElfSection| section.has_bytes() && !elf.is_compressed(section);
        let Some(section) = elf.section(name).filter(is_plain) else { return Ok(None) };
        let strings = elf.sections().get(section.link as usize).filter(is_plain);
        let Some(strings) = strings else { return Ok(None) };
        let charge = elf.source().budget().map(Budget::charge);
        let charged = |bytes: u64| charge.as_ref().is_none_or(|charge| charge.take(bytes));
        let too_large = || PlaceError::from(format!("its symbols ({name}) take too much memory"));
        if !charged(strings.size) {
            return Err(too_large());
        }
        let Ok(strings) = elf.source().read_range(strings.offset.0, strings.size) else { return Ok(None) };
        let mut symbols = Vec::new();
        let mut at = 0;
        while at < section.size / ENTRY {
            let count = AT_ONCE.min(section.size / ENTRY - at);
            let Some(start) = section.offset.0.checked_add(at * ENTRY) else { break };
            let Ok(bytes) = elf.source().read_range(start, count * ENTRY) else { break };
            let little_endian = elf.is_little_endian();
            let found = bytes.chunks_exact(ENTRY as usize).filter_map(|entry| read(entry, little_endian));
            let before = symbols.len();
            symbols.extend(found);
            if !charged(((symbols.len() - before) * 2 * size_of::<Symbol>()) as u64) {
                return Err(too_large());
            }
            at += count;
        }
        Ok(Some(Self { symbols, strings, _charge: charge }))
    }

    fn name(&self, symbol: Symbol) -> Option<Cow<'_, str>> {
        let rest = self.strings.get(symbol.name as usize..)?;
        let rest = rest.get(..MAX_NAME_LEN).unwrap_or(rest);
        let len = rest.iter().position(|byte| *byte == 0).filter(|len| *len > 0)?;
        Some(String::from_utf8_lossy(&rest[..len]))
    }
}

impl Symbol {
    fn function(self) -> Function {
        Function { start: Svma(self.start), size: Some(self.size).filter(|size| *size > 0) }
    }
}

/// Reads a symbol, if it is a function with an address and a name: `STT_FUNC` or `STT_GNU_IFUNC`.
fn read(entry: &[u8], little_endian: bool) -> Option<Symbol> {
    const FUNCTION: u8 = 2;
    const INDIRECT_FUNCTION: u8 = 10;
    let mut cursor = Cursor::new(entry, 0, little_endian);
    let (name, info) = (cursor.u32()?, cursor.u8()?);
    cursor.skip(3)?;
    let (start, size) = (cursor.u64()?, cursor.u64()?);
    let is_function = [FUNCTION, INDIRECT_FUNCTION].contains(&(info & 0xf));
    (is_function && start != 0 && name != 0).then_some(Symbol { start, size, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn own_program(budget: u64) -> Elf<FileSource> {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        Elf::open(FileSource::within(file, Budget::new(budget))).unwrap()
    }

    #[test]
    fn functions_have_names_and_sizes() {
        let functions = FunctionSymbols::read(&own_program(1 << 30)).unwrap();
        let (_, main) = functions.iter().find(|(name, _)| name == "main").unwrap();
        assert!(main.size.unwrap() > 4);
        let ranges = functions.ranges();
        assert_eq!(ranges.around(Svma(main.start.0 + 3)), Some(main));
        assert_eq!(ranges.around(Svma(3)), None);
    }

    #[test]
    fn tables_beyond_the_budget_are_refused() {
        let elf = own_program(100 << 10);
        let error = FunctionSymbols::read(&elf).unwrap_err();
        assert!(error.reason.contains("too much memory"), "{error:?}");
    }
}
