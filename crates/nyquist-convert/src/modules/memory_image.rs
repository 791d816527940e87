//! Reads deleted files from the memory of a process that has mapped them. Without the privilege to open such
//! a file, the parts that the process has loaded can still be read.
//!
//! Section headers are not loaded. The sections that unwinding and names need are rebuilt from the tables of
//! the dynamic loader (System V gABI, "Program Header" and "Dynamic Section"; Linux Standard Base, "Exception
//! Frames").

use crate::event::{Mapping, Pid};
use crate::targets::Targets;
use nyquist_object::Avma;
use std::ops::Range;

/// The beginning of an ELF file of 64 bits, little-endian.
const ELF_64: &[u8; 6] = b"\x7fELF\x02\x01";

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PF_X: u32 = 1;

const DT_NULL: u64 = 0;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

const SHT_PROGBITS: u32 = 1;
const SHT_STRTAB: u32 = 3;
const SHT_DYNSYM: u32 = 11;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: u64 = 24;
const SHN_ABS: u16 = 0xfff1;
/// The encoding of the first pointer of `.eh_frame_hdr` that every linker uses: four bytes with a sign,
/// relative to their own place (`DW_EH_PE_pcrel | DW_EH_PE_sdata4`).
const RELATIVE_SDATA4: u8 = 0x1b;
/// The most entries that are read: of the program headers, the dynamic section, and a chain of symbols.
const MAX_ENTRIES: usize = 1 << 12;
const MAX_SYMBOLS: u64 = 1 << 22;

/// The most bytes of the text of a process's mappings.
const MAX_MAPPINGS_TEXT: u64 = 64 << 20;

/// A part of a file in memory.
struct MappedPart {
    memory: Range<u64>,
    offset: u64,
}

/// The file of a mapping, as far as the process has loaded it. `None` if it has more than `most` bytes.
pub(crate) fn read(mapping: &Mapping, (pid, targets): (Pid, &Targets), most: usize) -> Option<Vec<u8>> {
    let maps = targets.mappings(pid, MAX_MAPPINGS_TEXT);
    let parts = parts_of(&String::from_utf8_lossy(&maps), mapping.start)?;
    let base = parts.first()?.memory.start;
    let len = image_len(&parts).filter(|len| *len <= most)?;
    let is_read = |at, room: &mut [u8]| targets.read_memory(pid, at, room) == room.len();
    let mut magic = [0; ELF_64.len()];
    if !is_read(base, &mut magic) || magic != *ELF_64 {
        return None;
    }
    let mut image = vec![0; len];
    for part in &parts {
        let room = image.get_mut(part.offset as usize..part.end() as usize)?;
        if !is_read(part.memory.start, room) {
            return None;
        }
    }
    with_sections(image, Avma(base))
}

impl MappedPart {
    fn len(&self) -> u64 {
        self.memory.end.saturating_sub(self.memory.start)
    }

    /// Where it ends in the file.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len())
    }
}

/// The length of the file that these are parts of. `None` if the parts together are longer, because a program
/// can map the same part thousands of times.
fn image_len(parts: &[MappedPart]) -> Option<usize> {
    /// Linkers put the end of one segment and the beginning of the next into the same page.
    const SHARED: u64 = 2;
    let len = parts.iter().map(MappedPart::end).max()?;
    let mapped = parts.iter().map(MappedPart::len).fold(0, u64::saturating_add);
    usize::try_from(len).ok().filter(|_| mapped <= len.saturating_mul(SHARED))
}

/// The parts of the file that is mapped at an address, beginning with the part at the start of the file.
fn parts_of(maps: &str, start: Avma) -> Option<Vec<MappedPart>> {
    let lines: Vec<(MappedPart, &str)> = maps.lines().filter_map(part).collect();
    let at = lines.iter().position(|(part, _)| part.memory.contains(&start.0))?;
    let file = lines.get(at)?.1;
    let first = lines.get(..=at)?.iter().rposition(|(part, other)| part.offset == 0 && *other == file)?;
    let own = lines.into_iter().skip(first).filter(|(_, other)| *other == file).enumerate();
    // A second part at the start of the file belongs to another mapping of it.
    Some(own.take_while(|(at, (part, _))| *at == 0 || part.offset > 0).map(|(_, (part, _))| part).collect())
}

