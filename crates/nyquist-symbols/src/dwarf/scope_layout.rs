//! The offsets of the attributes of a function or an inlined call in its entry. Most compilers put them at
//! the same offsets in each entry. Then the few attributes that determine whether it contains an address are
//! read without the others.

use super::attribute::AttributeValue;
use super::form::{Encoding, SkipStep, Specification, step};
use super::pc::PcAttributes;
use super::role::Role;
use gimli::constants;
use nyquist_object::Cursor;

/// An attribute by its number, and its distance from the entry's first one. There are many layouts, so these
/// are small.
#[derive(Clone, Copy, Debug)]
struct AttributeOffset {
    distance: u16,
    attribute: u16,
}

/// The attributes of a function or an inlined call that the search for scopes reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScopeLayout {
    low_pc: Option<AttributeOffset>,
    high_pc: Option<AttributeOffset>,
    ranges: Option<AttributeOffset>,
    origin: Option<AttributeOffset>,
    call_file: Option<AttributeOffset>,
    call_line: Option<AttributeOffset>,
    call_column: Option<AttributeOffset>,
}

/// The attributes of an inlined call besides its code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallSite {
    pub(crate) origin: Option<AttributeValue>,
    pub(crate) file: Option<AttributeValue>,
    pub(crate) line: Option<AttributeValue>,
    pub(crate) column: Option<AttributeValue>,
}

impl ScopeLayout {
    /// The layout of entries with these attributes. `None` if a needed attribute comes after one of variable
    /// size, or is too far from the start.
    pub(crate) fn of(attributes: &[Specification], role: Role, encoding: Encoding) -> Option<Self> {
        let mut layout = Self::default();
        let mut distance = Some(0_usize);
        for (attribute, of) in (0..).zip(attributes) {
            if let Some(field) = layout.field(of.name, role) {
                *field = Some(AttributeOffset { distance: distance?.try_into().ok()?, attribute });
            }
            distance = match step(of.form, encoding)? {
                SkipStep::Bytes(bytes) => distance.and_then(|distance| distance.checked_add(bytes as usize)),
                _ => None,
            };
        }
        Some(layout)
    }

    /// The field for an attribute, if it is needed for entries with this role.
    fn field(&mut self, name: constants::DwAt, role: Role) -> Option<&mut Option<AttributeOffset>> {
        Some(match name {
            constants::DW_AT_low_pc => &mut self.low_pc,
            constants::DW_AT_high_pc => &mut self.high_pc,
            constants::DW_AT_ranges => &mut self.ranges,
            _ if role != Role::Inlined => return None,
            constants::DW_AT_abstract_origin => &mut self.origin,
            constants::DW_AT_call_file => &mut self.call_file,
            constants::DW_AT_call_line => &mut self.call_line,
            constants::DW_AT_call_column => &mut self.call_column,
            _ => return None,
        })
    }

    /// The code that the entry with these attributes, the first at `cursor`, covers.
    pub(crate) fn pc(&self, cursor: Cursor<'_>, of: &[Specification], encoding: Encoding) -> PcAttributes {
        let read = |field: Option<AttributeOffset>| field?.read(cursor, of, encoding);
        PcAttributes { low: read(self.low_pc), high: read(self.high_pc), ranges: read(self.ranges) }
    }

    /// The inlined call of the entry with these attributes, the first at `cursor`.
    pub(crate) fn call_site(&self, cursor: Cursor<'_>, of: &[Specification], encoding: Encoding) -> CallSite {
        let read = |field: Option<AttributeOffset>| field?.read(cursor, of, encoding);
        CallSite {
            origin: read(self.origin),
            file: read(self.call_file),
            line: read(self.call_line),
            column: read(self.call_column),
        }
    }
}

impl AttributeOffset {
    fn read(
        self,
        mut cursor: Cursor<'_>,
        of: &[Specification],
        encoding: Encoding,
    ) -> Option<AttributeValue> {
        cursor.seek(cursor.position() + usize::from(self.distance));
        AttributeValue::read(&mut cursor, of.get(usize::from(self.attribute))?, encoding)
    }
}

impl CallSite {
    /// Records an attribute that was read in order.
    pub(crate) fn take(&mut self, name: constants::DwAt, value: AttributeValue) {
        match name {
            constants::DW_AT_abstract_origin => self.origin = Some(value),
            constants::DW_AT_call_file => self.file = Some(value),
            constants::DW_AT_call_line => self.line = Some(value),
            constants::DW_AT_call_column => self.column = Some(value),
            _ => {}
        }
    }
}
