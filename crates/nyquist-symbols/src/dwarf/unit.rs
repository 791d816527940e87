//! Unit headers, and what the root entry of a unit says.

use super::abbreviations::Abbreviations;
use super::attribute::{Encoding, StringRef, Value};
use super::file::{Contributions, DwarfFile};
use crate::section::Window;
use gimli::constants;
use nyquist_object::Cursor;
use std::sync::Arc;

/// The longest header that any version has, in its 64-bit form.
const MAX_HEADER: u64 = 40;

/// The most bytes that an abbreviation's code takes.
const MAX_LEB: u64 = 10;

/// How much is read where a unit begins.
const HEAD: u64 = 512;

/// The same where all units are read in turn. Those without code are many, and shorter than that.
const HEADS: u64 = 8 << 10;

/// The header of a unit in `.debug_info` (DWARF 5, 7.5.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitHeader {
    /// Where the unit begins in the section.
    pub(crate) offset: u64,
    /// Where the next unit begins.
    pub(crate) end: u64,
    /// The distance of the root entry from the unit's start.
    pub(crate) root: u64,
    pub(crate) encoding: Encoding,
    /// Where its abbreviations begin.
    abbreviations: u64,
    /// Whether it is a type unit, which holds no code.
    pub(crate) is_type: bool,
    /// The id that a skeleton unit and its split unit share, where the header holds it.
    dwo_id: Option<u64>,
}

impl UnitHeader {
    /// What headers and root entries are read with.
    pub(crate) fn window(buffer: &mut Vec<u8>) -> Window<'_> {
        Window::new(buffer, HEADS)
    }

    /// Reads the header at `offset` of `.debug_info`. Of each unit no more is read than that: most are passed over.
    pub(crate) fn read(file: &DwarfFile, offset: u64, heads: &mut Window<'_>) -> Option<Self> {
        let bytes = heads.read(&file.info, offset, MAX_HEADER)?;
        let mut cursor = Cursor::new(bytes, 0, file.little_endian);
        let (length, offset_size) = cursor.initial_length()?;
        let end = offset.checked_add(cursor.position() as u64)?.checked_add(length)?.min(file.info.len());
        let version = cursor.u16()?;
        if !(2..=5).contains(&version) {
            return None;
        }
        let (mut kind, address_size, abbreviations);
        if version >= 5 {
            kind = constants::DwUt(cursor.u8()?);
            address_size = cursor.u8()?;
            abbreviations = cursor.sized(offset_size)?;
        } else {
            kind = constants::DW_UT_compile;
            abbreviations = cursor.sized(offset_size)?;
            address_size = cursor.u8()?;
        }
        let mut dwo_id = None;
        match kind {
            constants::DW_UT_skeleton | constants::DW_UT_split_compile => dwo_id = Some(cursor.u64()?),
            constants::DW_UT_type | constants::DW_UT_split_type => {
                cursor.skip(8 + u64::from(offset_size))?;
                kind = constants::DW_UT_type;
            }
            _ => {}
        }
        Some(Self {
            offset,
            end,
            root: cursor.position() as u64,
            encoding: Encoding { version, address_size, offset_size, little_endian: file.little_endian },
            abbreviations,
            is_type: kind == constants::DW_UT_type,
            dwo_id,
        })
    }
}

/// How an entry says which code it covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pc {
    pub(crate) low: Option<Value>,
    pub(crate) high: Option<Value>,
    pub(crate) ranges: Option<Value>,
}

impl Pc {
    /// Takes note of an attribute.
    pub(crate) fn take(&mut self, name: constants::DwAt, value: Value) {
        match name {
            constants::DW_AT_low_pc => self.low = Some(value),
            constants::DW_AT_high_pc => self.high = Some(value),
            constants::DW_AT_ranges => self.ranges = Some(value),
            _ => {}
        }
    }
}

/// A unit: its header, its abbreviations, and its root entry's attributes.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) header: UnitHeader,
    pub(crate) abbreviations: Arc<Abbreviations>,
    pub(crate) pc: Pc,
    pub(crate) low_pc: u64,
    pub(crate) name: Option<StringRef>,
    pub(crate) comp_dir: Option<StringRef>,
    /// Where its line program begins in `.debug_line`.
    pub(crate) lines: Option<u64>,
    pub(crate) addr_base: u64,
    pub(crate) str_offsets_base: u64,
    pub(crate) rnglists_base: u64,
    /// What is added to a position in `.debug_rnglists`: where the unit's part of a package begins.
    pub(crate) rnglists_start: u64,
    /// What is added to a split unit's positions in `.debug_ranges` (`DW_AT_GNU_ranges_base` of its skeleton).
    pub(crate) ranges_base: u64,
    /// The file that the rest of the unit was split off to.
    pub(crate) dwo_name: Option<StringRef>,
    pub(crate) dwo_id: Option<u64>,
    /// The bytes at the start of the unit; strings that stand in the root entry point into it.
    head: Vec<u8>,
}

impl Unit {
    /// Reads the header at `offset` and the root entry after it.
    pub(crate) fn read(file: &DwarfFile, offset: u64) -> Option<Self> {
        Self::read_part(file, offset, Contributions::default())
    }