/// A line of `maps` of readable memory (proc_pid_maps(5)): where it is, and the file by device, inode and
/// path.
fn part(line: &str) -> Option<(MappedPart, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (permissions, rest) = rest.split_once(' ')?;
    let (offset, file) = rest.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let part = MappedPart { memory: hex(start)?..hex(end)?, offset: hex(offset)? };
    permissions.starts_with('r').then_some((part, file))
}

#[derive(Clone, Copy)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
}

fn u32_at(image: &[u8], at: u64) -> Option<u32> {
    let from = image.get(usize::try_from(at).ok()?..)?;
    Some(u32::from_le_bytes(*from.first_chunk()?))
}

fn u64_at(image: &[u8], at: u64) -> Option<u64> {
    let from = image.get(usize::try_from(at).ok()?..)?;
    Some(u64::from_le_bytes(*from.first_chunk()?))
}

fn program_headers(image: &[u8]) -> Option<Vec<ProgramHeader>> {
    if image.get(..ELF_64.len())? != ELF_64 {
        return None;
    }
    let (at, count) = (u64_at(image, 32)?, u32_at(image, 56)? as u16);
    let header = |index: u16| {
        let at = at.checked_add(u64::from(index) * PROGRAM_HEADER as u64)?;
        Some(ProgramHeader {
            kind: u32_at(image, at)?,
            flags: u32_at(image, at + 4)?,
            offset: u64_at(image, at + 8)?,
            address: u64_at(image, at + 16)?,
            file_size: u64_at(image, at + 32)?,
        })
    };
    (0..count.min(MAX_ENTRIES as u16)).map(header).collect()
}

/// The data for converting addresses to offsets in the file.
struct Loaded<'a> {
    image: &'a [u8],
    headers: Vec<ProgramHeader>,
    /// The number that the dynamic loader has added to each address.
    bias: u64,
}

/// A section to be described.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    /// The index of the section with its strings.
    link: u32,
    entry: u64,
}

