//! The parts of a file that its load commands name.

use crate::{FileOffset, Svma};

/// A range of bytes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileRange {
    /// The start.
    pub offset: FileOffset,
    /// The size in bytes, as stated by the file.
    pub size: u64,
}

/// A segment (`LC_SEGMENT_64`): a range of the file that the loader maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachOSegment {
    /// The name, such as `__TEXT`.
    pub name: String,
    /// Its stated address in memory.
    pub address: Svma,
    /// The number of bytes in memory.
    pub memory_size: u64,
    /// Its bytes in the file; empty if they are in another file, as for a `.dSYM`.
    pub bytes: FileRange,
    /// Whether it is mapped as code.
    pub executable: bool,
}

/// A section of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachOSection {
    /// The name of the segment that it belongs to in a linked file.
    pub segment: String,
    /// Its own name, such as `__text`.
    pub name: String,
    /// Its address in memory.
    pub address: Svma,
    /// The number of bytes in memory.
    pub size: u64,
    /// The start of its bytes in the file; `None` if there are none, such as for zeros, or for the code in a
    /// `.dSYM`.
    pub offset: Option<FileOffset>,
    /// Its type and attributes.
    pub flags: u32,
    /// The index of its first stub among the indirect symbols (`reserved1`).
    pub first_indirect: u32,
    /// The size of one stub, if the section consists of stubs (`reserved2`).
    pub stub_size: u32,
}

impl MachOSection {
    /// Whether the section is code.
    pub fn is_code(&self) -> bool {
        const INSTRUCTIONS: u32 = 0x8000_0400;
        self.flags & INSTRUCTIONS != 0
    }

    /// Whether the section consists of stubs that jump to functions of other libraries (`S_SYMBOL_STUBS`).
    pub fn is_stubs(&self) -> bool {
        self.flags & 0xff == 8
    }
}

/// The position of the symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// Entries of 16 bytes each (`nlist_64`).
    pub symbols: FileRange,
    /// Their names.
    pub strings: FileRange,
}
