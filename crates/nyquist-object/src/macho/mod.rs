//! Mach-O files. Load commands are read first, sections on request.
//!
//! The format is that of Apple's `mach-o/loader.h`. Only 64-bit little-endian files are supported, the
//! only ones that macOS runs since version 10.15.

mod commands;
mod exports;
mod parts;
pub mod shared_cache;
mod symbols;
mod universal;

#[cfg(test)]
mod tests;

use crate::compression::old_compressed;
use crate::fields::u32_at;
use crate::{Architecture, ByteSource, MachUuid, ObjectError, RelativeAddress, Svma};
use commands::Commands;
pub use exports::Export;
pub use parts::{FileRange, MachOSection, MachOSegment, SymbolTable};
pub use symbols::{Stab, Symbol};
pub use universal::{SourceRange, UniversalFile, UniversalSlice};

/// The magic number of a 64-bit file, as a little-endian number.
const MAGIC_64: u32 = 0xfeed_facf;
/// The magic numbers of unsupported files: 32-bit ones, and those of big-endian machines.
const OTHER_MAGIC: [u32; 3] = [0xfeed_face, 0xcefa_edfe, 0xcffa_edfe];
const HEADER_SIZE: u64 = 32;

/// The maximum size of load commands in bytes. Those of the largest real files take several hundred
/// kilobytes.
const MAX_COMMANDS: u32 = 16 << 20;

/// The maximum number of function starts.
const MAX_FUNCTIONS: usize = 1 << 26;

const CPU_TYPE_X86: u32 = 7;
const CPU_TYPE_X86_64: u32 = 0x0100_0007;
const CPU_TYPE_ARM64: u32 = 0x0100_000c;
const CPU_SUBTYPE_ARM64E: u32 = 2;

/// The purpose of a file (`filetype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// The output of a compiler, to be linked.
    Object,
    /// A program.
    Executable,
    /// A library.
    Library,
    /// The dynamic linker itself.
    DynamicLinker,
    /// A library that is loaded on demand.
    Bundle,
    /// The debug information of another file; the file within a `.dSYM` folder.
    DebugSymbols,
    /// Any other.
    Other(u32),
}

/// A Mach-O file for one architecture. Opening it reads only the header and the load commands.
///
/// A universal file contains several; see [`MachO::open_for`].
#[derive(Debug)]
pub struct MachO<S> {
    source: S,
    architecture: Architecture,
    cpu_subtype: u32,
    kind: FileKind,
    commands: Commands,
}