impl Loaded<'_> {
    fn loads(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.headers.iter().filter(|header| header.kind == PT_LOAD)
    }

    /// The file offset of an address, and the rest of its segment in bytes.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        self.loads().find_map(|load| {
            let into = address.checked_sub(load.address).filter(|into| *into < load.file_size)?;
            Some((load.offset.checked_add(into)?, load.file_size - into))
        })
    }

    fn code(&self) -> impl Iterator<Item = Section> {
        self.loads().filter(|load| load.flags & PF_X != 0).map(|load| Section {
            name: ".text",
            kind: SHT_PROGBITS,
            flags: SHF_ALLOC | SHF_EXECINSTR,
            address: load.address,
            offset: load.offset,
            size: load.file_size,
            link: 0,
            entry: 0,
        })
    }

    /// `.eh_frame`, to which `.eh_frame_hdr` points. It ends with a terminator, before the end of its
    /// segment.
    fn unwind_information(&self) -> Option<Section> {
        let header = self.headers.iter().find(|header| header.kind == PT_GNU_EH_FRAME)?;
        let encoding = self.image.get(usize::try_from(header.offset).ok()?.checked_add(1)?)?;
        let distance = u32_at(self.image, header.offset.checked_add(4)?)?.cast_signed();
        let address = header.address.wrapping_add(4).wrapping_add_signed(i64::from(distance));
        let (offset, size) = self.place(address).filter(|_| *encoding == RELATIVE_SDATA4)?;
        let section = Section {
            name: ".eh_frame",
            kind: SHT_PROGBITS,
            flags: SHF_ALLOC,
            address,
            offset,
            size,
            link: 0,
            entry: 0,
        };
        Some(section)
    }

    /// The value of an entry of the dynamic section. A loader may have relocated it to an address in memory.
    fn dynamic(&self, tag: u64) -> Option<u64> {
        let table = self.headers.iter().find(|header| header.kind == PT_DYNAMIC)?;
        let entries = (0..MAX_ENTRIES as u64).map(|index| table.offset.checked_add(index * 16));
        let entries = entries.map_while(|at| Some((u64_at(self.image, at?)?, u64_at(self.image, at? + 8)?)));
        let mut entries = entries.take_while(|(other, _)| *other != DT_NULL);
        entries.find(|(other, _)| *other == tag).map(|(_, value)| value)
    }

    fn dynamic_place(&self, tag: u64) -> Option<(u64, u64, u64)> {
        let value = self.dynamic(tag)?;
        let address = if value >= self.bias { value - self.bias } else { value };
        let (offset, left) = self.place(address)?;
        Some((address, offset, left))
    }

    /// The number of dynamic symbols, which only their hash tables state.
    fn symbol_count(&self) -> Option<u64> {
        if let Some((_, table, _)) = self.dynamic_place(DT_HASH) {
            return u32_at(self.image, table.checked_add(4)?).map(u64::from);
        }
        let (_, table, _) = self.dynamic_place(DT_GNU_HASH)?;
        let number = |at: u64| u32_at(self.image, at).map(u64::from);
        let (buckets, first, filter) = (number(table)?, number(table + 4)?, number(table + 8)?);
        let buckets_at = table.checked_add(16)?.checked_add(filter.checked_mul(8)?)?;
        let chains_at = buckets_at.checked_add(buckets.checked_mul(4)?)?;
        let heads = (0..buckets.min(MAX_SYMBOLS)).map_while(|bucket| number(buckets_at + bucket * 4));
        let Some(last) = heads.max().filter(|last| *last >= first) else { return Some(first) };
        // The last hash of a chain has its lowest bit set.
        let ends = |symbol: u64| number(chains_at + (symbol - first) * 4).is_none_or(|hash| hash & 1 == 1);
        (last..last + MAX_SYMBOLS).find(|symbol| ends(*symbol)).map(|end| end + 1)
    }

    /// `.dynsym` and `.dynstr`, given the section index of the latter.
    fn symbols(&self, strings: u32) -> Option<[Section; 2]> {
        let (address, offset, left) = self.dynamic_place(DT_SYMTAB)?;
        let size = self.symbol_count()?.checked_mul(SYMBOL)?.min(left);
        let symbols = Section {
            name: ".dynsym",
            kind: SHT_DYNSYM,
            flags: SHF_ALLOC,
            address,
            offset,
            size,
            link: strings,
            entry: SYMBOL,
        };
        let (address, offset, left) = self.dynamic_place(DT_STRTAB)?;
        let size = self.dynamic(DT_STRSZ)?.min(left);
        let names = Section {
            name: ".dynstr",
            kind: SHT_STRTAB,
            flags: SHF_ALLOC,
            address,
            offset,
            size,
            link: 0,
            entry: 0,
        };
        Some([symbols, names])
    }
}

