//! PE images, of 32 and of 64 bits. Headers are read first, everything else on request.
//!
//! Fields and constants are those of Microsoft's "PE Format" specification. Comments name the relevant
//! section.

mod coff_symbol;
mod debug;
mod exports;
mod symbols;

pub use coff_symbol::CoffSymbol;
pub use debug::CodeView;
pub use exports::Export;

use crate::elf::{Architecture, ElfSegment};
use crate::fields::HeaderFields;
use crate::{ByteSource, DebugId, FileOffset, ObjectError, PeCodeId, PeId, RelativeAddress, Svma};

/// The maximum number of sections. Windows loads images with at most 96 (specification, "COFF File Header").
const MAX_SECTIONS: usize = 1024;

/// The maximum number of data directories. Only 16 are defined.
const MAX_DIRECTORIES: usize = 16;

/// The maximum length of a section name in the string table.
const MAX_SECTION_NAME: u64 = 256;

/// Sizes of headers ("COFF File Header", "Section Table").
const COFF_HEADER: usize = 20;
const SECTION_HEADER: usize = 40;

/// Flags of a section ("Section Flags").
const IMAGE_SCN_CNT_CODE: u32 = 0x20;
const IMAGE_SCN_MEM_EXECUTE: u32 = 0x2000_0000;

/// The data directories that are used here, by their index in the optional header ("Optional Header Data
/// Directories").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirectory {
    /// The names and addresses that other images can link to.
    Exports = 0,
    /// The table of functions and their unwind information, `.pdata`.
    Exceptions = 3,
    /// Data for debuggers, including the name of the PDB.
    Debug = 6,
    /// What the loader needs to know beside the headers.
    LoadConfiguration = 10,
}

/// A section of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeSection {
    /// The name; long ones are in the string table. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Its address in memory.
    pub address: RelativeAddress,
    /// The number of bytes in memory.
    pub memory_size: u32,
    /// The start of its bytes in the file.
    pub offset: FileOffset,
    /// The number of its bytes in the file, including padding.
    pub file_size: u32,
    /// The flags (`Characteristics`).
    pub flags: u32,
}

impl PeSection {
    /// Whether the section is code.
    pub fn is_code(&self) -> bool {
        self.flags & (IMAGE_SCN_MEM_EXECUTE | IMAGE_SCN_CNT_CODE) != 0
    }

    /// The number of bytes that are both in the file and in memory.
    pub fn size(&self) -> u32 {
        // Object files, and images of old linkers, have no size in memory.
        if self.memory_size == 0 { self.file_size } else { self.file_size.min(self.memory_size) }
    }

    /// The offset of an address in the section, if the file has its byte.
    fn offset_of(&self, address: RelativeAddress) -> Option<u32> {
        address.offset_from(self.address).filter(|&offset| offset < self.size())
    }
}

/// A PE image: an executable file or a library of Windows. Opening it reads only the headers.
#[derive(Debug)]
pub struct Pe<S> {
    source: S,
    architecture: Architecture,
    is_64: bool,
    timestamp: u32,
    image_base: Svma,
    size_of_image: u32,
    headers_size: u32,
    entry_point: Option<RelativeAddress>,
    directories: Vec<(RelativeAddress, u32)>,
    sections: Vec<PeSection>,
    symbol_table: coff_symbol::TableLocation,
}

fn cut(part: &'static str) -> ObjectError {
    ObjectError::malformed(part, "it is cut off")
}

/// The fields of the optional header.
struct OptionalHeader {
    is_64: bool,
    image_base: u64,
    entry_point: u32,
    size_of_image: u32,
    headers_size: u32,
    directories: Vec<(RelativeAddress, u32)>,
}

impl OptionalHeader {
    /// Reads the header ("Optional Header").
    fn parse(bytes: &[u8]) -> Result<Self, ObjectError> {
        let fields = HeaderFields(bytes);
        let is_64 = match fields.u16(0) {
            Some(0x10b) => false,
            Some(0x20b) => true,
            Some(magic) => return Err(ObjectError::Unsupported(format!("PE magic {magic:#x}"))),
            None => return Err(ObjectError::malformed("PE header", "it has no optional header")),
        };
        Self::parse_fields(fields, is_64).ok_or_else(|| cut("PE optional header"))
    }

    fn parse_fields(fields: HeaderFields<'_>, is_64: bool) -> Option<Self> {
        let (image_base, count_at) =
            if is_64 { (fields.u64(24)?, 108) } else { (fields.u32(28)?.into(), 92) };
        let count = (fields.u32(count_at)? as usize).min(MAX_DIRECTORIES);
        let directory = |index: usize| {
            let at = count_at + 4 + 8 * index;
            Some((RelativeAddress(fields.u32(at)?), fields.u32(at + 4)?))
        };
        Some(Self {
            is_64,
            image_base,
            entry_point: fields.u32(16)?,
            size_of_image: fields.u32(56)?,
            headers_size: fields.u32(60)?,
            // A directory beyond the header's end does not exist.
            directories: (0..count).map_while(directory).collect(),
        })
    }
}