impl<S: ByteSource> MachO<S> {
    /// Reads the header and the load commands. Reading stops at a damaged load command.
    ///
    /// # Errors
    /// If it is not a Mach-O file, or is one of 32 bits or of a big-endian machine.
    pub fn open(source: S) -> Result<Self, ObjectError> {
        let mut header = [0; HEADER_SIZE as usize];
        let magic = source.read_exact_at(0, &mut header[..4]).map(|()| u32_at(&header, 0));
        match magic {
            Ok(MAGIC_64) => {}
            Ok(magic) if OTHER_MAGIC.contains(&magic) => {
                return Err(ObjectError::Unsupported("Mach-O of 32 bits or big-endian".to_owned()));
            }
            _ => return Err(ObjectError::NotAnObject),
        }
        header.copy_from_slice(&source.read_range(0, HEADER_SIZE)?);
        let size = u32_at(&header, 20);
        if size > MAX_COMMANDS {
            return Err(ObjectError::malformed("Mach-O header", format!("{size} bytes of load commands")));
        }
        let available = source.len().saturating_sub(HEADER_SIZE).min(size.into());
        let commands = Commands::parse(&source.read_range(HEADER_SIZE, available)?, u32_at(&header, 16));
        Ok(Self {
            source,
            architecture: architecture(u32_at(&header, 4)),
            cpu_subtype: u32_at(&header, 8) & 0x00ff_ffff,
            kind: file_kind(u32_at(&header, 12)),
            commands,
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

    /// Whether the code signs its return addresses (`arm64e`).
    pub fn authenticates_pointers(&self) -> bool {
        self.architecture == Architecture::Aarch64 && self.cpu_subtype == CPU_SUBTYPE_ARM64E
    }

    /// The purpose of the file.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The id from the linker (`LC_UUID`).
    pub fn uuid(&self) -> Option<MachUuid> {
        self.commands.uuid
    }

    /// The segments in the order of the file.
    pub fn segments(&self) -> &[MachOSegment] {
        &self.commands.segments
    }

    /// The sections of all segments, in the order in which symbols number them from 1 (`n_sect`).
    pub fn sections(&self) -> &[MachOSection] {
        &self.commands.sections
    }

    /// The image base: the address of `__TEXT`, which begins with the file's header. Relative addresses
    /// are relative to it. An object file has base 0.
    pub fn image_base(&self) -> Svma {
        let text = self.segments().iter().find(|segment| segment.name == "__TEXT");
        text.map_or(Svma(0), |segment| segment.address)
    }

    /// The address relative to the image base.
    pub fn relative(&self, address: Svma) -> Option<RelativeAddress> {
        RelativeAddress::from_svma(address, self.image_base())
    }

    /// The first section of that name in the segment of that name.
    pub fn section(&self, segment: &str, name: &str) -> Option<&MachOSection> {
        self.sections().iter().find(|section| section.name == name && section.segment == segment)
    }

    /// The contents of a section; `None` if the file has no bytes of it.
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn data(&self, section: &MachOSection) -> Result<Option<Vec<u8>>, ObjectError> {
        section.offset.map(|offset| self.source.read_range(offset.0, section.size)).transpose()
    }

    /// The contents of the section of that name; `None` if there is no such section, or no bytes of it.
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn section_data(&self, segment: &str, name: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        self.section(segment, name).map_or(Ok(None), |section| self.data(section))
    }

    /// The contents of a section of debug information, by its DWARF name without the prefix, such as
    /// `info`. It is decompressed if it has the old `__zdebug_` form. `None` if there is none.
    ///
    /// # Errors
    /// If the file is shorter than it claims, or a compressed section is damaged.
    pub fn debug_data(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        if let Some(section) = self.debug_section(name) {
            return self.data(section);
        }
        match self.dwarf_section("__zdebug_", name).map(|section| self.data(section)).transpose()?.flatten() {
            Some(bytes) => old_compressed(&bytes, &self.source).map(Some),
            None => Ok(None),
        }
    }

    /// The section of debug information of that name, if it exists and is not compressed.
    pub fn debug_section(&self, name: &str) -> Option<&MachOSection> {
        self.dwarf_section("__debug_", name)
    }

    /// Names of sections are cut to 16 bytes.
    fn dwarf_section(&self, prefix: &str, name: &str) -> Option<&MachOSection> {
        let whole = format!("{prefix}{name}");
        self.section("__DWARF", whole.get(..16).unwrap_or(&whole))
    }

    /// Whether the file contains DWARF debug information.
    pub fn has_debug_info(&self) -> bool {
        let sections = [self.debug_section("info"), self.dwarf_section("__zdebug_", "info")];
        sections.into_iter().flatten().any(|section| section.size > 0 && section.offset.is_some())
    }

    /// The address of the function `main`, if the dynamic linker calls one (`LC_MAIN`).
    pub fn main_function(&self) -> Option<Svma> {
        self.entry_point().filter(|_| matches!(self.commands.entry, Some(commands::EntryPoint::InText(_))))
    }

    /// The entry point, if the file is a program (`LC_MAIN`, or the registers of `LC_UNIXTHREAD`).
    pub fn entry_point(&self) -> Option<Svma> {
        match self.commands.entry? {
            commands::EntryPoint::InText(offset) => self.image_base().checked_add(offset),
            commands::EntryPoint::At(address) => Some(address),
        }
    }

    /// The position of the symbol table (`LC_SYMTAB`).
    pub fn symbol_table(&self) -> Option<SymbolTable> {
        self.commands.symbol_table
    }

    /// The position of the trie of exported names (`LC_DYLD_EXPORTS_TRIE`, `LC_DYLD_INFO`).
    pub fn exports_trie(&self) -> Option<FileRange> {
        self.commands.exports_trie.filter(|range| range.size > 0)
    }

    /// The start of each function, in ascending order (`LC_FUNCTION_STARTS`); empty if the file does not
    /// contain them. Everything after damaged data is left out.
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn function_starts(&self) -> Result<Vec<RelativeAddress>, ObjectError> {
        match self.commands.function_starts {
            Some(range) => Ok(function_starts(&self.source.read_range(range.offset.0, range.size)?)),
            None => Ok(Vec::new()),
        }
    }

    /// The hash for a file without an id, computed like [`Elf::text_hash`](crate::Elf::text_hash).
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn text_hash(&self) -> Result<[u8; 16], ObjectError> {
        let text = self.section("__TEXT", "__text");
        let range = text.and_then(|text| Some((text.offset?, text.size))).unwrap_or_default();
        crate::text_hash::of(&self.source, range.0, range.1)
    }
}

/// The addresses for LEB128 numbers, each the distance from the previous address, up to a zero.
fn function_starts(bytes: &[u8]) -> Vec<RelativeAddress> {
    let mut starts = Vec::new();
    let (mut address, mut delta, mut shift) = (0_u32, 0_u64, 0);
    for byte in bytes {
        if shift > 28 {
            break;
        }
        delta |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 != 0 {
            continue;
        }
        let next = u32::try_from(delta).ok().filter(|&delta| delta != 0);
        let Some(next) = next.and_then(|delta| address.checked_add(delta)) else { break };
        if starts.len() == MAX_FUNCTIONS {
            break;
        }
        starts.push(RelativeAddress(next));
        (address, delta, shift) = (next, 0, 0);
    }
    starts
}

/// The architecture for a `cputype`.
fn architecture(cpu_type: u32) -> Architecture {
    match cpu_type {
        CPU_TYPE_X86_64 => Architecture::X86_64,
        CPU_TYPE_X86 => Architecture::X86,
        CPU_TYPE_ARM64 => Architecture::Aarch64,
        other => Architecture::Other(other),
    }
}

fn file_kind(number: u32) -> FileKind {
    match number {
        1 => FileKind::Object,
        2 => FileKind::Executable,
        6 => FileKind::Library,
        7 => FileKind::DynamicLinker,
        8 => FileKind::Bundle,
        10 => FileKind::DebugSymbols,
        other => FileKind::Other(other),
    }
}