/// Adds headers for the sections that can be found without section headers.
fn with_sections(mut image: Vec<u8>, base: Avma) -> Option<Vec<u8>> {
    let headers = program_headers(&image)?;
    let first = headers.iter().find(|header| header.kind == PT_LOAD)?.address & !0xfff;
    let loaded = Loaded { image: &image, headers, bias: base.0.wrapping_sub(first) };
    let mut sections: Vec<Section> = loaded.code().collect();
    sections.extend(loaded.unwind_information());
    // The null section comes first, and the strings come after the symbols.
    let strings = u32::try_from(sections.len()).ok()? + 2;
    sections.extend(loaded.symbols(strings).into_iter().flatten());
    let code: Vec<Range<u64>> =
        loaded.code().map(|it| it.address..it.address.saturating_add(it.size)).collect();
    if let Some(symbols) = sections.iter().find(|section| section.kind == SHT_DYNSYM) {
        renumber_sections(&mut image, symbols, &code);
    }
    let (mut names, mut table) = (vec![0], vec![0; HEADER]);
    let image_len = image.len() as u64;
    for section in &sections {
        push_header(&mut table, section, names.len() as u32);
        names.extend_from_slice(section.name.as_bytes());
        names.push(0);
    }
    let own_name = names.len() as u32;
    names.extend_from_slice(b".shstrtab\0");
    let own = Section {
        name: "",
        kind: SHT_STRTAB,
        flags: 0,
        address: 0,
        offset: image_len,
        size: names.len() as u64,
        link: 0,
        entry: 0,
    };
    push_header(&mut table, &own, own_name);
    let count = u16::try_from(table.len() / HEADER).ok()?;
    image.extend_from_slice(&names);
    let table_at = image.len() as u64;
    image.extend_from_slice(&table);
    image.get_mut(40..48)?.copy_from_slice(&table_at.to_le_bytes());
    image.get_mut(58..60)?.copy_from_slice(&(HEADER as u16).to_le_bytes());
    image.get_mut(60..62)?.copy_from_slice(&count.to_le_bytes());
    image.get_mut(62..64)?.copy_from_slice(&(count - 1).to_le_bytes());
    Some(image)
}

/// Renumbers the sections of symbols. Symbols in code get the section's new number, and others become
/// absolute.
fn renumber_sections(image: &mut [u8], symbols: &Section, code: &[Range<u64>]) {
    let range = usize::try_from(symbols.offset).ok().zip(usize::try_from(symbols.size).ok());
    let table = range.and_then(|(at, len)| image.get_mut(at..at.checked_add(len)?)).unwrap_or_default();
    let (entries, _) = table.as_chunks_mut::<{ SYMBOL as usize }>();
    for entry in entries {
        let [_, _, _, _, _, _, low, high, value @ .., _, _, _, _, _, _, _, _] = entry;
        if (*low, *high) != (0, 0) {
            let value = u64::from_le_bytes(*value);
            let place =
                code.iter().position(|range| range.contains(&value)).map_or(SHN_ABS, |at| at as u16 + 1);
            [*low, *high] = place.to_le_bytes();
        }
    }
}

