//! The header of Go's function tables, of each version, and where the parts that it names begin.

use crate::cursor::Cursor;
use crate::section::Section;

/// How many bytes the longest header has.
pub(super) const MAX_HEADER: u64 = 8 + 8 * 8;

/// Which layout the tables have, named after the first minor version of Go 1 that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// Go 1.2: one run of bytes, in which everything is found by its distance from the start.
    Two,
    /// Go 1.16: the parts have places of their own; files are numbered by compilation unit.
    Sixteen,
    /// Go 1.18: addresses count from the start of the code.
    Eighteen,
    /// Go 1.20: the first line of each function, and shorter descriptions of inlined calls.
    Twenty,
}

/// The header. Positions count from its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: Version,
    pub(super) little_endian: bool,
    /// What addresses in the tables are multiples of.
    pub(super) quantum: u64,
    pub(super) pointer_size: u8,
    /// The number of functions.
    pub(super) functions: u64,
    /// Where the code begins. 0 before Go 1.18, and where only a relocation says it.
    pub(super) text: u64,
    /// Where the names of functions begin.
    pub(super) names: u64,
    /// Where the list of files of each compilation unit begins.
    pub(super) units: u64,
    /// Where the paths begin; before Go 1.16 the list of their positions.
    pub(super) files: u64,
    /// Where the tables of values by address begin.
    pub(super) values: u64,
    /// Where the list of functions begins.
    pub(super) list: u64,
    /// What the positions of functions' records count from.
    pub(super) records: u64,
}

impl Version {
    /// The version that a table begins with, and whether it is little-endian.
    pub(super) fn of_magic(magic: [u8; 4]) -> Option<(Self, bool)> {
        let version = |magic| {
            Some(match magic {
                0xffff_fffb => Self::Two,
                0xffff_fffa => Self::Sixteen,
                0xffff_fff0 => Self::Eighteen,
                0xffff_fff1 => Self::Twenty,
                _ => return None,
            })
        };
        let little = version(u32::from_le_bytes(magic)).map(|version| (version, true));
        little.or_else(|| version(u32::from_be_bytes(magic)).map(|version| (version, false)))
    }
}

impl Header {
    /// Reads the header that a table begins with; `None` where it is none, or does not fit what is there
    /// (`runtime/symtab.go`, `pcHeader`; "Go 1.2 Runtime Symbol Information").
    pub(super) fn parse(table: &Section) -> Option<Self> {
        let bytes = table.window(0, MAX_HEADER)?;
        let (version, little_endian) = Version::of_magic(*bytes.first_chunk()?)?;
        let &[0, 0, quantum, pointer_size] = bytes.get(4..8)? else { return None };
        if !matches!(quantum, 1 | 2 | 4) || !matches!(pointer_size, 4 | 8) {
            return None;
        }
        let mut cursor = Cursor::new(&bytes, 8, little_endian);
        let mut word = || cursor.sized(pointer_size);
        let mut header = Self {
            version,
            little_endian,
            quantum: quantum.into(),
            pointer_size,
            functions: word()?,
            text: 0,
            names: 0,
            units: 0,
            files: 0,
            values: 0,
            list: 8 + u64::from(pointer_size),
            records: 0,
        };
        if version >= Version::Sixteen {
            let _number_of_files = word()?;
            if version >= Version::Eighteen {
                header.text = word()?;
            }
            header.names = word()?;
            header.units = word()?;
            header.files = word()?;
            header.values = word()?;
            header.list = word()?;
            header.records = header.list;
        }
        header.checked(table)
    }

    /// The header, where all its parts are within the table.
    fn checked(mut self, table: &Section) -> Option<Self> {
        let list_end = self.list.checked_add(self.list_size()?)?;
        if self.version == Version::Two {
            let position = table.window(list_end, 4)?;
            self.files = Cursor::new(&position, 0, self.little_endian).u32()?.into();
        }
        let parts = [self.names, self.units, self.files, self.values, list_end];
        (self.functions > 0 && parts.iter().all(|&part| part <= table.len())).then_some(self)
    }

    /// The size of a number in the list of functions.
    pub(super) fn field_size(&self) -> u8 {
        if self.version >= Version::Eighteen { 4 } else { self.pointer_size }
    }

    /// The size of the list of functions: an address and a position each, and the address where the last one ends.
    pub(super) fn list_size(&self) -> Option<u64> {
        self.functions.checked_mul(2)?.checked_add(1)?.checked_mul(self.field_size().into())
    }
}
