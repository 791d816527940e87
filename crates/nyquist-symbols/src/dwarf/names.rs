//! The names of functions: from an entry along its origins to a linkage name.

use super::attribute::{StringRef, Value};
use super::file::DwarfFile;
use super::ranges::UnitView;
use super::unit::Unit;
use gimli::constants::{self, DwAt};
use nyquist_object::Cursor;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many origins are followed: a concrete instance, its abstract one, its declaration, and some to spare.
const MAX_HOPS: usize = 16;

/// A function's name.
#[derive(Clone, Debug)]
pub(crate) struct FunctionName {
    /// Demangled.
    pub(crate) text: Arc<str>,
    /// Whether it was made from a linkage name, which is complete, and not from the plain name.
    pub(crate) is_complete: bool,
    /// The number of the file that it is declared in, in the unit's line table; `None` where that is not said, or said in
    /// another unit.
    pub(crate) file: Option<u64>,
}

/// Which file's `.debug_info` an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Own,
    Supplementary,
}

impl Place {
    fn file<'a>(self, view: &UnitView<'a>) -> Option<&'a DwarfFile> {
        match self {
            Self::Own => Some(view.file),
            Self::Supplementary => view.supplementary,
        }
    }
}

/// What one entry says of its name.
#[derive(Default)]
struct Said {
    linkage: Option<StringRef>,
    name: Option<StringRef>,
    origin: Option<Value>,
    file: Option<u64>,
}

impl Said {
    fn take(&mut self, name: DwAt, value: Value) {
        let string = if let Value::String(string) = value { Some(string) } else { None };
        match name {
            // What linkage names were called before DWARF 4 has a number of its own.
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => self.linkage = string,
            constants::DW_AT_name => self.name = string,
            constants::DW_AT_decl_file => self.file = value.number(),
            constants::DW_AT_abstract_origin => self.origin = Some(value),
            constants::DW_AT_specification => self.origin = self.origin.or(Some(value)),
            _ => {}
        }
    }
}

/// Names the functions of one unit.
pub(crate) struct Names<'a> {
    view: UnitView<'a>,
    /// The unit's bytes.
    entries: &'a [u8],
    known: FxHashMap<u64, Option<FunctionName>>,
    scratch: Vec<u8>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(view: UnitView<'a>, entries: &'a [u8]) -> Self {
        Self { view, entries, known: FxHashMap::default(), scratch: Vec::new() }
    }

    /// The name of the function or inlined call whose entry is at `entry` of `.debug_info`.
    pub(crate) fn name(&mut self, entry: u64) -> Option<FunctionName> {
        if let Some(known) = self.known.get(&entry) {
            return known.clone();
        }
        let header = self.view.unit.header;
        let name = if (header.offset..header.end).contains(&entry) {
            self.find(entry).0
        } else {
            self.origin(entry)
        };
        self.known.insert(entry, name.clone());
        name
    }

    /// The name of an entry of another unit, to which many units may refer.
    fn origin(&mut self, entry: u64) -> Option<FunctionName> {
        let origins = &self.view.file.origins;
        if let Some(known) = origins.get(entry) {
            return known;
        }
        match self.find(entry) {
            (name, true) => origins.keep(entry, name),
            (name, false) => name,
        }
    }

    /// The name of an entry, and whether its unit alone was asked, so that it is the same for all that refer to it.
    fn find(&mut self, entry: u64) -> (Option<FunctionName>, bool) {
        let own = self.view.unit.header;
        let mut name: Option<FunctionName> = None;
        let mut file = None;
        let mut next = Some((Place::Own, entry));
        let (mut first, mut is_of_one) = (None, true);
        for _ in 0..=MAX_HOPS {
            let Some((place, offset)) = next else { break };
            let Some((unit, said, found)) = self.visit(place, offset) else { break };
            is_of_one &= *first.get_or_insert((place, unit)) == (place, unit);
            let is_own = (place, unit) == (Place::Own, own.offset);
            file = file.or(said.file.filter(|_| is_own));
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
            next = said.origin.and_then(|origin| target((place, unit), origin));
        }
        // Before DWARF 5, 0 says that no file is known.
        let file = file.filter(|&file| file > 0 || own.encoding.version >= 5);
        (name.map(|name| FunctionName { file, ..name }), is_of_one)
    }

    /// Reads the entry at `offset` of a file: its unit's offset, what it says, and the name made of that.
    fn visit(&mut self, place: Place, offset: u64) -> Option<(u64, Said, Option<FunctionName>)> {
        let own = self.view.unit.header;
        if place == Place::Own && (own.offset..own.end).contains(&offset) {
            let said = read_names(self.view.unit, self.entries, (offset - own.offset) as usize)?;
            let name = text(&self.view, place, self.view.unit, self.entries, &said);
            return Some((own.offset, said, name));
        }
        let unit = self.unit_around(place, offset)?;
        let file = place.file(&self.view)?;
        // Most entries are short; more is read of those that are not.
        [128, 4 << 10, 256 << 10].into_iter().find_map(|want| {
            let entries = file.info.head(offset, want, &mut self.scratch)?;
            let said = read_names(&unit, entries, 0)?;
            let name = text(&self.view, place, &unit, entries, &said);
            Some((unit.header.offset, said, name))
        })
    }

    fn unit_around(&self, place: Place, offset: u64) -> Option<Arc<Unit>> {
        let file = place.file(&self.view)?;
        let header = file.unit_around(offset)?;
        let known = file.origin_units.get(header.offset);
        known.unwrap_or_else(|| file.origin_units.keep(header.offset, Unit::of(file, *header).map(Arc::new)))
    }
}

/// The name that an entry of `unit` states, whose strings may be in `entries`.
fn text(view: &UnitView<'_>, place: Place, unit: &Unit, entries: &[u8], said: &Said) -> Option<FunctionName> {
    let string = said.linkage.or(said.name)?;
    let supplementary = if place == Place::Own { view.supplementary } else { None };
    let text = place.file(view)?.function_name(unit, string, entries, supplementary)?;
    Some(FunctionName { text, is_complete: said.linkage.is_some(), file: None })
}

/// The file and the offset in it that a reference leads to from a unit.
fn target((place, unit): (Place, u64), reference: Value) -> Option<(Place, u64)> {
    match reference {
        Value::UnitRef(offset) => Some((place, unit.checked_add(offset)?)),
        Value::InfoRef(offset) => Some((place, offset)),
        Value::SupplementaryRef(offset) => Some((Place::Supplementary, offset)),
        _ => None,
    }
}

/// Reads the attributes of an entry that concern its name.
fn read_names(unit: &Unit, entries: &[u8], entry: usize) -> Option<Said> {
    let encoding = unit.header.encoding;
    let mut cursor = Cursor::new(entries, entry, encoding.little_endian);
    let abbreviation = unit.abbreviations.get(cursor.uleb()?)?;
    let mut said = Said::default();
    for attribute in unit.abbreviations.attributes(abbreviation) {
        let value = Value::read(&mut cursor, attribute, encoding)?;
        said.take(attribute.name, value);
    }
    Some(said)
}
