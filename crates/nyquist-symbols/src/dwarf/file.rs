//! The DWARF sections of one file, and the ways from one to another.

use super::abbreviations::Abbreviations;
use super::attribute::{Encoding, StringRef, Value};
use super::names::FunctionName;
use super::shared_map::SharedMap;
use super::unit::{Unit, UnitHeader};
use crate::AnswerCache;
use crate::demangle::readable;
use crate::section::{Section, Source, Window};
use nyquist_object::{ByteSource as _, Cursor, Elf, MachO, ObjectError, Pe};
use nyquist_resources::{Budget, Charge};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The most units that are believed: more than any real file has.
const MAX_UNITS: usize = 1 << 22;

/// Where a split unit's parts of a package's sections begin; all 0 outside of packages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contributions {
    pub(crate) abbrev: u64,
    pub(crate) str_offsets: u64,
    pub(crate) rnglists: u64,
}

/// How often all bytes of `.debug_abbrev` may be read. Tables do not overlap, so that once is enough, but for the
/// rare table that units of different encodings share; hostile units each begin in the midst of another's table.
const MAX_ABBREVIATION_READS: u64 = 8;

/// The abbreviations that were compiled, and the number of bytes that were read for that.
#[derive(Debug, Default)]
struct AbbreviationCache {
    tables: FxHashMap<(u64, Encoding), Arc<Abbreviations>>,
    /// Single abbreviations. Units that were linked before share a table, and it is long.
    singles: FxHashMap<(u64, Encoding, u64), Arc<Abbreviations>>,
    read: u64,
}

/// The DWARF sections of one file: the binary itself, a debug file, dwz's supplementary file, or a split file.
#[derive(Debug, Default)]
pub(crate) struct DwarfFile {
    pub(crate) little_endian: bool,
    pub(crate) info: Section,
    pub(crate) line: Section,
    pub(crate) aranges: Section,
    abbrev: Section,
    str: Section,
    line_str: Section,
    str_offsets: Section,
    addr: Section,
    pub(super) ranges: Section,
    pub(super) rnglists: Section,
    pub(super) is_split: bool,
    abbreviations: Mutex<AbbreviationCache>,
    units: OnceLock<Vec<UnitHeader>>,
    /// Demangled names by their position in `.debug_str`, where the linker keeps each name once.
    names: SharedMap<Arc<str>>,
    /// Units that others refer to, by their offset.
    pub(super) origin_units: SharedMap<Option<Arc<Unit>>>,
    /// The names of functions by their entry in `.debug_info`, of those that other units refer to.
    pub(super) origins: SharedMap<Option<FunctionName>>,
    /// What the lists of units and of their ranges take of the memory budget.
    charge: Option<Charge>,
}

impl DwarfFile {
    /// Opens the sections of a binary, a debug file or a supplementary file. `None` where there is no
    /// `.debug_info`; a section that is damaged is taken for empty. What has to be inflated is kept in the cache, or has been.
    pub(crate) fn open(elf: &Elf<Source>, cache: Option<&AnswerCache>) -> Option<Self> {
        let Some(inflated) = cache.and_then(|cache| cache.inflated(elf)) else {
            return Self::open_with(elf, "", |_| None);
        };
        let file = Self::open_with(elf, "", |name| inflated.section(name))?;
        inflated.keep(&file.inflated_sections());
        Some(file)
    }

    /// Opens the sections of a split file or a package, whose names end in `.dwo`.
    pub(crate) fn open_split(elf: &Elf<Source>) -> Option<Self> {
        Self::open_with(elf, ".dwo", |_| None)
    }

