//! The forms of attributes: how many bytes each takes (DWARF 5, 7.5.6).

use gimli::constants::{self, DwAt, DwForm};
use nyquist_object::Cursor;

/// The sizes that a unit's header defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Encoding {
    pub(crate) version: u16,
    pub(crate) address_size: u8,
    pub(crate) offset_size: u8,
    pub(crate) little_endian: bool,
}

impl Encoding {
    /// The size of `DW_FORM_ref_addr`, which in DWARF 2 was that of an address.
    pub(crate) fn ref_addr_size(self) -> u8 {
        if self.version <= 2 { self.address_size } else { self.offset_size }
    }
}

/// One attribute of an abbreviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Specification {
    pub(crate) name: DwAt,
    pub(crate) form: DwForm,
    /// The value of `DW_FORM_implicit_const`.
    pub(crate) implicit: i64,
}

/// How to skip one run of an entry's attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SkipStep {
    /// This many bytes.
    Bytes(u32),
    /// A LEB128.
    Leb,
    /// A string up to its zero byte.
    String,
    /// A length field of this size (0: a LEB128), followed by that many bytes.
    Block(u8),
    /// A form that the entry itself states.
    Indirect,
}

impl SkipStep {
    #[inline]
    pub(crate) fn skip(self, cursor: &mut Cursor<'_>, encoding: Encoding) -> Option<()> {
        match self {
            Self::Bytes(bytes) => cursor.skip(u64::from(bytes)),
            Self::Leb => cursor.skip_leb(),
            Self::String => cursor.string().map(|_| ()),
            Self::Block(size) => {
                let len = if size == 0 { cursor.uleb()? } else { cursor.sized(size)? };
                cursor.skip(len)
            }
            Self::Indirect => {
                let form = DwForm(cursor.uleb()?.try_into().ok()?);
                match step(form, encoding)? {
                    Self::Indirect => None,
                    step => step.skip(cursor, encoding),
                }
            }
        }
    }
}

/// How the value of a form is skipped (DWARF 5, 7.5.6, and the GNU extensions).
pub(crate) fn step(form: DwForm, encoding: Encoding) -> Option<SkipStep> {
    let bytes = |bytes: u8| SkipStep::Bytes(u32::from(bytes));
    Some(match form {
        constants::DW_FORM_flag_present | constants::DW_FORM_implicit_const => bytes(0),
        constants::DW_FORM_data1
        | constants::DW_FORM_ref1
        | constants::DW_FORM_flag
        | constants::DW_FORM_strx1
        | constants::DW_FORM_addrx1 => bytes(1),
        constants::DW_FORM_data2
        | constants::DW_FORM_ref2
        | constants::DW_FORM_strx2
        | constants::DW_FORM_addrx2 => bytes(2),
        constants::DW_FORM_strx3 | constants::DW_FORM_addrx3 => bytes(3),
        constants::DW_FORM_data4
        | constants::DW_FORM_ref4
        | constants::DW_FORM_ref_sup4
        | constants::DW_FORM_strx4
        | constants::DW_FORM_addrx4 => bytes(4),
        constants::DW_FORM_data8
        | constants::DW_FORM_ref8
        | constants::DW_FORM_ref_sig8
        | constants::DW_FORM_ref_sup8 => bytes(8),
        constants::DW_FORM_data16 => bytes(16),
        constants::DW_FORM_addr => bytes(encoding.address_size),
        constants::DW_FORM_strp
        | constants::DW_FORM_sec_offset
        | constants::DW_FORM_line_strp
        | constants::DW_FORM_strp_sup
        | constants::DW_FORM_GNU_ref_alt
        | constants::DW_FORM_GNU_strp_alt => bytes(encoding.offset_size),
        constants::DW_FORM_ref_addr => bytes(encoding.ref_addr_size()),
        constants::DW_FORM_udata
        | constants::DW_FORM_sdata
        | constants::DW_FORM_ref_udata
        | constants::DW_FORM_strx
        | constants::DW_FORM_addrx
        | constants::DW_FORM_loclistx
        | constants::DW_FORM_rnglistx
        | constants::DW_FORM_GNU_addr_index
        | constants::DW_FORM_GNU_str_index => SkipStep::Leb,
        constants::DW_FORM_string => SkipStep::String,
        constants::DW_FORM_block1 => SkipStep::Block(1),
        constants::DW_FORM_block2 => SkipStep::Block(2),
        constants::DW_FORM_block4 => SkipStep::Block(4),
        constants::DW_FORM_block | constants::DW_FORM_exprloc => SkipStep::Block(0),
        constants::DW_FORM_indirect => SkipStep::Indirect,
        _ => return None,
    })
}
