//! The origins of an entry: the entries from a concrete one to the declaration, and the name that they state.

use super::attribute::{AttributeValue, StringRef};
use super::file::DwarfFile;
use super::function_name::FunctionName;
use super::ranges::UnitView;
use super::role::Role;
use super::unit::Unit;
use gimli::constants::{self, DwAt};
use nyquist_object::Cursor;
use std::sync::Arc;

/// The most origins that are followed: a concrete instance, its abstract instance, its declaration, and some
/// more.
const MAX_HOPS: usize = 16;

/// The file whose `.debug_info` contains an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DebugInfoFile {
    Own,
    Supplementary,
}

impl DebugInfoFile {
    pub(super) fn file<'a>(self, view: &UnitView<'a>) -> Option<&'a DwarfFile> {
        match self {
            Self::Own => Some(view.file),
            Self::Supplementary => view.supplementary,
        }
    }
}

/// The attributes of one entry that concern its name.
#[derive(Default)]
struct NameAttributes {
    linkage: Option<StringRef>,
    name: Option<StringRef>,
    origin: Option<AttributeValue>,
    file: Option<u64>,
    line: Option<u64>,
    /// Whether it is an inlined call. The entries around a call do not qualify its name.
    is_call: bool,
}

/// The result of following the origins of an entry.
#[derive(Default)]
pub(super) struct EntryOrigin {
    pub(super) name: Option<FunctionName>,
    /// The line that the name is declared at.
    pub(super) line: Option<u64>,
    /// The last of the entries. The entries around it qualify the name.
    pub(super) declaration: Option<(DebugInfoFile, u64)>,
    /// Whether only one unit was used.
    pub(super) is_unique: bool,
}

/// Which name is used of an entry that has both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameForm {
    Linkage,
    Plain,
}

impl NameAttributes {
    fn take(&mut self, name: DwAt, value: AttributeValue) {
        let string = if let AttributeValue::String(string) = value { Some(string) } else { None };
        match name {
            // Before DWARF 4, the attribute of linkage names was a vendor extension.
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => self.linkage = string,
            constants::DW_AT_name => self.name = string,
            constants::DW_AT_decl_file => self.file = value.number(),
            constants::DW_AT_decl_line => self.line = value.number(),
            constants::DW_AT_abstract_origin => self.origin = Some(value),
            // A reopened namespace may only have its name at its first entry.
            constants::DW_AT_specification | constants::DW_AT_extension => {
                self.origin = self.origin.or(Some(value));
            }
            _ => {}
        }
    }
}

/// Follows the origins of entries of one unit.
pub(super) struct Origins<'a> {
    pub(super) view: UnitView<'a>,
    /// The unit's bytes.
    pub(super) entries: &'a [u8],
    scratch: Vec<u8>,
}

impl<'a> Origins<'a> {
    pub(super) fn new(view: UnitView<'a>, entries: &'a [u8]) -> Self {
        Self { view, entries, scratch: Vec::new() }
    }

    /// Follows the origins of an entry until its name is known.
    pub(super) fn follow(&mut self, entry: (DebugInfoFile, u64), kind: NameForm) -> EntryOrigin {
        let own = self.view.unit.header;
        let mut name: Option<FunctionName> = None;
        let (mut file, mut line, mut declaration) = (None, None, None);
        let mut next = Some(entry);
        let (mut first, mut is_unique) = (None, true);
        for _ in 0..=MAX_HOPS {
            let Some((place, offset)) = next else { break };
            let Some((unit, found_attributes, found)) = self.visit(place, offset, kind) else { break };
            is_unique &= *first.get_or_insert((place, unit)) == (place, unit);
            declaration = Some((place, offset)).filter(|_| !found_attributes.is_call);
            line = line.or(found_attributes.line);
            let is_own = (place, unit) == (DebugInfoFile::Own, own.offset);
            file = file.or(found_attributes.file.filter(|_| is_own));
            match found {
                Some(found) if name.as_ref().is_none_or(|name| found.is_complete && !name.is_complete) => {
                    name = Some(found);
                }
                _ => {}
            }
            let knows_file = file.is_some() || !is_own;
            if knows_file && name.as_ref().is_some_and(|name| name.is_complete) {
                break;
            }
            next = found_attributes.origin.and_then(|origin| target((place, unit), origin));
        }
        // Before DWARF 5, 0 means that no file is known.
        let file = file.filter(|&file| file > 0 || own.encoding.version >= 5);
        let name = name.map(|name| FunctionName { file, ..name });
        EntryOrigin { name, line, declaration, is_unique }
    }