    /// Opens the sections whose names end in `suffix`, those of which something is `known` without the file.
    fn open_with(elf: &Elf<Source>, suffix: &str, known: impl Fn(&str) -> Option<Section>) -> Option<Self> {
        let open = |name: &str| -> Result<Section, ObjectError> {
            known(name).map_or_else(|| Section::open(elf, &format!(".debug_{name}{suffix}")), Ok)
        };
        let info = open("info").ok().filter(|info| info.len() > 0)?;
        let charge = elf.source().budget().map(Budget::charge);
        let file = Self::with_sections(elf.is_little_endian(), !suffix.is_empty(), info, |name| {
            open(name).unwrap_or_default()
        });
        Some(Self { charge, ..file })
    }

    /// Opens the sections of a PE image.
    pub(crate) fn open_pe(pe: &Pe<Source>) -> Option<Self> {
        let open = |name: &str| Section::open_pe(pe, &format!(".debug_{name}"));
        let info = open("info").filter(|info| info.len() > 0)?;
        let charge = pe.source().budget().map(Budget::charge);
        let file = Self::with_sections(true, false, info, |name| open(name).unwrap_or_default());
        Some(Self { charge, ..file })
    }

    /// Opens the sections of a Mach-O file: an image, the file in a `.dSYM`, or an object file.
    pub(crate) fn open_macho(file: &MachO<Source>) -> Option<Self> {
        let open = |name: &str| Section::open_macho(file, name);
        let info = open("info").filter(|info| info.len() > 0)?;
        let charge = file.source().budget().map(Budget::charge);
        let file = Self::with_sections(true, false, info, |name| open(name).unwrap_or_default());
        Some(Self { charge, ..file })
    }

    fn with_sections(
        little_endian: bool,
        is_split: bool,
        info: Section,
        open: impl Fn(&str) -> Section,
    ) -> Self {
        Self {
            little_endian,
            info,
            line: open("line"),
            aranges: open("aranges"),
            abbrev: open("abbrev"),
            str: open("str"),
            line_str: open("line_str"),
            str_offsets: open("str_offsets"),
            addr: open("addr"),
            ranges: open("ranges"),
            rnglists: open("rnglists"),
            is_split,
            ..Self::default()
        }
    }

    /// The sections that were compressed in the file, by their names.
    fn inflated_sections(&self) -> Vec<(&'static str, &[u8])> {
        let all = [
            ("info", &self.info),
            ("line", &self.line),
            ("aranges", &self.aranges),
            ("abbrev", &self.abbrev),
            ("str", &self.str),
            ("line_str", &self.line_str),
            ("str_offsets", &self.str_offsets),
            ("addr", &self.addr),
            ("ranges", &self.ranges),
            ("rnglists", &self.rnglists),
        ];
        all.into_iter().filter_map(|(name, section)| Some((name, section.memory()?))).collect()
    }

    /// The headers of all units, by offset. Reads them at the first call: one small read a unit, or a few units.
    pub(crate) fn units(&self) -> &[UnitHeader] {
        self.units.get_or_init(|| self.read_units(|_, _| {}))
    }

