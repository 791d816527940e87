//! ELF files. Headers are read first, sections on request.

pub use crate::Architecture;
use crate::compression::{Compression, decompress, old_compressed};
use crate::{BuildId, ByteSource, DebugAltLink, DebugLink, FileOffset, ObjectError, Svma};
use object::Endianness;
use object::elf;
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader};

/// The maximum number of program or section headers. Linux loads at most 64 kB of program headers. The
/// largest real files (with a section per function) have several hundred thousand sections.
const MAX_HEADERS: usize = 1 << 20;

/// A `PT_LOAD` program header: a range of the file that the loader maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfSegment {
    /// The start of its bytes in the file.
    pub offset: FileOffset,
    /// Its stated address in memory.
    pub address: Svma,
    /// The number of its bytes in the file.
    pub file_size: u64,
    /// The number of bytes in memory.
    pub memory_size: u64,
    /// Whether it is mapped as code (`PF_X`).
    pub executable: bool,
}

/// A section header in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfSection {
    /// The name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// The section's address in memory; 0 for sections that are not loaded.
    pub address: Svma,
    /// The start of its bytes in the file.
    pub offset: FileOffset,
    /// Its size in bytes; in the file for all but `SHT_NOBITS`.
    pub size: u64,
    /// `sh_link`: the index of a related section, such as a symbol table's strings.
    pub link: u32,
    /// `sh_info`: for relocations, the index of the section that they apply to.
    pub info: u32,
}

