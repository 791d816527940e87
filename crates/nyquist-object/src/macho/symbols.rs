//! The symbol table: functions and data by name, including the entries for debuggers (Apple's
//! `mach-o/nlist.h` and `mach-o/stab.h`).

use super::{MachO, MachOSection};
use crate::{ByteSource, ObjectError, Svma};

/// The parts of `n_type`.
const N_STAB: u8 = 0xe0;
const N_PEXT: u8 = 0x10;
const N_TYPE: u8 = 0x0e;
const N_EXT: u8 = 0x01;
const N_SECT: u8 = 0x0e;

/// The flag in `n_desc` of a definition that another one may replace.
const N_WEAK_DEF: u16 = 0x80;

/// An entry of the symbol table (`nlist_64`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The offset of its name in the strings (`n_strx`).
    pub name: u32,
    kind: u8,
    /// The number of its section, counted from 1; 0 for none (`n_sect`).
    pub section: u8,
    flags: u16,
    /// Its address; for an entry for debuggers, its value (`n_value`).
    pub value: u64,
}

/// The kind of an entry for debuggers, as far as it is needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stab {
    /// The start of the entries of a source file, or their end if the name is empty (`N_SO`).
    Source,
    /// The object file that it was linked from, and the time when that was written (`N_OSO`).
    Object,
    /// A function and its address, or, without a name, the size of the previous one (`N_FUN`).
    Function,
    /// Another kind.
    Other(u8),
}

impl Symbol {
    fn parse(entry: &[u8; 16]) -> Self {
        let bits = u128::from_le_bytes(*entry);
        Self {
            name: bits as u32,
            kind: (bits >> 32) as u8,
            section: (bits >> 40) as u8,
            flags: (bits >> 48) as u16,
            value: (bits >> 64) as u64,
        }
    }

    /// The kind of the entry, if it is for debuggers and not a symbol.
    pub fn stab(&self) -> Option<Stab> {
        (self.kind & N_STAB != 0).then_some(match self.kind {
            0x24 => Stab::Function,
            0x64 => Stab::Source,
            0x66 => Stab::Object,
            other => Stab::Other(other),
        })
    }

    /// Whether the symbol is defined in a section of the file.
    pub fn is_defined(&self) -> bool {
        self.kind & N_STAB == 0 && self.kind & N_TYPE == N_SECT
    }

    /// Whether other files may link to it.
    pub fn is_external(&self) -> bool {
        self.kind & (N_EXT | N_PEXT) == N_EXT
    }

    /// Whether only the files that were linked together could use it.
    pub fn is_private_external(&self) -> bool {
        self.kind & N_PEXT != 0
    }

    /// Whether another definition may replace it.
    pub fn is_weak(&self) -> bool {
        self.flags & N_WEAK_DEF != 0
    }

    /// The section that it is defined in.
    pub fn section_of<'a>(&self, sections: &'a [MachOSection]) -> Option<&'a MachOSection> {
        sections.get(usize::from(self.section).checked_sub(1)?).filter(|_| self.is_defined())
    }
}

impl<S: ByteSource> MachO<S> {
    /// The entries of the symbol table, in order; empty if the file has no table. Costs 16 bytes per entry.
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn symbols(&self) -> Result<Vec<Symbol>, ObjectError> {
        let Some(table) = self.symbol_table() else { return Ok(Vec::new()) };
        let bytes = self.source().read_range(table.symbols.offset.0, table.symbols.size)?;
        Ok(bytes.as_chunks().0.iter().map(Symbol::parse).collect())
    }

    /// The stubs that jump to functions of other libraries: the address and the size of each, and the
    /// number of the symbol that it stands for.
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn stubs(&self) -> Result<Vec<(Svma, u32, u32)>, ObjectError> {
        let Some(table) = self.commands.indirect_symbols else { return Ok(Vec::new()) };
        let bytes = self.source().read_range(table.offset.0, table.size)?;
        let numbers: Vec<u32> = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let sections = self.sections().iter().filter(|section| section.is_stubs() && section.stub_size > 0);
        let of_section = |section: &MachOSection| {
            let count = section.size / u64::from(section.stub_size);
            let stubs = numbers.get(section.first_indirect as usize..).unwrap_or_default();
            let (start, size) = (section.address.0, section.stub_size);
            let at = move |(stub, &number): (u64, &u32)| {
                (Svma(start.wrapping_add(stub * u64::from(size))), size, number)
            };
            (0..count).zip(stubs).map(at).collect::<Vec<_>>()
        };
        Ok(sections.flat_map(of_section).take(numbers.len()).collect())
    }
}
