//! Unit headers, and the attributes of root entries.

use super::abbreviations::Abbreviations;
use super::attribute::{AttributeValue, StringRef};
use super::form::Encoding;
use super::pc::PcAttributes;
use super::sections::{Contributions, DwarfSections, UnitBases};
use crate::section_contents::SectionWindow;
use gimli::constants::{self, DwLang};
use nyquist_object::Cursor;
use std::sync::Arc;

/// The longest header that any version has, in its 64-bit form.
const MAX_HEADER: u64 = 40;

/// The most bytes of an abbreviation's code.
const MAX_LEB: u64 = 10;

/// The bytes that are read at the start of a unit.
const HEAD: u64 = 512;

/// The same if all units are read in order. Many units have no code, and are shorter than this.
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
    /// The id that a skeleton unit and its split unit share, if the header has it.
    dwo_id: Option<u64>,
}

impl UnitHeader {
    /// The window for reading headers and root entries.
    pub(crate) fn window(buffer: &mut Vec<u8>) -> SectionWindow<'_> {
        SectionWindow::new(buffer, HEADS)
    }

    /// Reads the header at `offset` of `.debug_info`. Nothing else of the unit is read, because most units
    /// are skipped.
    pub(crate) fn read(sections: &DwarfSections, offset: u64, heads: &mut SectionWindow<'_>) -> Option<Self> {
        let bytes = heads.read(&sections.info, offset, MAX_HEADER)?;
        let mut cursor = Cursor::new(bytes, 0, sections.little_endian);
        let (length, offset_size) = cursor.initial_length()?;
        let end = offset.checked_add(cursor.position() as u64)?.checked_add(length)?.min(sections.info.len());
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
            encoding: Encoding { version, address_size, offset_size, little_endian: sections.little_endian },
            abbreviations,
            is_type: kind == constants::DW_UT_type,
            dwo_id,
        })
    }
}

/// A unit: its header, its abbreviations, and its root entry's attributes.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) header: UnitHeader,
    pub(crate) abbreviations: Arc<Abbreviations>,
    pub(crate) pc: PcAttributes,
    pub(crate) low_pc: u64,
    pub(crate) name: Option<StringRef>,
    pub(crate) comp_dir: Option<StringRef>,
    /// Where its line program begins in `.debug_line`.
    pub(crate) lines: Option<u64>,
    pub(crate) bases: UnitBases,
    /// The start of the unit's part of a package's `.debug_rnglists`, which is added to positions.
    pub(crate) rnglists_start: u64,
    /// The base that is added to a split unit's positions in `.debug_ranges` (`DW_AT_GNU_ranges_base` of its
    /// skeleton).
    pub(crate) ranges_base: u64,
    /// The file that the rest of the unit was split off to.
    pub(crate) dwo_name: Option<StringRef>,
    pub(crate) dwo_id: Option<u64>,
    /// The language that it was compiled from (`DW_LANG_*`).
    language: Option<DwLang>,
    /// The bytes at the start of the unit. Inline strings of the root entry refer to it.
    head: Vec<u8>,
}

impl Unit {
    /// Reads the header at `offset` and the root entry after it.
    pub(crate) fn read(sections: &DwarfSections, offset: u64) -> Option<Self> {
        Self::read_part(sections, offset, Contributions::default())
    }

    /// As [`Unit::read`], for a unit whose parts of the other sections begin at `parts`.
    pub(crate) fn read_part(sections: &DwarfSections, offset: u64, parts: Contributions) -> Option<Self> {
        let mut buffer = Vec::new();
        let mut heads = SectionWindow::new(&mut buffer, HEAD);
        let mut header = UnitHeader::read(sections, offset, &mut heads)?;
        header.abbreviations = header.abbreviations.checked_add(parts.abbrev)?;
        let abbreviations = sections.abbreviations(header.abbreviations, header.encoding)?;
        Self::read_behind(sections, header, parts, &abbreviations, &mut heads)
    }

    /// Reads the root entry of the unit with that header.
    pub(crate) fn of(sections: &DwarfSections, header: UnitHeader) -> Option<Self> {
        let abbreviations = sections.abbreviations(header.abbreviations, header.encoding)?;
        let parts = Contributions::default();
        let mut buffer = Vec::new();
        Self::read_behind(sections, header, parts, &abbreviations, &mut SectionWindow::new(&mut buffer, 0))
    }

