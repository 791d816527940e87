//! Unlinked ELF files (`ET_REL`), such as kernel modules, placed at the addresses that their loader chose.

use crate::elf::ElfSection;
use crate::{Architecture, ByteSource, Elf, ObjectError, Svma};
use object::elf;

/// The maximum size of the result. The largest kernel modules have some 200 megabytes of debug info.
const MAX_SIZE: usize = 1 << 30;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// Converts an unlinked file to the file that a linker would have made, as far as names and debug info are
/// concerned. Loaded sections have the addresses that `address` returns for their names, and have no
/// bytes. Symbols and debug info have the resulting addresses, with relocations applied. Sections without
/// an address are at 0.
///
/// Supports 64-bit x86 and Arm. Costs a copy of the symbols and the debug info. (System V gABI,
/// "Relocation"; the psABI of x86-64, "Relocation Types"; ELF for the Arm 64-bit Architecture, "Static
/// Data relocations".)
pub fn placed<S: ByteSource>(
    file: &Elf<S>,
    address: impl Fn(&str) -> Option<Svma>,
) -> Result<Vec<u8>, ObjectError> {
    let kinds: &Kinds = match (file.architecture(), file.is_64_bit() && file.is_little_endian()) {
        (Architecture::X86_64, true) => &X86_64,
        (Architecture::Aarch64, true) => &AARCH64,
        _ => return Err(ObjectError::Unsupported("relocations of this architecture".to_owned())),
    };
    let addresses = file.sections().iter().map(|section| {
        let address = section.is_loaded().then(|| address(&section.name)).flatten();
        address.map_or(0, |address| address.0)
    });
    let placing = PlacedFile { file, kinds, addresses: addresses.collect() };
    let symbols = placing.symbols()?;
    let mut contents = placing.contents(&symbols)?;
    for section in file.sections().iter().filter(|section| section.kind == elf::SHT_RELA.0) {
        if let Some(target) = contents.get_mut(section.info as usize)
            && file.sections().get(section.info as usize).is_some_and(is_debug_info)
        {
            placing.relocate(target, &file.data(section)?, &symbols);
        }
    }
    placing.write(&contents)
}

/// The computation of a relocation's value, and its size in bytes.
#[derive(Clone, Copy)]
enum RelocationKind {
    Absolute(usize),
    /// Relative to the position that is filled.
    Relative(usize),
}

type Kinds = [(u32, RelocationKind)];

const X86_64: [(u32, RelocationKind); 5] = [
    (1, RelocationKind::Absolute(8)),
    (10, RelocationKind::Absolute(4)),
    (11, RelocationKind::Absolute(4)),
    (2, RelocationKind::Relative(4)),
    (24, RelocationKind::Relative(8)),
];
const AARCH64: [(u32, RelocationKind); 4] = [
    (257, RelocationKind::Absolute(8)),
    (258, RelocationKind::Absolute(4)),
    (260, RelocationKind::Relative(8)),
    (261, RelocationKind::Relative(4)),
];

struct PlacedFile<'a, S> {
    file: &'a Elf<S>,
    kinds: &'static Kinds,
    /// The address of each section.
    addresses: Vec<u64>,
}

/// The new symbol table, and the value of each symbol.
#[derive(Default)]
struct Symbols {
    table: Vec<u8>,
    values: Vec<u64>,
}

fn is_debug_info(section: &ElfSection) -> bool {
    !section.is_loaded() && [".debug_", ".zdebug_"].iter().any(|prefix| section.name.starts_with(prefix))
}

fn is_symbol_table(section: &ElfSection) -> bool {
    section.kind == elf::SHT_SYMTAB.0
}

