//! The values of attributes.

use super::form::{Encoding, Specification, step};
use gimli::constants::{self, DwForm};
use nyquist_object::Cursor;

/// The value of an attribute, as far as symbolication needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    /// An address.
    Address(u64),
    /// An index into the unit's part of `.debug_addr`.
    AddressIndex(u64),
    /// A number or a flag.
    Number(u64),
    /// A position in another section.
    SectionOffset(u64),
    /// An index into the unit's range lists.
    RangeListIndex(u64),
    /// An entry, by its distance from the unit's start.
    UnitRef(u64),
    /// An entry of any unit of this file.
    InfoRef(u64),
    /// An entry of the supplementary file.
    SupplementaryRef(u64),
    /// A string.
    String(StringRef),
    /// A value that is not needed.
    Other,
}

/// The place of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringRef {
    /// In the entry itself: its distance from the start of the bytes that are being read, and its length.
    Inline(usize, usize),
    /// In `.debug_str`.
    Str(u64),
    /// In `.debug_line_str`.
    LineStr(u64),
    /// In the supplementary file's `.debug_str`.
    SupplementaryStr(u64),
    /// An index into the unit's part of `.debug_str_offsets`.
    Index(u64),
}

impl AttributeValue {
    /// Reads the value of one attribute.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'_>, of: &Specification, encoding: Encoding) -> Option<Self> {
        if of.form == constants::DW_FORM_implicit_const {
            return Some(Self::Number(of.implicit as u64));
        }
        Self::read_form(cursor, of.form, encoding)
    }

    fn read_form(cursor: &mut Cursor<'_>, form: DwForm, encoding: Encoding) -> Option<Self> {
        let offset_size = encoding.offset_size;
        Some(match form {
            constants::DW_FORM_addr => Self::Address(cursor.sized(encoding.address_size)?),
            constants::DW_FORM_addrx | constants::DW_FORM_GNU_addr_index => {
                Self::AddressIndex(cursor.uleb()?)
            }
            constants::DW_FORM_addrx1 => Self::AddressIndex(cursor.sized(1)?),
            constants::DW_FORM_addrx2 => Self::AddressIndex(cursor.sized(2)?),
            constants::DW_FORM_addrx3 => Self::AddressIndex(cursor.sized(3)?),
            constants::DW_FORM_addrx4 => Self::AddressIndex(cursor.sized(4)?),
            constants::DW_FORM_flag_present => Self::Number(1),
            constants::DW_FORM_flag | constants::DW_FORM_data1 => Self::Number(cursor.sized(1)?),
            constants::DW_FORM_data2 => Self::Number(cursor.sized(2)?),
            constants::DW_FORM_data4 => Self::Number(cursor.sized(4)?),
            constants::DW_FORM_data8 => Self::Number(cursor.sized(8)?),
            constants::DW_FORM_udata => Self::Number(cursor.uleb()?),
            constants::DW_FORM_sdata => Self::Number(cursor.sleb()? as u64),
            constants::DW_FORM_sec_offset => Self::SectionOffset(cursor.sized(offset_size)?),
            constants::DW_FORM_rnglistx => Self::RangeListIndex(cursor.uleb()?),
            constants::DW_FORM_ref1 => Self::UnitRef(cursor.sized(1)?),
            constants::DW_FORM_ref2 => Self::UnitRef(cursor.sized(2)?),
            constants::DW_FORM_ref4 => Self::UnitRef(cursor.sized(4)?),
            constants::DW_FORM_ref8 => Self::UnitRef(cursor.sized(8)?),
            constants::DW_FORM_ref_udata => Self::UnitRef(cursor.uleb()?),
            constants::DW_FORM_ref_addr => Self::InfoRef(cursor.sized(encoding.ref_addr_size())?),
            constants::DW_FORM_ref_sup4 => Self::SupplementaryRef(cursor.sized(4)?),
            constants::DW_FORM_ref_sup8 => Self::SupplementaryRef(cursor.sized(8)?),
            constants::DW_FORM_GNU_ref_alt => Self::SupplementaryRef(cursor.sized(offset_size)?),
            constants::DW_FORM_indirect => {
                let form = DwForm(cursor.uleb()?.try_into().ok()?);
                if form == constants::DW_FORM_indirect || form == constants::DW_FORM_implicit_const {
                    return None;
                }
                return Self::read_form(cursor, form, encoding);
            }
            _ => return Self::read_string(cursor, form, encoding),
        })
    }

    fn read_string(cursor: &mut Cursor<'_>, form: DwForm, encoding: Encoding) -> Option<Self> {
        let offset_size = encoding.offset_size;
        Some(Self::String(match form {
            constants::DW_FORM_string => {
                let start = cursor.position();
                StringRef::Inline(start, cursor.string()?.len())
            }
            constants::DW_FORM_strp => StringRef::Str(cursor.sized(offset_size)?),
            constants::DW_FORM_line_strp => StringRef::LineStr(cursor.sized(offset_size)?),
            constants::DW_FORM_strp_sup | constants::DW_FORM_GNU_strp_alt => {
                StringRef::SupplementaryStr(cursor.sized(offset_size)?)
            }
            constants::DW_FORM_strx | constants::DW_FORM_GNU_str_index => StringRef::Index(cursor.uleb()?),
            constants::DW_FORM_strx1 => StringRef::Index(cursor.sized(1)?),
            constants::DW_FORM_strx2 => StringRef::Index(cursor.sized(2)?),
            constants::DW_FORM_strx3 => StringRef::Index(cursor.sized(3)?),
            constants::DW_FORM_strx4 => StringRef::Index(cursor.sized(4)?),
            _ => {
                step(form, encoding)?.skip(cursor, encoding)?;
                return Some(Self::Other);
            }
        }))
    }

    /// The number, if the value is one. Section offsets were plain numbers before DWARF 4.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) | Self::SectionOffset(number) => Some(number),
            _ => None,
        }
    }
}
