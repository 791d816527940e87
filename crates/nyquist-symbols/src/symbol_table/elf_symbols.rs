//! The symbols of an ELF file that name code, in one section.

use super::entry::SymbolTableEntry;
use super::row_table::RowTable;
use crate::section_contents::{SectionContents, SectionWindow, SharedSource};
use nyquist_object::elf::ElfSection as Header;
use nyquist_object::{ByteSource as _, Cursor, Elf};
use nyquist_resources::{Budget, Charge};

/// Symbol types and bindings (System V gABI, "Symbol Table").
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;
const STB_GNU_UNIQUE: u8 = 10;

/// A section of symbols.
pub(super) struct ElfSymbols<'a> {
    elf: &'a Elf<SharedSource>,
    section: SectionContents,
    /// The memory of its entries while they are sorted.
    charge: Option<Charge>,
}

impl<'a> ElfSymbols<'a> {
    /// Opens the section with this name. `None` if it does not exist, or if the memory budget is too small
    /// for its entries.
    pub(super) fn open(elf: &'a Elf<SharedSource>, name: &str) -> Option<Self> {
        let charge = elf.source().budget().map(Budget::charge);
        let symbols = Self { elf, section: SectionContents::open(elf, name).ok()?, charge };
        let bytes = symbols.count().saturating_mul(RowTable::BYTES_AN_ENTRY);
        symbols.charge.as_ref().is_none_or(|charge| charge.take(bytes)).then_some(symbols)
    }

    /// The number of symbols of all kinds.
    pub(super) fn count(&self) -> u64 {
        self.section.len() / self.size()
    }

    /// The entries of all symbols that name code.
    pub(super) fn all(&self) -> Vec<SymbolTableEntry> {
        let mut entries = Vec::with_capacity(usize::try_from(self.count()).unwrap_or_default());
        self.each(|entry| entries.push(entry));
        entries
    }

    /// The size of a symbol in bytes.
    fn size(&self) -> u64 {
        if self.elf.is_64_bit() { 24 } else { 16 }
    }

    /// Calls `visit` with all symbols that name code, as far as they can be read.
    fn each(&self, mut visit: impl FnMut(SymbolTableEntry)) {
        const AT_ONCE: u64 = 4096;
        let (size, sections) = (self.size(), self.elf.sections());
        let little_endian = self.elf.is_little_endian();
        let mut buffer = Vec::new();
        let (mut window, mut at) = (SectionWindow::new(&mut buffer, 0), 0);
        let section = &self.section;
        while let Some(bytes) = window.read(section, at, AT_ONCE * size).filter(|bytes| !bytes.is_empty()) {
            at += bytes.len() as u64;
            let symbols = bytes.chunks_exact(size as usize).filter_map(|symbol| {
                let mut cursor = Cursor::new(symbol, 0, little_endian);
                if size == 24 { read_64(&mut cursor, sections) } else { read_32(&mut cursor, sections) }
            });
            symbols.for_each(&mut visit);
        }
    }
}

fn read_64(cursor: &mut Cursor<'_>, sections: &[Header]) -> Option<SymbolTableEntry> {
    let (name, info, _, section) = (cursor.u32()?, cursor.u8()?, cursor.u8()?, cursor.u16()?);
    entry(name, info, section, cursor.u64()?, cursor.u64()?, sections)
}

fn read_32(cursor: &mut Cursor<'_>, sections: &[Header]) -> Option<SymbolTableEntry> {
    let (name, start, size) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let (info, _, section) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
    entry(name, info, section, start.into(), size.into(), sections)
}

/// An entry for a symbol that names code.
fn entry(
    name: u32,
    info: u8,
    section: u16,
    start: u64,
    size: u64,
    sections: &[Header],
) -> Option<SymbolTableEntry> {
    let kind = info & 0xf;
    let section = sections.get(usize::from(section)).filter(|_| section != 0)?;
    let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
    let is_code = section.is_code() && (is_function || kind == STT_NOTYPE);
    if !is_code || name == 0 {
        return None;
    }
    let section_end = section.address.0.saturating_add(section.size);
    let end = if size > 0 { start.saturating_add(size) } else { section_end };
    let binding = match info >> 4 {
        STB_GLOBAL | STB_GNU_UNIQUE => 2,
        STB_WEAK => 1,
        _ => 0,
    };
    let rank = u8::from(size > 0) << 3 | u8::from(is_function) << 2 | binding;
    (start < end).then_some(SymbolTableEntry { start, end, name, rank, is_sized: size > 0 })
}
