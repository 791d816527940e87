//! The DWARF sections of one file, and the references between them.

use super::abbreviations::Abbreviations;
use super::attribute::{AttributeValue, StringRef};
use super::form::Encoding;
use super::shared_map::SharedMap;
use crate::demangle::readable;
use crate::section_contents::SectionContents;
use nyquist_object::Cursor;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a split unit's parts of a package's sections begin. All are 0 outside of packages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contributions {
    pub(crate) abbrev: u64,
    pub(crate) str_offsets: u64,
    pub(crate) rnglists: u64,
}

/// Where a unit's parts of other sections begin, and their encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitBases {
    pub(crate) encoding: Encoding,
    /// `DW_AT_addr_base`.
    pub(crate) addr: u64,
    /// `DW_AT_str_offsets_base`.
    pub(crate) str_offsets: u64,
    /// `DW_AT_rnglists_base`.
    pub(crate) rnglists: u64,
}

/// How many times the size of `.debug_abbrev` may be read. Tables do not overlap, so once is enough, except
/// for the rare table that units of different encodings share. Hostile units can each begin in the middle of
/// another's table.
const MAX_ABBREVIATION_READS: u64 = 8;

/// The abbreviations that were compiled, and the number of bytes that were read for that.
#[derive(Debug, Default)]
struct AbbreviationCache {
    tables: FxHashMap<(u64, Encoding), Arc<Abbreviations>>,
    /// Single abbreviations, because units that were linked before share one long table.
    singles: FxHashMap<(u64, Encoding, u64), Arc<Abbreviations>>,
    read: u64,
}

/// The DWARF sections of one file: the binary itself, a debug file, dwz's supplementary file, or a split
/// file.
#[derive(Debug, Default)]
pub(crate) struct DwarfSections {
    pub(crate) little_endian: bool,
    pub(crate) info: SectionContents,
    pub(crate) line: SectionContents,
    pub(crate) aranges: SectionContents,
    abbrev: SectionContents,
    str: SectionContents,
    line_str: SectionContents,
    str_offsets: SectionContents,
    addr: SectionContents,
    pub(crate) ranges: SectionContents,
    pub(crate) rnglists: SectionContents,
    pub(crate) is_split: bool,
    abbreviations: Mutex<AbbreviationCache>,
    /// Demangled names by their position in `.debug_str`, where the linker keeps each name once.
    names: SharedMap<Arc<str>>,
}

impl DwarfSections {
    /// The sections of a file with this `.debug_info`. The others are opened by their names without
    /// `.debug_`.
    pub(crate) fn new(
        little_endian: bool,
        is_split: bool,
        info: SectionContents,
        open: impl Fn(&str) -> SectionContents,
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
    pub(crate) fn inflated(&self) -> Vec<(&'static str, &[u8])> {
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
        // If another thread has compiled it meanwhile, that thread has counted it.
        if let Some(known) = cache.tables.get(&(offset, encoding)) {
            return Some(known.clone());
        }
        cache.read = cache.read.saturating_add(size);
        let compiled = Arc::new(compiled?);
        cache.tables.insert((offset, encoding), compiled.clone());
        Some(compiled)
    }

    /// The abbreviation with this code at `offset` of `.debug_abbrev`. The result may contain others.
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

    /// The abbreviations at `offset`, or the one with the code `only`, and the number of bytes that were
    /// read; `None` if too much has been `read`. The end of the table is only known after it has been read,
    /// so the window grows until it contains the table.
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
        bases: &UnitBases,
        string: StringRef,
        entries: &'a [u8],
        supplementary: Option<&'a DwarfSections>,
    ) -> Option<Cow<'a, [u8]>> {
        match string {
            StringRef::Inline(start, len) => entries.get(start..start.checked_add(len)?).map(Cow::Borrowed),
            StringRef::Str(offset) => self.str.string(offset),
            StringRef::LineStr(offset) => self.line_str.string(offset),
            StringRef::SupplementaryStr(offset) => supplementary?.str.string(offset),
            StringRef::Index(index) => self.str.string(self.string_offset(bases, index)?),
        }
    }

    /// A function's name, demangled.
    pub(crate) fn function_name(
        &self,
        bases: &UnitBases,
        string: StringRef,
        entries: &[u8],
        supplementary: Option<&DwarfSections>,
    ) -> Option<Arc<str>> {
        let offset = match string {
            StringRef::SupplementaryStr(offset) => {
                return supplementary?.function_name(bases, StringRef::Str(offset), &[], None);
            }
            StringRef::Str(offset) => offset,
            StringRef::Index(index) => self.string_offset(bases, index)?,
            _ => return self.string(bases, string, entries, supplementary).map(|name| lossy_text(&name)),
        };
        if let Some(known) = self.names.get(offset) {
            return Some(known);
        }
        Some(self.names.keep(offset, lossy_text(&self.str.string(offset)?)))
    }

    /// The position in `.debug_str` of a unit's string number `index`.
    pub(crate) fn string_offset(&self, bases: &UnitBases, index: u64) -> Option<u64> {
        indexed(&self.str_offsets, bases.str_offsets, index, bases.encoding.offset_size, self)
    }

    /// The address that a value states. An index refers to this file's `.debug_addr`.
    pub(crate) fn address(&self, bases: &UnitBases, value: AttributeValue) -> Option<u64> {
        match value {
            AttributeValue::Address(address) => Some(address),
            AttributeValue::AddressIndex(index) => self.indexed_address(bases, index),
            _ => None,
        }
    }

    /// Address number `index` of a unit's part of `.debug_addr`.
    pub(crate) fn indexed_address(&self, bases: &UnitBases, index: u64) -> Option<u64> {
        indexed(&self.addr, bases.addr, index, bases.encoding.address_size, self)
    }

    /// The position in `.debug_rnglists` of a unit's range list number `index`.
    pub(crate) fn range_list_offset(&self, bases: &UnitBases, index: u64) -> Option<u64> {
        let base = bases.rnglists;
        let size = bases.encoding.offset_size;
        base.checked_add(indexed(&self.rnglists, base, index, size, self)?)
    }

    /// Split units do not state where their offsets begin. They begin after the header of DWARF 5 (7.26), or
    /// at the start in the GNU extension to DWARF 4.
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

fn lossy_text(name: &[u8]) -> Arc<str> {
    // This is much faster than the check with replacements.
    match str::from_utf8(name) {
        Ok(name) => readable(name).into(),
        Err(_) => readable(&String::from_utf8_lossy(name)).into(),
    }
}

/// Element `index`, of `size` bytes, of the array that begins at `base`.
fn indexed(
    section: &SectionContents,
    base: u64,
    index: u64,
    size: u8,
    sections: &DwarfSections,
) -> Option<u64> {
    let at = base.checked_add(index.checked_mul(u64::from(size))?)?;
    let bytes = section.window(at, u64::from(size))?;
    Cursor::new(&bytes, 0, sections.little_endian).sized(size)
}
