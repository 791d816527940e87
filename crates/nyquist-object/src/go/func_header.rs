//! The record of a function.

use super::header::{TableHeader, Version};
use crate::Cursor;

/// The part of a function's record that has the same size for all functions (`_func`). Positions are
/// relative to the start of their part, and 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuncHeader {
    /// The position of the function's name, relative to [`TableHeader::names`].
    pub name: u32,
    /// The position of the list of distances from the stack pointer to the return address, relative to
    /// [`TableHeader::values`].
    pub depths: u32,
    /// The position of the list of files, relative to [`TableHeader::values`].
    pub files: u32,
    /// The position of the list of lines, relative to [`TableHeader::values`].
    pub lines: u32,
    /// Further data of Go 1.16 and later. Before, versions differ without any mark.
    pub details: Option<FunctionDetails>,
}

/// Further data of a function since Go 1.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionDetails {
    /// The index of its compilation unit's first file, in [`TableHeader::units`].
    pub unit: u32,
    /// Whether it is a function without a caller (`funcFlagTopFrame`). Always false in programs of Go 1.16.
    pub is_top: bool,
    /// Whether it points the stack pointer outside of its own frame (`funcFlagSPWrite`).
    pub writes_stack_pointer: bool,
    /// The number of further lists of values, whose positions (4 bytes each) are after the record.
    pub tables: u32,
    /// The number of additional data items, whose positions are after those.
    pub data: u8,
    /// The size of this record in bytes; these positions follow it.
    pub size: u64,
}

impl FuncHeader {
    /// The maximum size of a record in bytes.
    pub const MAX_SIZE: u64 = 8 + 10 * 4;

    /// Parses the record at the start of `bytes`, which need not be longer than [`FuncHeader::MAX_SIZE`].
    pub fn parse(bytes: &[u8], header: &TableHeader) -> Option<Self> {
        let start = if header.version >= Version::Eighteen { 4 } else { header.pointer_size };
        let mut fields = Cursor::new(bytes, start.into(), header.little_endian);
        let name = fields.u32()?;
        let (_arguments, _deferred_return) = (fields.u32()?, fields.u32()?);
        let (depths, files, lines, tables) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let details = match header.version {
            Version::Two => None,
            version => Some(FunctionDetails::parse(&mut fields, tables, version)?),
        };
        Some(Self { name, depths, files, lines, details })
    }
}

impl FunctionDetails {
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