    /// Calls `visit` with the headers of all units, by offset, and with what was read around each.
    pub(crate) fn visit_units(&self, visit: impl FnMut(&UnitHeader, &mut Window<'_>)) {
        let units = self.read_units(visit);
        // Another thread may have been faster.
        let _ = self.units.set(units);
    }

    fn read_units(&self, mut visit: impl FnMut(&UnitHeader, &mut Window<'_>)) -> Vec<UnitHeader> {
        let (mut units, mut buffer) = (Vec::new(), Vec::new());
        let mut heads = UnitHeader::window(&mut buffer);
        let mut offset = 0;
        while units.len() < MAX_UNITS
            && self.has_room_for(&units)
            && offset < self.info.len()
            && let Some(header) = UnitHeader::read(self, offset, &mut heads)
            && header.end > offset
        {
            visit(&header, &mut heads);
            offset = header.end;
            units.push(header);
        }
        units
    }

    /// Whether one more item may be added to a list that is kept with the file. Memory is taken for many of them at once.
    pub(super) fn has_room_for<T>(&self, list: &[T]) -> bool {
        const AT_ONCE: usize = 1024;
        let is_due = list.len().is_multiple_of(AT_ONCE);
        let take = |charge: &Charge| charge.take((AT_ONCE * size_of::<T>()) as u64);
        !is_due || self.charge.as_ref().is_none_or(take)
    }

    /// The unit that holds the entry at `offset` of `.debug_info`.
    pub(crate) fn unit_around(&self, offset: u64) -> Option<&UnitHeader> {
        let units = self.units();
        let after = units.partition_point(|unit| unit.offset <= offset);
        units.get(after.checked_sub(1)?).filter(|unit| offset < unit.end)
    }

    /// The abbreviations at `offset` of `.debug_abbrev`, compiled once.
    pub(crate) fn abbreviations(&self, offset: u64, encoding: Encoding) -> Option<Arc<Abbreviations>> {
        let read = {
            let cache = self.abbreviation_cache();
            if let Some(known) = cache.tables.get(&(offset, encoding)) {
                return Some(known.clone());
            }
            cache.read
        };
        let (compiled, size) = self.compile_abbreviations(offset, encoding, None, read)?;
        let mut cache = self.abbreviation_cache();
        // What another thread has compiled meanwhile was counted by it.
        if let Some(known) = cache.tables.get(&(offset, encoding)) {
            return Some(known.clone());
        }
        cache.read = cache.read.saturating_add(size);
        let compiled = Arc::new(compiled?);
        cache.tables.insert((offset, encoding), compiled.clone());
        Some(compiled)
    }

    /// The abbreviation of that code among those at `offset` of `.debug_abbrev`; others may be with it.
    pub(crate) fn abbreviation(
        &self,
        offset: u64,
        encoding: Encoding,
        code: u64,
    ) -> Option<Arc<Abbreviations>> {
        let read = {
            let cache = self.abbreviation_cache();
            let whole = cache.tables.get(&(offset, encoding));
            if let Some(known) = whole.or_else(|| cache.singles.get(&(offset, encoding, code))) {
                return Some(known.clone());
            }
            cache.read
        };
        let (compiled, size) = self.compile_abbreviations(offset, encoding, Some(code), read)?;
        let mut cache = self.abbreviation_cache();
        cache.read = cache.read.saturating_add(size);
        let compiled = Arc::new(compiled?);
        cache.singles.insert((offset, encoding, code), compiled.clone());
        Some(compiled)
    }

    fn abbreviation_cache(&self) -> MutexGuard<'_, AbbreviationCache> {
        self.abbreviations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The abbreviations at `offset`, or the one with the code `only`, and the number of bytes that were read; `None`
    /// where too much has been `read`. Where the table ends is known only when it has been read, so the
    /// window grows until it is in it.
    fn compile_abbreviations(
        &self,
        offset: u64,
        encoding: Encoding,
        only: Option<u64>,
        read: u64,
    ) -> Option<(Option<Abbreviations>, u64)> {
        if read / MAX_ABBREVIATION_READS > self.abbrev.len() {
            return None;
        }
        let rest = self.abbrev.len().saturating_sub(offset);
        let mut want = 8 << 10;
        loop {
            let Some(bytes) = self.abbrev.window(offset, want) else { return Some((None, want)) };
            let mut cursor = Cursor::new(&bytes, 0, self.little_endian);
            let parsed = match only {
                Some(code) => Abbreviations::parse_single(&mut cursor, encoding, code),
                None => Abbreviations::parse(&mut cursor, encoding),
            };
            match parsed {
                None if want < rest => want *= 4,
                parsed => return Some((parsed, cursor.position() as u64)),
            }
        }
    }

    /// The bytes of a string. `entries` are the bytes in which the string's own entry was read.
    pub(crate) fn string<'a>(
        &'a self,
        unit: &Unit,
        string: StringRef,
        entries: &'a [u8],
        supplementary: Option<&'a DwarfFile>,
    ) -> Option<Cow<'a, [u8]>> {
        match string {
            StringRef::Inline(start, len) => entries.get(start..start.checked_add(len)?).map(Cow::Borrowed),
            StringRef::Str(offset) => self.str.string(offset),
            StringRef::LineStr(offset) => self.line_str.string(offset),
            StringRef::SupplementaryStr(offset) => supplementary?.str.string(offset),
            StringRef::Index(index) => self.str.string(self.string_offset(unit, index)?),
        }
    }