    /// Reads the entry at `offset` of a file. Returns its unit's offset, its attributes, and the name from
    /// these.
    fn visit(
        &mut self,
        place: DebugInfoFile,
        offset: u64,
        kind: NameForm,
    ) -> Option<(u64, NameAttributes, Option<FunctionName>)> {
        let own = self.view.unit.header;
        if place == DebugInfoFile::Own && (own.offset..own.end).contains(&offset) {
            let found_attributes = read_names(self.view.unit, self.entries, (offset - own.offset) as usize)?;
            let name = text(&self.view, place, self.view.unit, self.entries, &found_attributes, kind);
            return Some((own.offset, found_attributes, name));
        }
        let unit = self.unit_around(place, offset)?;
        let file = place.file(&self.view)?;
        // Most entries are short. More bytes are only read for long ones.
        [128, 4 << 10, 256 << 10].into_iter().find_map(|want| {
            let entries = file.sections.info.head(offset, want, &mut self.scratch)?;
            let found_attributes = read_names(&unit, entries, 0)?;
            let name = text(&self.view, place, &unit, entries, &found_attributes, kind);
            Some((unit.header.offset, found_attributes, name))
        })
    }

    pub(super) fn unit_around(&self, place: DebugInfoFile, offset: u64) -> Option<Arc<Unit>> {
        let file = place.file(&self.view)?;
        let header = file.unit_around(offset)?;
        let known = file.origin_units.get(header.offset);
        known.unwrap_or_else(|| {
            file.origin_units.keep(header.offset, Unit::of(&file.sections, *header).map(Arc::new))
        })
    }
}

/// The name that an entry of `unit` states, whose strings may be in `entries`.
fn text(
    view: &UnitView<'_>,
    place: DebugInfoFile,
    unit: &Unit,
    entries: &[u8],
    found_attributes: &NameAttributes,
    kind: NameForm,
) -> Option<FunctionName> {
    let linkage =
        found_attributes.linkage.filter(|_| kind == NameForm::Linkage || found_attributes.name.is_none());
    let string = linkage.or(found_attributes.name)?;
    let supplementary = if place == DebugInfoFile::Own { view.supplementary } else { None };
    let supplementary = supplementary.map(|file| &file.sections);
    let text = place.file(view)?.sections.function_name(&unit.bases, string, entries, supplementary)?;
    Some(FunctionName { text, is_complete: linkage.is_some(), file: None })
}

/// The file and the offset in it that a reference leads to from a unit.
fn target((place, unit): (DebugInfoFile, u64), reference: AttributeValue) -> Option<(DebugInfoFile, u64)> {
    match reference {
        AttributeValue::UnitRef(offset) => Some((place, unit.checked_add(offset)?)),
        AttributeValue::InfoRef(offset) => Some((place, offset)),
        AttributeValue::SupplementaryRef(offset) => Some((DebugInfoFile::Supplementary, offset)),
        _ => None,
    }
}

/// Reads the attributes of an entry that concern its name.
fn read_names(unit: &Unit, entries: &[u8], entry: usize) -> Option<NameAttributes> {
    let encoding = unit.header.encoding;
    let mut cursor = Cursor::new(entries, entry, encoding.little_endian);
    let abbreviation = unit.abbreviations.get(cursor.uleb()?)?;
    let mut found_attributes =
        NameAttributes { is_call: abbreviation.role == Role::Inlined, ..NameAttributes::default() };
    for attribute in unit.abbreviations.attributes(abbreviation) {
        let value = AttributeValue::read(&mut cursor, attribute, encoding)?;
        found_attributes.take(attribute.name, value);
    }
    Some(found_attributes)
}
