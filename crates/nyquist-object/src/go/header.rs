//! The header of the tables, in each version, and the list of functions that it refers to.

use crate::{ByteSource, Cursor};

/// The maximum size of a header in bytes.
const MAX_SIZE: u64 = 8 + 8 * 8;

/// The layout of the tables, named after the first minor version of Go 1 that used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Go 1.2: one sequence of bytes, in which everything is at an offset from the start.
    Two,
    /// Go 1.16: the parts have separate offsets; files are numbered by compilation unit.
    Sixteen,
    /// Go 1.18: addresses are relative to the start of the code.
    Eighteen,
    /// Go 1.20: the first line of each function, and shorter descriptions of inlined calls.
    Twenty,
}

/// The header. Positions are relative to its first byte, and each is within the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHeader {
    /// The layout of the other tables.
    pub version: Version,
    /// The byte order of all numbers.
    pub little_endian: bool,
    /// The unit of distances in lists of values, in bytes: 1, 2 or 4.
    pub quantum: u8,
    /// The size of a pointer in bytes: 4 or 8.
    pub pointer_size: u8,
    /// The number of functions, at least one.
    pub functions: u64,
    /// The SVMA of the start of the code. 0 before Go 1.18, or if only a relocation or the module data
    /// contains it.
    pub text: u64,
    /// The start of the names of functions.
    pub names: u64,
    /// The start of the lists of files of each compilation unit.
    pub units: u64,
    /// The start of the paths; before Go 1.16 the start of the list of their positions.
    pub files: u64,
    /// The start of the lists of values by instruction.
    pub values: u64,
    /// The start of the list of functions.
    pub list: u64,
    /// The base of the positions of functions' records.
    pub records: u64,
}

/// One entry of the list of functions, which is sorted by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The start of the function. Since Go 1.18 it is the distance from the start of the code. Before that it
    /// is the SVMA, which is 0 in files whose pointers are filled in by the loader.
    pub start: u64,
    /// The offset of the function's record from the table's first byte; `None` for the last entry, which
    /// only marks the end of the code.
    pub record: Option<u64>,
}

impl Version {
    /// The version of tables that begin with these bytes, and whether they are little-endian.
    pub fn of_magic(magic: [u8; 4]) -> Option<(Self, bool)> {
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

impl TableHeader {
    /// Parses the header at the start of a table; `None` if there is none, or if it refers to parts that
    /// do not exist (`pcHeader`; before Go 1.16 "Go 1.2 Runtime Symbol Information").
    pub fn parse<S: ByteSource + ?Sized>(table: &S) -> Option<Self> {
        let bytes = table.read_range(0, table.len().min(MAX_SIZE)).ok()?;
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
            quantum,
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

    /// The header, if all its parts are within the table.
    fn checked<S: ByteSource + ?Sized>(mut self, table: &S) -> Option<Self> {
        let list_end = self.list.checked_add(self.list_size()?)?;
        if self.version == Version::Two {
            let position = table.read_range(list_end, 4).ok()?;
            self.files = Cursor::new(&position, 0, self.little_endian).u32()?.into();
        }
        let parts = [self.names, self.units, self.files, self.values, list_end];
        (self.functions > 0 && parts.iter().all(|&part| part <= table.len())).then_some(self)
    }

    /// The size of the list of functions in bytes: an address and a position each, and the address of the
    /// end of the last function. `None` if no file could be that long.
    pub fn list_size(&self) -> Option<u64> {
        self.functions.checked_mul(2)?.checked_add(1)?.checked_mul(self.field_size().into())
    }

    /// The entries of the list of functions, whose bytes are `list`: [`TableHeader::list_size`] of them from
    /// [`TableHeader::list`] on. If there are fewer bytes, there are fewer entries.
    pub fn entries<'a>(&'a self, list: &'a [u8]) -> impl Iterator<Item = ListEntry> + 'a {
        let size = self.field_size();
        list.chunks(2 * usize::from(size)).map_while(move |entry| {
            let mut cursor = Cursor::new(entry, 0, self.little_endian);
            let start = cursor.sized(size)?;
            let record = cursor.sized(size).and_then(|record| record.checked_add(self.records));
            Some(ListEntry { start, record })
        })
    }

    /// The size of a number in the list of functions: 4 or 8 bytes.
    pub fn field_size(&self) -> u8 {
        if self.version >= Version::Eighteen { 4 } else { self.pointer_size }
    }
}