fn push_header(table: &mut Vec<u8>, section: &Section, name: u32) {
    table.extend_from_slice(&name.to_le_bytes());
    table.extend_from_slice(&section.kind.to_le_bytes());
    for word in [section.flags, section.address, section.offset, section.size] {
        table.extend_from_slice(&word.to_le_bytes());
    }
    table.extend_from_slice(&section.link.to_le_bytes());
    table.extend_from_slice(&0_u32.to_le_bytes());
    for word in [1, section.entry] {
        table.extend_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{Elf, RelativeAddress};
    use nyquist_symbols::ModuleSymbols;
    use std::fs;

    /// A library of this process that has dynamic symbols.
    fn libc() -> Option<(Mapping, String)> {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("r-xp") && line.contains("/libc."))?.to_owned();
        let (part, file) = part(&line)?;
        let path = file.split_whitespace().next_back()?.to_owned();
        let mapping = Mapping {
            pid: Some(Pid(std::process::id())),
            start: Avma(part.memory.start),
            len: part.memory.end - part.memory.start,
            offset: nyquist_object::FileOffset(part.offset),
            path: path.clone(),
            identity: crate::event::MappedFile::Unknown,
        };
        Some((mapping, path))
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "/proc has the mappings and the memory of a process")]
    fn a_library_in_memory_has_what_its_file_has() {
        let Some((mapping, path)) = libc() else { return };
        let image = read(&mapping, (Pid(std::process::id()), &Targets::default()), 1 << 26).unwrap();
        let (memory, file) =
            (Elf::open(image.as_slice()).unwrap(), Elf::open(fs::read(path).unwrap()).unwrap());
        assert_eq!(memory.build_id(), file.build_id());
        let (here, there) = (
            memory.section_data(".eh_frame").unwrap().unwrap(),
            file.section_data(".eh_frame").unwrap().unwrap(),
        );
        assert!(here.starts_with(&there));
        let symbols = |bytes: Option<Vec<u8>>| bytes.unwrap().len() as u64 / SYMBOL;
        let (here, there) = (memory.section_data(".dynsym").unwrap(), file.section_data(".dynsym").unwrap());
        assert_eq!(symbols(here), symbols(there));
        assert_eq!(memory.section_data(".dynstr").unwrap(), file.section_data(".dynstr").unwrap());
        let module = ModuleSymbols::from_image(image).unwrap();
        let table = file.section_data(".dynsym").unwrap().unwrap();
        let names = file.section_data(".dynstr").unwrap().unwrap();
        let is_malloc = |entry: &&[u8; SYMBOL as usize]| {
            names[u32_at(*entry, 0).unwrap() as usize..].starts_with(b"malloc\0")
        };
        let malloc = u64_at(table.as_chunks().0.iter().find(is_malloc).unwrap(), 8).unwrap();
        let name = format!("{:?}", module.lookup(RelativeAddress(malloc as u32)));
        assert!(name.contains("malloc"), "{name}");
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "/proc has the mappings and the memory of a process")]
    fn no_more_is_read_than_is_allowed() {
        let Some((mapping, _)) = libc() else { return };
        assert!(read(&mapping, (Pid(std::process::id()), &Targets::default()), 1 << 16).is_none());
    }

    #[test]
    fn a_file_mapped_too_often_is_not_read() {
        let part = |at: u64, offset| MappedPart { memory: at..at + 0x10_0000, offset };
        let len = |times: u64| {
            let copies = (1..=times).map(|copy| part(copy << 32, 0x1000));
            image_len(&[part(0, 0)].into_iter().chain(copies).collect::<Vec<_>>())
        };
        assert_eq!((len(1), len(60_000)), (Some(0x10_1000), None));
    }

    #[test]
    fn the_parts_of_a_file_are_those_around_its_code() {
        let maps = "1000-2000 r--p 00000000 fe:00 9 /lib/a\n\
                    2000-3000 r-xp 00001000 fe:00 9 /lib/a\n\
                    3000-4000 rw-p 00000000 00:00 0 \n\
                    4000-5000 r--p 00002000 fe:00 9 /lib/a\n\
                    6000-7000 r--p 00000000 fe:00 9 /lib/a\n\
                    7000-8000 r-xp 00001000 fe:00 9 /lib/a\n\
                    8000-9000 r-xp 00001000 fe:00 8 /lib/b\n";
        let check = |start: u64, expected: &[(u64, u64)]| {
            let parts = parts_of(maps, Avma(start)).unwrap_or_default();
            let found: Vec<_> = parts.iter().map(|part| (part.memory.start, part.offset)).collect();
            assert_eq!(found, expected, "{start:#x}");
        };
        check(0x2000, &[(0x1000, 0), (0x2000, 0x1000), (0x4000, 0x2000)]);
        check(0x7000, &[(0x6000, 0), (0x7000, 0x1000)]);
        check(0x8000, &[]);
        check(0x9000, &[]);
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "/proc has the mappings and the memory of a process")]
    fn damage_costs_no_more_than_the_image() {
        let Some((mapping, _)) = libc() else { return };
        let image = read(&mapping, (Pid(std::process::id()), &Targets::default()), 1 << 26).unwrap();
        for at in (0..4096).step_by(3) {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = image[..1 << 16].to_vec();
                damaged[at] = byte;
                let _ = with_sections(damaged, Avma(0x7000_0000));
            }
        }
        for len in [0, 5, 63, 64, 100, 500] {
            assert!(with_sections(image[..len].to_vec(), Avma(0)).is_none(), "{len}");
        }
    }
}