impl<S: ByteSource> Pe<S> {
    /// Reads the headers and the table of sections.
    pub fn open(source: S) -> Result<Self, ObjectError> {
        let at = pe_header_offset(&source).ok_or(ObjectError::NotAnObject)?;
        let coff = source.read_range(at + 4, COFF_HEADER as u64)?;
        let coff = HeaderFields(&coff);
        let field = |value: Option<u16>| value.ok_or_else(|| cut("COFF header"));
        let machine = field(coff.u16(0))?;
        let count = usize::from(field(coff.u16(2))?);
        let optional_size = field(coff.u16(16))?;
        if count > MAX_SECTIONS {
            return Err(ObjectError::malformed("PE header", format!("{count} sections")));
        }
        let optional_at = at + 4 + COFF_HEADER as u64;
        let optional = OptionalHeader::parse(&source.read_range(optional_at, optional_size.into())?)?;
        let symbol_table = coff_symbol::TableLocation {
            offset: coff.u32(8).unwrap_or_default(),
            count: coff.u32(12).unwrap_or_default(),
        };
        let headers_at = optional_at + u64::from(optional_size);
        let headers = source.read_range(headers_at, (count * SECTION_HEADER) as u64)?;
        let sections = headers.chunks_exact(SECTION_HEADER);
        let sections = sections.filter_map(|header| section(header, &source, symbol_table)).collect();
        Ok(Self {
            source,
            architecture: architecture(machine),
            is_64: optional.is_64,
            timestamp: coff.u32(4).unwrap_or_default(),
            image_base: Svma(optional.image_base),
            size_of_image: optional.size_of_image,
            headers_size: optional.headers_size,
            entry_point: Some(RelativeAddress(optional.entry_point)).filter(|entry| entry.0 != 0),
            directories: optional.directories,
            sections,
            symbol_table,
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

    /// Whether it is a file for 64-bit Windows (PE32+).
    pub fn is_64_bit(&self) -> bool {
        self.is_64
    }

    /// Whether it is an image of ARM64EC: code for 64-bit ARM that works beside translated code for x86_64, as which
    /// the headers state it. Such images have metadata (`CHPEMetadataPointer`, "Load Configuration Layout").
    pub fn is_arm64ec(&self) -> bool {
        const POINTER: u32 = 200;
        let is_x86_64 = self.is_64 && self.architecture == Architecture::X86_64;
        let pointer = || {
            let (address, _) = self.directory(DataDirectory::LoadConfiguration).filter(|_| is_x86_64)?;
            // It begins with its own size.
            let size = HeaderFields(&self.read_at(address, 4).ok()?).u32(0)?;
            let at = address.0.checked_add(POINTER).filter(|_| size >= POINTER + 8)?;
            HeaderFields(&self.read_at(RelativeAddress(at), 8).ok()?).u64(0)
        };
        pointer().is_some_and(|pointer| pointer != 0)
    }

    /// The stated address of the image in memory.
    pub fn image_base(&self) -> Svma {
        self.image_base
    }

    /// The number of bytes of address space of the image.
    pub fn size_of_image(&self) -> u32 {
        self.size_of_image
    }

    /// The entry point of a program, or the function that is called when a library is loaded.
    pub fn entry_point(&self) -> Option<RelativeAddress> {
        self.entry_point
    }

    /// The sections in the order of the file.
    pub fn sections(&self) -> &[PeSection] {
        &self.sections
    }

    /// The first section of that name.
    pub fn section(&self, name: &str) -> Option<&PeSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The sections as the loader maps them, in the form of ELF segments.
    pub fn segments(&self) -> Vec<ElfSegment> {
        let segment = |section: &PeSection| ElfSegment {
            offset: section.offset,
            address: section.address.to_svma(self.image_base),
            file_size: section.size().into(),
            memory_size: section.memory_size.into(),
            executable: section.is_code(),
        };
        self.sections.iter().map(segment).collect()
    }

    /// The contents of a section, without the padding at its end.
    pub fn data(&self, section: &PeSection) -> Result<Vec<u8>, ObjectError> {
        self.source.read_range(section.offset.0, section.size().into())
    }

    /// The address and the size in bytes of a data directory; `None` if the image does not have it.
    pub fn directory(&self, directory: DataDirectory) -> Option<(RelativeAddress, u32)> {
        let found = self.directories.get(directory as usize).copied();
        found.filter(|(address, size)| address.0 != 0 && *size != 0)
    }

    /// The file offset of the byte at an address, and the number of bytes of the same section from there on.
    pub fn file_range(&self, address: RelativeAddress) -> Option<(FileOffset, u32)> {
        if address.0 < self.headers_size {
            return Some((FileOffset(address.0.into()), self.headers_size - address.0));
        }
        let inside =
            |section: &PeSection| Some((section.offset_of(address)?, section.offset, section.size()));
        let (within, offset, size) = self.sections.iter().find_map(inside)?;
        Some((offset.checked_add(within.into())?, size - within))
    }

    /// The `len` bytes at an address. Bytes that are not in the file cause an error, even if the loader
    /// would fill them with zeros.
    pub fn read_at(&self, address: RelativeAddress, len: u32) -> Result<Vec<u8>, ObjectError> {
        let place = self.file_range(address).filter(|(_, room)| len <= *room);
        let (offset, _) = place.ok_or_else(|| {
            ObjectError::malformed("PE image", format!("{len} bytes at {address} are not in a section"))
        })?;
        self.source.read_range(offset.0, len.into())
    }

    /// The id that symbol servers use for the image itself.
    pub fn code_id(&self) -> PeCodeId {
        PeCodeId { timestamp: self.timestamp, size_of_image: self.size_of_image }
    }

    /// The ids of the image: its code id, and the id for finding its PDB. For an image without a PDB, the
    /// latter is the [hash of its code](Pe::text_hash), as for an ELF file without a build id.
    pub fn id(&self) -> Result<PeId, ObjectError> {
        let debug = match self.code_view() {
            Ok(Some(code_view)) => code_view.debug_id,
            Ok(None) | Err(_) => DebugId::from_guid(self.text_hash()?, 0),
        };
        Ok(PeId { code: self.code_id(), debug })
    }

    /// A hash of the code: the exclusive or of the 16-byte blocks in the first 4096 bytes of `.text`,
    /// computed like [`Elf::text_hash`](crate::Elf::text_hash).
    pub fn text_hash(&self) -> Result<[u8; 16], ObjectError> {
        let code = self.section(".text").or_else(|| self.sections.iter().find(|section| section.is_code()));
        let (offset, size) = code.map_or((FileOffset(0), 0), |code| (code.offset, code.size()));
        crate::text_hash::of(&self.source, offset, size.into())
    }

    /// The string at an address, without its terminating zero, if it is not longer than `max`.
    fn string_at(&self, address: RelativeAddress, max: u32) -> Option<Vec<u8>> {
        let (offset, room) = self.file_range(address)?;
        string(&self.source, offset.0, room.min(max).into())
    }
}

/// The offset of the PE header, if a file begins like a PE image ("MS-DOS Stub", "Signature").
fn pe_header_offset(source: &impl ByteSource) -> Option<u64> {
    let mut stub = [0; 64];
    source.read_exact_at(0, &mut stub).ok()?;
    let offset = HeaderFields(&stub).u32(60).filter(|_| stub.starts_with(b"MZ"))?;
    let mut signature = [0; 4];
    source.read_exact_at(offset.into(), &mut signature).ok()?;
    (&signature == b"PE\0\0").then_some(offset.into())
}

fn architecture(machine: u16) -> Architecture {
    match machine {
        0x8664 => Architecture::X86_64,
        0x14c => Architecture::X86,
        0xaa64 => Architecture::Aarch64,
        other => Architecture::Other(other.into()),
    }
}

/// Reads a section header ("Section Table").
fn section(
    header: &[u8],
    source: &impl ByteSource,
    symbols: coff_symbol::TableLocation,
) -> Option<PeSection> {
    let fields = HeaderFields(header);
    let short: [u8; 8] = fields.bytes(0)?;
    let end = short.iter().position(|&byte| byte == 0).unwrap_or(short.len());
    let short = &short[..end];
    let long = name_offset(short).and_then(|at| string(source, symbols.strings()? + at, MAX_SECTION_NAME));
    Some(PeSection {
        name: String::from_utf8_lossy(long.as_deref().unwrap_or(short)).into_owned(),
        memory_size: fields.u32(8)?,
        address: RelativeAddress(fields.u32(12)?),
        file_size: fields.u32(16)?,
        offset: FileOffset(fields.u32(20)?.into()),
        flags: fields.u32(36)?,
    })
}

/// The offset of a long section name in the string table: `/` and a decimal number. If that does not fit,
/// LLVM writes `//` and six base-64 digits.
fn name_offset(short: &[u8]) -> Option<u64> {
    let digits = short.strip_prefix(b"/")?;
    match digits.strip_prefix(b"/") {
        Some(digits) => digits.iter().try_fold(0, |offset: u64, &digit| {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            Some(offset << 6 | u64::from(value))
        }),
        None => std::str::from_utf8(digits).ok()?.parse().ok(),
    }
}

/// The string at `offset` of the file, without its terminating zero, if that is among the first `max` bytes.
fn string(source: &impl ByteSource, offset: u64, max: u64) -> Option<Vec<u8>> {
    let len = max.min(source.len().checked_sub(offset)?);
    let mut bytes = source.read_range(offset, len).ok()?;
    bytes.truncate(bytes.iter().position(|&byte| byte == 0)?);
    Some(bytes)
}

#[cfg(test)]
mod tests;
