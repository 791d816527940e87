//! What is recorded of a function.

use super::header::{Header, Version};
use crate::Cursor;

/// The part of a function's record that has the same size for all functions (`_func`). Positions count from where their
/// part begins, and 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where the function's name is, from [`Header::names`] on.
    pub name: u32,
    /// Where the list is of how many bytes the stack pointer is below the return address, from [`Header::values`] on.
    pub depths: u32,
    /// Where the list of files is, from [`Header::values`] on.
    pub files: u32,
    /// Where the list of lines is, from [`Header::values`] on.
    pub lines: u32,
    /// What Go 1.16 and later say beside that; before, versions differ without a sign of it.
    pub more: Option<More>,
}

/// What is recorded of a function since Go 1.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// The number of its compilation unit's first file, in [`Header::units`].
    pub unit: u32,
    /// Whether it is a function without a caller (`funcFlagTopFrame`). Always false in programs of Go 1.16.
    pub is_top: bool,
    /// Whether it makes the stack pointer point elsewhere than to its own frame (`funcFlagSPWrite`).
    pub writes_stack_pointer: bool,
    /// The number of further lists of values, whose positions (4 bytes each) are behind the record.
    pub tables: u32,
    /// The number of pieces of additional data, whose positions are behind those.
    pub data: u8,
    /// The size of this record in bytes, behind which these positions are.
    pub size: u64,
}

impl Record {
    /// How many bytes the longest record has.
    pub const MAX_SIZE: u64 = 8 + 10 * 4;

    /// Reads the record that `bytes` begin with; they need not be more than [`Record::MAX_SIZE`].
    pub fn parse(bytes: &[u8], header: &Header) -> Option<Self> {
        let start = if header.version >= Version::Eighteen { 4 } else { header.pointer_size };
        let mut fields = Cursor::new(bytes, start.into(), header.little_endian);
        let name = fields.u32()?;
        let (_arguments, _deferred_return) = (fields.u32()?, fields.u32()?);
        let (depths, files, lines, tables) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let more = match header.version {
            Version::Two => None,
            version => Some(More::parse(&mut fields, tables, version)?),
        };
        Some(Self { name, depths, files, lines, more })
    }
}

impl More {
    fn parse(fields: &mut Cursor<'_>, tables: u32, version: Version) -> Option<Self> {
        const TOP_FRAME: u8 = 1;
        const WRITES_STACK_POINTER: u8 = 2;
        let unit = fields.u32()?;
        if version >= Version::Twenty {
            let _first_line = fields.u32()?;
        }
        let (_kind, flags, _, data) = (fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?);
        Some(Self {
            unit,
            is_top: flags & TOP_FRAME != 0,
            writes_stack_pointer: flags & WRITES_STACK_POINTER != 0,
            tables,
            data,
            size: fields.position() as u64,
        })
    }
}