    /// A function's name, demangled.
    pub(crate) fn function_name(
        &self,
        unit: &Unit,
        string: StringRef,
        entries: &[u8],
        supplementary: Option<&DwarfFile>,
    ) -> Option<Arc<str>> {
        let offset = match string {
            StringRef::SupplementaryStr(offset) => {
                return supplementary?.function_name(unit, StringRef::Str(offset), &[], None);
            }
            StringRef::Str(offset) => offset,
            StringRef::Index(index) => self.string_offset(unit, index)?,
            _ => return self.string(unit, string, entries, supplementary).map(|name| shown(&name)),
        };
        if let Some(known) = self.names.get(offset) {
            return Some(known);
        }
        Some(self.names.keep(offset, shown(&self.str.string(offset)?)))
    }

    /// The position in `.debug_str` of the unit's string number `index`.
    pub(crate) fn string_offset(&self, unit: &Unit, index: u64) -> Option<u64> {
        indexed(&self.str_offsets, unit.str_offsets_base, index, unit.header.encoding.offset_size, self)
    }

    /// The address that a value states; those given by index stand in this file's `.debug_addr`.
    pub(crate) fn address(&self, unit: &Unit, value: Value) -> Option<u64> {
        match value {
            Value::Address(address) => Some(address),
            Value::AddressIndex(index) => self.indexed_address(unit.addr_base, index, unit.header.encoding),
            _ => None,
        }
    }

    /// Address number `index` of the part of `.debug_addr` that begins at `base`.
    pub(crate) fn indexed_address(&self, base: u64, index: u64, encoding: Encoding) -> Option<u64> {
        indexed(&self.addr, base, index, encoding.address_size, self)
    }

    /// The position in `.debug_rnglists` of the unit's range list number `index`.
    pub(crate) fn range_list_offset(&self, unit: &Unit, index: u64) -> Option<u64> {
        let base = unit.rnglists_base;
        let size = unit.header.encoding.offset_size;
        base.checked_add(indexed(&self.rnglists, base, index, size, self)?)
    }

    /// Split units do not state where their offsets begin: after the header of DWARF 5 (7.26), at the very start
    /// of the GNU extension to DWARF 4.
    pub(crate) fn default_str_offsets_base(&self, encoding: Encoding, parts: Contributions) -> u64 {
        let header = if encoding.version >= 5 { u64::from(encoding.offset_size) * 2 } else { 0 };
        if self.is_split { parts.str_offsets + header } else { 0 }
    }

    /// As for strings: after the header of DWARF 5 (7.28).
    pub(crate) fn default_rnglists_base(&self, encoding: Encoding, parts: Contributions) -> u64 {
        let header = if encoding.offset_size == 8 { 20 } else { 12 };
        if self.is_split { parts.rnglists + header } else { 0 }
    }
}

fn shown(name: &[u8]) -> Arc<str> {
    // Much faster than the check for what is to be replaced.
    match str::from_utf8(name) {
        Ok(name) => readable(name).into(),
        Err(_) => readable(&String::from_utf8_lossy(name)).into(),
    }
}

/// Element `index`, of `size` bytes, of the array that begins at `base`.
fn indexed(section: &Section, base: u64, index: u64, size: u8, file: &DwarfFile) -> Option<u64> {
    let at = base.checked_add(index.checked_mul(u64::from(size))?)?;
    let bytes = section.window(at, u64::from(size))?;
    Cursor::new(&bytes, 0, file.little_endian).sized(size)
}