    /// Reads the root entry of the unit with this header. It only reads the abbreviation of that entry, so
    /// the result cannot be used for other entries.
    pub(crate) fn root(
        sections: &DwarfSections,
        header: UnitHeader,
        heads: &mut SectionWindow<'_>,
    ) -> Option<Self> {
        let head = heads.read(&sections.info, header.offset, header.root + MAX_LEB)?;
        let code = Cursor::new(head, header.root as usize, sections.little_endian).uleb()?;
        let abbreviations = sections.abbreviation(header.abbreviations, header.encoding, code)?;
        Self::read_behind(sections, header, Contributions::default(), &abbreviations, heads)
    }

    fn read_behind(
        sections: &DwarfSections,
        header: UnitHeader,
        parts: Contributions,
        abbreviations: &Arc<Abbreviations>,
        heads: &mut SectionWindow<'_>,
    ) -> Option<Self> {
        let size = header.end - header.offset;
        // Root entries are short, but an assembler writes whole command lines into them.
        [HEAD, 8 << 10, size].into_iter().find_map(|want| {
            let head = heads.read(&sections.info, header.offset, want.min(size))?.to_vec();
            Self::read_root(sections, header, parts, abbreviations, head)
        })
    }

    fn read_root(
        sections: &DwarfSections,
        header: UnitHeader,
        parts: Contributions,
        abbreviations: &Arc<Abbreviations>,
        head: Vec<u8>,
    ) -> Option<Self> {
        let mut unit = Self {
            header,
            abbreviations: abbreviations.clone(),
            pc: PcAttributes::default(),
            low_pc: 0,
            name: None,
            comp_dir: None,
            lines: None,
            bases: UnitBases {
                encoding: header.encoding,
                addr: 0,
                str_offsets: sections.default_str_offsets_base(header.encoding, parts),
                rnglists: sections.default_rnglists_base(header.encoding, parts),
            },
            rnglists_start: parts.rnglists,
            ranges_base: 0,
            dwo_name: None,
            dwo_id: header.dwo_id,
            language: None,
            head,
        };
        unit.read_attributes()?;
        unit.low_pc = unit.pc.low.and_then(|low| sections.address(&unit.bases, low)).unwrap_or(0);
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
                let value = AttributeValue::read(&mut cursor, attribute, encoding)?;
                self.take_attribute(attribute.name, value);
            }
        }
        self.head = head;
        Some(())
    }

    fn take_attribute(&mut self, name: constants::DwAt, value: AttributeValue) {
        self.pc.take(name, value);
        match (name, value) {
            (constants::DW_AT_stmt_list, _) => self.lines = value.number(),
            (constants::DW_AT_name, AttributeValue::String(string)) => self.name = Some(string),
            (constants::DW_AT_comp_dir, AttributeValue::String(string)) => self.comp_dir = Some(string),
            (constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name, AttributeValue::String(string)) => {
                self.dwo_name = Some(string);
            }
            (constants::DW_AT_language, _) => {
                self.language = value.number().and_then(|number| number.try_into().ok()).map(DwLang);
            }
            (constants::DW_AT_GNU_dwo_id, AttributeValue::Number(id)) => self.dwo_id = Some(id),
            (constants::DW_AT_addr_base | constants::DW_AT_GNU_addr_base, _) => {
                self.bases.addr = value.number().unwrap_or(0);
            }
            (constants::DW_AT_str_offsets_base, _) => self.bases.str_offsets = value.number().unwrap_or(0),
            (constants::DW_AT_rnglists_base, _) => self.bases.rnglists = value.number().unwrap_or(0),
            (constants::DW_AT_GNU_ranges_base, _) => self.ranges_base = value.number().unwrap_or(0),
            _ => {}
        }
    }

    /// Whether names in it may need qualifiers. C has no scopes of names, and Go and Ada state complete
    /// names.
    pub(crate) fn has_scopes(&self) -> bool {
        !matches!(
            self.language,
            Some(
                constants::DW_LANG_C89
                    | constants::DW_LANG_C
                    | constants::DW_LANG_C99
                    | constants::DW_LANG_C11
                    | constants::DW_LANG_C17
                    | constants::DW_LANG_ObjC
                    | constants::DW_LANG_Go
                    | constants::DW_LANG_Ada83
                    | constants::DW_LANG_Ada95
                    | constants::DW_LANG_Mips_Assembler
            )
        )
    }

    /// A string of the root entry.
    pub(crate) fn root_string(
        &self,
        sections: &DwarfSections,
        supplementary: Option<&DwarfSections>,
        string: StringRef,
    ) -> Option<Vec<u8>> {
        sections.string(&self.bases, string, &self.head, supplementary).map(std::borrow::Cow::into_owned)
    }
}