impl ElfSection {
    /// Whether the section is code.
    pub fn is_code(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    /// Whether the section is loaded into memory.
    pub fn is_loaded(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// Whether the file contains bytes of the section.
    pub fn has_bytes(&self) -> bool {
        self.kind != elf::SHT_NOBITS.0 && self.kind != elf::SHT_NULL.0
    }
}

/// An ELF file, 32 or 64 bits, of either byte order. Opening it reads only the headers.
#[derive(Debug)]
pub struct Elf<S> {
    source: S,
    architecture: Architecture,
    little_endian: bool,
    is_64: bool,
    entry_point: Option<Svma>,
    segments: Vec<ElfSegment>,
    unwind_header: Option<ElfSegment>,
    notes: Vec<(u64, u64)>,
    sections: Vec<ElfSection>,
}

impl<S: ByteSource> Elf<S> {
    /// Reads the headers. If the section headers are missing or damaged, the file still opens if its program
    /// headers can be read. It can be mapped and identified, and has no sections.
    pub fn open(source: S) -> Result<Self, ObjectError> {
        let mut ident = [0; 5];
        if source.read_exact_at(0, &mut ident).is_err() || ident[..4] != elf::ELFMAG {
            return Err(ObjectError::NotAnObject);
        }
        match elf::FileClass(ident[4]) {
            elf::ELFCLASS64 => Self::parse::<elf::FileHeader64<Endianness>>(source, true),
            elf::ELFCLASS32 => Self::parse::<elf::FileHeader32<Endianness>>(source, false),
            class => Err(ObjectError::Unsupported(format!("ELF class {}", class.0))),
        }
    }

    fn parse<H: FileHeader<Endian = Endianness>>(source: S, is_64: bool) -> Result<Self, ObjectError> {
        let header_bytes = source.read_range(0, size_of::<H>() as u64)?;
        let malformed = |error: object::read::Error| ObjectError::malformed("ELF header", error.to_string());
        let header = H::parse(header_bytes.as_slice()).map_err(malformed)?;
        let endian = header.endian().map_err(malformed)?;
        let architecture = Architecture::of_elf_machine(header.e_machine(endian).0);
        let Segments { loaded: segments, unwind_header, notes } =
            read_segments::<H>(&source, header, endian)?;
        let sections = read_sections::<H>(&source, header, endian).unwrap_or_default();
        let little_endian = endian == Endianness::Little;
        let entry_point = Some(Svma(header.e_entry(endian).into())).filter(|entry| entry.0 != 0);
        Ok(Self {
            source,
            architecture,
            little_endian,
            is_64,
            entry_point,
            segments,
            unwind_header,
            notes,
            sections,
        })
    }

    /// The source of the bytes.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The instruction set.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Whether numbers are little-endian.
    pub fn is_little_endian(&self) -> bool {
        self.little_endian
    }

    /// Whether it is a 64-bit file.
    pub fn is_64_bit(&self) -> bool {
        self.is_64
    }

    /// The entry point; most libraries have none.
    pub fn entry_point(&self) -> Option<Svma> {
        self.entry_point
    }

    /// The `PT_LOAD` program headers in the order of the file.
    pub fn segments(&self) -> &[ElfSegment] {
        &self.segments
    }

    /// The program header of `.eh_frame_hdr` (`PT_GNU_EH_FRAME`), which exists also without section headers.
    pub fn unwind_header(&self) -> Option<&ElfSegment> {
        self.unwind_header.as_ref()
    }

    /// The file offset of the byte that is loaded to an address, and the number of bytes of its segment
    /// from there on.
    pub fn file_range(&self, address: Svma) -> Option<(FileOffset, u64)> {
        self.segments.iter().find_map(|segment| {
            let inside = address.0.checked_sub(segment.address.0)?;
            let room = segment.file_size.checked_sub(inside).filter(|room| *room > 0)?;
            Some((FileOffset(segment.offset.0.checked_add(inside)?), room))
        })
    }

    /// All sections, including the null section at index 0, so that `sh_link` can be used as an index.
    pub fn sections(&self) -> &[ElfSection] {
        &self.sections
    }

    /// The image base: the start of the page of the segment with the lowest address. Relative addresses are
    /// relative to it. A file without segments (a separate `.dwo`, an object file) has base 0.
    pub fn image_base(&self) -> Svma {
        let lowest = self.segments.iter().map(|segment| segment.address.0).min().unwrap_or(0);
        Svma(lowest & !0xfff)
    }

    /// The first section of that name.
    pub fn section(&self, name: &str) -> Option<&ElfSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The contents of the section of that name, decompressed; `None` if there is no such section, or it
    /// has no bytes in this file. Also finds the old `.zdebug_` spelling of a `.debug_` section.
    pub fn section_data(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        if let Some(section) = self.section(name) {
            return if section.has_bytes() { self.data(section).map(Some) } else { Ok(None) };
        }
        let Some(debug) = name.strip_prefix(".debug_") else { return Ok(None) };
        match self.section(&format!(".zdebug_{debug}")) {
            Some(section) => self.old_compressed_data(section).map(Some),
            None => Ok(None),
        }
    }

    /// The contents of a section, decompressed. Costs one copy of the section.
    pub fn data(&self, section: &ElfSection) -> Result<Vec<u8>, ObjectError> {
        if !section.has_bytes() {
            return Ok(Vec::new());
        }
        let bytes = self.source.read_range(section.offset.0, section.size)?;
        if section.flags & elf::SHF_COMPRESSED.0 == 0 {
            return Ok(bytes);
        }
        let endian = if self.little_endian { Endianness::Little } else { Endianness::Big };
        let (kind, size, header_len) = if self.is_64 {
            compression_header::<elf::CompressionHeader64<Endianness>>(&bytes, endian)?
        } else {
            compression_header::<elf::CompressionHeader32<Endianness>>(&bytes, endian)?
        };
        decompress(kind, &bytes[header_len..], size, &self.source)
    }

    /// Whether [`Elf::data`] has to decompress this section, so that a part of it cannot be read separately.
    pub fn is_compressed(&self, section: &ElfSection) -> bool {
        section.flags & elf::SHF_COMPRESSED.0 != 0 || section.name.starts_with(".zdebug_")
    }

    /// The contents of `.zdebug_*`, which include a header with the compression.
    fn old_compressed_data(&self, section: &ElfSection) -> Result<Vec<u8>, ObjectError> {
        let bytes = self.source.read_range(section.offset.0, section.size)?;
        old_compressed(&bytes, &self.source)
    }

    /// The GNU build id from the program headers' notes. If there is none (in a debug file with
    /// empty segments), from its note sections.
    pub fn build_id(&self) -> Option<BuildId> {
        let sections = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE.0);
        let sections = sections.map(|section| (section.offset.0, section.size));
        self.notes.iter().copied().chain(sections).find_map(|(offset, size)| {
            let notes = self.source.read_range(offset, size.min(1 << 20)).ok()?;
            build_id_in_notes(&notes, self.little_endian)
        })
    }

    /// `.gnu_debuglink`, if it exists.
    pub fn debug_link(&self) -> Result<Option<DebugLink>, ObjectError> {
        let section = self.section_data(".gnu_debuglink")?;
        section.map(|bytes| DebugLink::parse(&bytes, self.little_endian)).transpose()
    }

    /// `.gnu_debugaltlink`, if it exists.
    pub fn debug_alt_link(&self) -> Result<Option<DebugAltLink>, ObjectError> {
        self.section_data(".gnu_debugaltlink")?.map(|bytes| DebugAltLink::parse(&bytes)).transpose()
    }

    /// A hash of the code that identifies a file without a build id. It is the exclusive or of the 16-byte
    /// blocks in the first 4096 bytes of `.text`, computed as in Breakpad (`src/common/linux/file_id.cc`,
    /// `HashElfTextSection`). If there is no `.text`, the first executable segment is used instead.
    pub fn text_hash(&self) -> Result<[u8; 16], ObjectError> {
        let text = self.section(".text").filter(|section| section.has_bytes());
        let text = text.map(|section| (section.offset, section.size));
        let code = self.segments.iter().find(|segment| segment.executable);
        let code = code.map(|segment| (segment.offset, segment.file_size));
        let (offset, size) = text.or(code).unwrap_or((FileOffset(0), 0));
        crate::text_hash::of(&self.source, offset, size)
    }
}

/// Searches a note segment or section for `NT_GNU_BUILD_ID` (System V gABI, "Note Section").
pub fn build_id_in_notes(mut notes: &[u8], little_endian: bool) -> Option<BuildId> {
    let number = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    while let Some((header, rest)) = notes.split_at_checked(12) {
        let name_len = number(&header[..4]) as usize;
        let desc_len = number(&header[4..8]) as usize;
        let name = rest.get(..name_len)?;
        let desc_at = name_len.checked_next_multiple_of(4)?;
        let desc = rest.get(desc_at..desc_at.checked_add(desc_len)?)?;
        if number(&header[8..12]) == elf::NT_GNU_BUILD_ID.0 && name == b"GNU\0" {
            return BuildId::new(desc);
        }
        notes = rest.get(desc_at + desc_len.checked_next_multiple_of(4)?..)?;
    }
    None
}

/// The data of the program headers.
#[derive(Default)]
struct Segments {
    loaded: Vec<ElfSegment>,
    unwind_header: Option<ElfSegment>,
    notes: Vec<(u64, u64)>,
}

fn read_segments<H: FileHeader<Endian = Endianness>>(
    source: &impl ByteSource,
    header: &H,
    endian: Endianness,
) -> Result<Segments, ObjectError> {
    let count = usize::from(header.e_phnum(endian));
    let mut found = Segments::default();
    for program_header in read_table::<H::ProgramHeader>(source, header.e_phoff(endian).into(), count)? {
        let segment = ElfSegment {
            offset: FileOffset(program_header.p_offset(endian).into()),
            address: Svma(program_header.p_vaddr(endian).into()),
            file_size: program_header.p_filesz(endian).into(),
            memory_size: program_header.p_memsz(endian).into(),
            executable: program_header.p_flags(endian).contains(elf::PF_X),
        };
        match program_header.p_type(endian) {
            elf::PT_LOAD => found.loaded.push(segment),
            elf::PT_GNU_EH_FRAME => found.unwind_header = Some(segment),
            elf::PT_NOTE => found.notes.push((segment.offset.0, segment.file_size)),
            _ => {}
        }
    }
    Ok(found)
}

fn read_sections<H: FileHeader<Endian = Endianness>>(
    source: &impl ByteSource,
    header: &H,
    endian: Endianness,
) -> Result<Vec<ElfSection>, ObjectError> {
    let offset: u64 = header.e_shoff(endian).into();
    if offset == 0 {
        return Ok(Vec::new());
    }
    // From 65,280 sections on, the counts are in the null section's header.
    let first = read_table::<H::SectionHeader>(source, offset, 1)?;
    let count = match header.e_shnum(endian) {
        0 => usize::try_from(first[0].sh_size(endian).into()).unwrap_or(usize::MAX),
        count => usize::from(count),
    };
    let names_index = match header.e_shstrndx(endian) {
        elf::SHN_XINDEX => first[0].sh_link(endian),
        index => u32::from(index.0),
    };
    let headers = read_table::<H::SectionHeader>(source, offset, count)?;
    let names = match headers.get(names_index as usize) {
        Some(section) => {
            source.read_range(section.sh_offset(endian).into(), section.sh_size(endian).into())?
        }
        None => Vec::new(),
    };
    Ok(headers.iter().map(|header| read_section::<H>(header, &names, endian)).collect())
}

fn read_section<H: FileHeader<Endian = Endianness>>(
    header: &H::SectionHeader,
    names: &[u8],
    endian: Endianness,
) -> ElfSection {
    let name = names.get(header.sh_name(endian) as usize..).unwrap_or_default();
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    ElfSection {
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        kind: header.sh_type(endian).0,
        flags: header.sh_flags(endian).0,
        address: Svma(header.sh_addr(endian).into()),
        offset: FileOffset(header.sh_offset(endian).into()),
        size: header.sh_size(endian).into(),
        link: header.sh_link(endian),
        info: header.sh_info(endian),
    }
}

/// Reads `count` headers of type `T` from `offset` on.
fn read_table<T: object::Pod>(
    source: &impl ByteSource,
    offset: u64,
    count: usize,
) -> Result<Vec<T>, ObjectError> {
    if count > MAX_HEADERS {
        return Err(ObjectError::malformed("ELF header", format!("{count} headers")));
    }
    let bytes = source.read_range(offset, (count * size_of::<T>()) as u64)?;
    let (headers, _) = object::pod::slice_from_bytes::<T>(&bytes, count)
        .map_err(|()| ObjectError::malformed("ELF header", "headers out of bounds"))?;
    Ok(headers.to_vec())
}

fn compression_header<C: CompressionHeader<Endian = Endianness>>(
    bytes: &[u8],
    endian: Endianness,
) -> Result<(Compression, u64, usize), ObjectError> {
    let (header, _) = object::pod::from_bytes::<C>(bytes)
        .map_err(|()| ObjectError::malformed("compressed section", "no room for its header"))?;
    let kind = match header.ch_type(endian) {
        elf::ELFCOMPRESS_ZLIB => Compression::Zlib,
        elf::ELFCOMPRESS_ZSTD => Compression::Zstd,
        other => return Err(ObjectError::Unsupported(format!("section compression {other}"))),
    };
    Ok((kind, header.ch_size(endian).into(), size_of::<C>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileSource;
    use std::fs::File;

    fn own_binary() -> Elf<FileSource> {
        let path = std::env::current_exe().unwrap();
        Elf::open(FileSource::new(File::open(path).unwrap())).unwrap()
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn the_test_program_itself_opens() {
        let elf = own_binary();
        assert!(elf.is_64_bit() && elf.is_little_endian());
        assert!(elf.segments().iter().any(|segment| segment.executable));
        assert!(elf.section(".text").unwrap().is_code());
        assert!(!elf.section_data(".eh_frame").unwrap().unwrap().is_empty());
        assert!(elf.section_data(".no_such_section").unwrap().is_none());
        assert_ne!(elf.text_hash().unwrap(), [0; 16]);
    }

    #[test]
    fn what_is_no_elf_file_says_so() {
        for bytes in [b"".as_slice(), b"\x7fEL", b"#!/bin/sh\n", b"MZ\x90\0\x03"] {
            assert!(matches!(Elf::open(bytes), Err(ObjectError::NotAnObject)), "{bytes:?}");
        }
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn a_file_cut_anywhere_causes_no_panic() {
        let elf = own_binary();
        let whole = elf.source().read_range(0, elf.source().len().min(1 << 16)).unwrap();
        for len in (0..whole.len()).step_by(251) {
            if let Ok(cut) = Elf::open(&whole[..len]) {
                let _ = (cut.build_id(), cut.text_hash(), cut.section_data(".eh_frame"));
            }
        }
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for (name, kind, desc) in
            [(b"GNU\0", 1_u32, [9_u8; 4]), (b"GNU\0", elf::NT_GNU_BUILD_ID.0, [1, 2, 3, 4])]
        {
            notes.extend_from_slice(&4_u32.to_le_bytes());
            notes.extend_from_slice(&4_u32.to_le_bytes());
            notes.extend_from_slice(&kind.to_le_bytes());
            notes.extend_from_slice(name);
            notes.extend_from_slice(&desc);
        }
        assert_eq!(build_id_in_notes(&notes, true).unwrap().to_string(), "01020304");
        assert_eq!(build_id_in_notes(&notes[..16], true), None);
        assert_eq!(build_id_in_notes(&[0xff; 64], true), None);
    }
}