    /// As [`Unit::read`], of a unit whose parts of the other sections begin where `parts` says.
    pub(crate) fn read_part(file: &DwarfFile, offset: u64, parts: Contributions) -> Option<Self> {
        let mut buffer = Vec::new();
        let mut heads = Window::new(&mut buffer, HEAD);
        let mut header = UnitHeader::read(file, offset, &mut heads)?;
        header.abbreviations = header.abbreviations.checked_add(parts.abbrev)?;
        let abbreviations = file.abbreviations(header.abbreviations, header.encoding)?;
        Self::read_behind(file, header, parts, &abbreviations, &mut heads)
    }

    /// Reads the root entry of the unit with that header.
    pub(crate) fn of(file: &DwarfFile, header: UnitHeader) -> Option<Self> {
        let abbreviations = file.abbreviations(header.abbreviations, header.encoding)?;
        let parts = Contributions::default();
        let mut buffer = Vec::new();
        Self::read_behind(file, header, parts, &abbreviations, &mut Window::new(&mut buffer, 0))
    }

    /// Reads the root entry of the unit with that header, and of its abbreviations only what that takes: with the result
    /// no other entry can be read.
    pub(crate) fn root(file: &DwarfFile, header: UnitHeader, heads: &mut Window<'_>) -> Option<Self> {
        let head = heads.read(&file.info, header.offset, header.root + MAX_LEB)?;
        let code = Cursor::new(head, header.root as usize, file.little_endian).uleb()?;
        let abbreviations = file.abbreviation(header.abbreviations, header.encoding, code)?;
        Self::read_behind(file, header, Contributions::default(), &abbreviations, heads)
    }

    fn read_behind(
        file: &DwarfFile,
        header: UnitHeader,
        parts: Contributions,
        abbreviations: &Arc<Abbreviations>,
        heads: &mut Window<'_>,
    ) -> Option<Self> {
        let size = header.end - header.offset;
        // Root entries are short, but an assembler writes whole command lines into them.
        [HEAD, 8 << 10, size].into_iter().find_map(|want| {
            let head = heads.read(&file.info, header.offset, want.min(size))?.to_vec();
            Self::read_root(file, header, parts, abbreviations, head)
        })
    }

    fn read_root(
        file: &DwarfFile,
        header: UnitHeader,
        parts: Contributions,
        abbreviations: &Arc<Abbreviations>,
        head: Vec<u8>,
    ) -> Option<Self> {
        let mut unit = Self {
            header,
            abbreviations: abbreviations.clone(),
            pc: Pc::default(),
            low_pc: 0,
            name: None,
            comp_dir: None,
            lines: None,
            addr_base: 0,
            str_offsets_base: file.default_str_offsets_base(header.encoding, parts),
            rnglists_base: file.default_rnglists_base(header.encoding, parts),
            rnglists_start: parts.rnglists,
            ranges_base: 0,
            dwo_name: None,
            dwo_id: header.dwo_id,
            head,
        };
        unit.read_attributes()?;
        unit.low_pc = unit.pc.low.and_then(|low| file.address(&unit, low)).unwrap_or(0);
        Some(unit)
    }

    fn read_attributes(&mut self) -> Option<()> {
        let head = std::mem::take(&mut self.head);
        let abbreviations = self.abbreviations.clone();
        let encoding = self.header.encoding;
        let mut cursor = Cursor::new(&head, self.header.root as usize, encoding.little_endian);
        let code = cursor.uleb()?;
        if let Some(abbreviation) = abbreviations.get(code) {
            for attribute in abbreviations.attributes(abbreviation) {
                let value = Value::read(&mut cursor, attribute, encoding)?;
                self.take_attribute(attribute.name, value);
            }
        }
        self.head = head;
        Some(())
    }

    fn take_attribute(&mut self, name: constants::DwAt, value: Value) {
        self.pc.take(name, value);
        match (name, value) {
            (constants::DW_AT_stmt_list, _) => self.lines = value.number(),
            (constants::DW_AT_name, Value::String(string)) => self.name = Some(string),
            (constants::DW_AT_comp_dir, Value::String(string)) => self.comp_dir = Some(string),
            (constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name, Value::String(string)) => {
                self.dwo_name = Some(string);
            }
            (constants::DW_AT_GNU_dwo_id, Value::Number(id)) => self.dwo_id = Some(id),
            (constants::DW_AT_addr_base | constants::DW_AT_GNU_addr_base, _) => {
                self.addr_base = value.number().unwrap_or(0);
            }
            (constants::DW_AT_str_offsets_base, _) => self.str_offsets_base = value.number().unwrap_or(0),
            (constants::DW_AT_rnglists_base, _) => self.rnglists_base = value.number().unwrap_or(0),
            (constants::DW_AT_GNU_ranges_base, _) => self.ranges_base = value.number().unwrap_or(0),
            _ => {}
        }
    }

    /// A string of the root entry.
    pub(crate) fn root_string(
        &self,
        file: &DwarfFile,
        supplementary: Option<&DwarfFile>,
        string: StringRef,
    ) -> Option<Vec<u8>> {
        file.string(self, string, &self.head, supplementary).map(std::borrow::Cow::into_owned)
    }
}
