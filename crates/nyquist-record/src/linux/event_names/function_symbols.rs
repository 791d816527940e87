//! The functions in the symbol tables of a probe's file, within a budget of memory.

use std::borrow::Cow;

use nyquist_object::elf::ElfSection;
use nyquist_object::{ByteSource as _, Cursor, Elf, FileSource, ObjectError, Svma};
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
        let too_large = || PlaceError::from(format!("its symbols ({name}) take too much memory"));
        let reading = TableReader { elf, charge: elf.source().budget().map(Budget::charge) };
        let strings = match reading.bytes(strings.offset.0, strings.size) {
            Ok(strings) => strings,
            Err(ObjectError::TooLarge { .. }) => return Err(too_large()),
            Err(_) => return Ok(None),
        };
        if !reading.charge(strings.len()) {
            return Err(too_large());
        }
        match reading.symbols(section) {
            Some(symbols) => Ok(Some(Self { symbols, strings, _charge: reading.charge })),
            None => Err(too_large()),
        }
    }

    fn name(&self, symbol: Symbol) -> Option<Cow<'_, str>> {
        let rest = self.strings.get(symbol.name as usize..)?;
        let rest = rest.get(..MAX_NAME_LEN).unwrap_or(rest);
        let len = rest.iter().position(|byte| *byte == 0).filter(|len| *len > 0)?;
        Some(String::from_utf8_lossy(&rest[..len]))
    }
}

/// Reads a table within the budget of its file.
struct TableReader<'a> {
    elf: &'a Elf<FileSource>,
    charge: Option<Charge>,
}

impl TableReader<'_> {
    fn charge(&self, bytes: usize) -> bool {
        self.charge.as_ref().is_none_or(|charge| charge.take(bytes as u64))
    }

    fn bytes(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        self.elf.source().read_range(offset, len)
    }

    /// The functions among the symbols of a section, up to where it is damaged. `None` if they exceed the budget.
    fn symbols(&self, section: &ElfSection) -> Option<Vec<Symbol>> {
        let little_endian = self.elf.is_little_endian();
        let (mut symbols, mut at) = (Vec::new(), 0);
        while at < section.size / ENTRY {
            let count = AT_ONCE.min(section.size / ENTRY - at);
            let bytes = match self.bytes(section.offset.0.saturating_add(at * ENTRY), count * ENTRY) {
                Ok(bytes) => bytes,
                Err(ObjectError::TooLarge { .. }) => return None,
                Err(_) => break,
            };
            let before = symbols.len();
            symbols.extend(bytes.chunks_exact(ENTRY as usize).filter_map(|entry| read(entry, little_endian)));
            // The list is twice as long while it grows.
            self.charge((symbols.len() - before) * 2 * size_of::<Symbol>()).then_some(())?;
            at += count;
        }
        Some(symbols)
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
    fn tables_are_read_whole_or_refused() {
        let count = |budget| FunctionSymbols::read(&own_program(budget)).map(|read| read.iter().count());
        let all = count(1 << 30).unwrap();
        let mut refused = 0;
        for budget in (18..28).flat_map(|bits| [1 << bits, 3 << bits]) {
            // The headers need some memory, too.
            match count(budget) {
                Ok(found) => assert_eq!(found, all, "{budget} bytes"),
                Err(error) => {
                    refused += 1;
                    assert!(error.reason.contains("too much memory"), "{error:?}");
                }
            }
        }
        assert!((2..20).contains(&refused), "{refused} of 20 budgets are too small");
    }
}