impl<S: ByteSource> PlacedFile<'_, S> {
    /// The symbols, whose values are offsets from the start of their sections.
    fn symbols(&self) -> Result<Symbols, ObjectError> {
        let Some(section) = self.file.sections().iter().find(|section| is_symbol_table(section)) else {
            return Ok(Symbols::default());
        };
        let mut table = self.file.data(section)?;
        let mut values = Vec::with_capacity(table.len() / 24);
        for symbol in table.as_chunks_mut::<24>().0 {
            let [_, _, _, _, _, _, index_low, index_high, value @ ..] = symbol;
            let section = usize::from(u16::from_le_bytes([*index_low, *index_high]));
            let [value, _size] = value.as_chunks_mut::<8>().0 else { continue };
            let base = self.addresses.get(section).copied().unwrap_or(0);
            *value = u64::from_le_bytes(*value).wrapping_add(base).to_le_bytes();
            values.push(u64::from_le_bytes(*value));
        }
        Ok(Symbols { table, values })
    }

    /// The contents of each section in the new file.
    fn contents(&self, symbols: &Symbols) -> Result<Vec<Vec<u8>>, ObjectError> {
        let mut size = 0_usize;
        let mut contents = Vec::new();
        for section in self.file.sections() {
            let bytes = if is_symbol_table(section) {
                symbols.table.clone()
            } else if is_debug_info(section) {
                self.file.section_data(&plain_name(&section.name))?.unwrap_or_default()
            } else if section.kind == elf::SHT_STRTAB.0 {
                self.file.data(section)?
            } else {
                Vec::new()
            };
            size = size.saturating_add(bytes.len());
            if size > MAX_SIZE {
                return Err(ObjectError::malformed("debug info", "it is too large"));
            }
            contents.push(bytes);
        }
        Ok(contents)
    }

    fn relocate(&self, target: &mut [u8], relocations: &[u8], symbols: &Symbols) {
        for relocation in relocations.as_chunks::<24>().0 {
            let [at, info, addend] = relocation.as_chunks::<8>().0 else { continue };
            let [at, info, addend] = [at, info, addend].map(|bytes| u64::from_le_bytes(*bytes));
            let Some((_, kind)) = self.kinds.iter().find(|(number, _)| *number == info as u32) else {
                continue;
            };
            let symbol = symbols.values.get((info >> 32) as usize).copied().unwrap_or(0);
            let value = symbol.wrapping_add(addend);
            let (value, size) = match *kind {
                RelocationKind::Absolute(size) => (value, size),
                RelocationKind::Relative(size) => (value.wrapping_sub(at), size),
            };
            let place = usize::try_from(at).ok().and_then(|at| target.get_mut(at..)?.get_mut(..size));
            if let Some(place) = place {
                place.copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
    }

    /// The new file: header, program headers, contents, names of sections, section headers.
    fn write(&self, contents: &[Vec<u8>]) -> Result<Vec<u8>, ObjectError> {
        let sections = self.file.sections();
        let loaded: Vec<_> = (sections.iter().zip(&self.addresses))
            .filter(|(section, address)| **address != 0 && section.is_loaded())
            .collect();
        if loaded.len() > usize::from(u16::MAX) || sections.len() >= usize::from(elf::SHN_LORESERVE) {
            return Err(ObjectError::malformed("ELF header", format!("{} sections", sections.len())));
        }
        let mut out = vec![0; HEADER + PROGRAM_HEADER * loaded.len()];
        let mut headers = Vec::new();
        let mut names = vec![0];
        for ((section, address), bytes) in sections.iter().zip(&self.addresses).zip(contents) {
            let name = names.len() as u64;
            names.extend(plain_name(&section.name).bytes().chain([0]));
            let size = if section.is_loaded() { section.size } else { bytes.len() as u64 };
            headers.push(section_header(section, name, *address, out.len() as u64, size));
            out.extend(bytes);
        }
        let names_header = words(&[(4, 0), (4, elf::SHT_STRTAB.0.into()), (8, 0), (8, 0)]);
        let names_place = words(&[(8, out.len() as u64), (8, names.len() as u64), (8, 0), (8, 1), (8, 0)]);
        headers.push([names_header, names_place].concat());
        out.extend(names);
        let header = self.header(loaded.len() as u64, out.len() as u64, headers.len() as u64);
        out.extend(headers.concat());
        let segments: Vec<_> =
            loaded.iter().flat_map(|(section, address)| program_header(section, **address)).collect();
        out.splice(..HEADER + segments.len(), [header, segments].concat());
        Ok(out)
    }

    fn header(&self, segments: u64, sections_at: u64, sections: u64) -> Vec<u8> {
        let machine =
            if self.file.architecture() == Architecture::X86_64 { elf::EM_X86_64 } else { elf::EM_AARCH64 };
        let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header.extend(words(&[
            (2, elf::ET_DYN.0.into()),
            (2, machine.0.into()),
            (4, 1),
            (8, 0),
            (8, HEADER as u64),
            (8, sections_at),
            (4, 0),
            (2, HEADER as u64),
            (2, PROGRAM_HEADER as u64),
            (2, segments),
            (2, 64),
            (2, sections),
            (2, sections - 1),
        ]));
        header
    }
}

/// The name of a section without the mark of compression.
fn plain_name(name: &str) -> String {
    name.strip_prefix(".z")
        .filter(|rest| rest.starts_with("debug_"))
        .map_or_else(|| name.to_owned(), |rest| format!(".{rest}"))
}

fn section_header(section: &ElfSection, name: u64, address: u64, offset: u64, size: u64) -> Vec<u8> {
    let kind = if section.is_loaded() {
        elf::SHT_NOBITS.0
    } else if is_symbol_table(section) || section.kind == elf::SHT_STRTAB.0 {
        section.kind
    } else if is_debug_info(section) {
        elf::SHT_PROGBITS.0
    } else {
        elf::SHT_NULL.0
    };
    let flags = section.flags & !elf::SHF_COMPRESSED.0;
    words(&[
        (4, name),
        (4, kind.into()),
        (8, flags),
        (8, address),
        (8, offset),
        (8, size),
        (4, section.link.into()),
        (4, section.info.into()),
        (8, 1),
        (8, if is_symbol_table(section) { 24 } else { 0 }),
    ])
}

/// A segment for each loaded section, because they are far apart.
fn program_header(section: &ElfSection, address: u64) -> Vec<u8> {
    let flags = if section.is_code() { 5 } else { 4 };
    words(&[
        (4, elf::PT_LOAD.0.into()),
        (4, flags),
        (8, 0),
        (8, address),
        (8, address),
        (8, 0),
        (8, section.size),
        (8, 1),
    ])
}

/// Numbers of the given sizes in bytes, one after the other.
fn words(words: &[(usize, u64)]) -> Vec<u8> {
    words.iter().flat_map(|&(size, word)| word.to_le_bytes().into_iter().take(size)).collect()
}
