//! The load commands: segments, sections and the tables at the end of the file.

use super::parts::{FileRange, MachOSection, MachOSegment, SymbolTable};
use crate::fields::HeaderFields;
use crate::{FileOffset, MachUuid, Svma};

const LC_SYMTAB: u32 = 0x2;
const LC_UNIXTHREAD: u32 = 0x5;
const LC_DYSYMTAB: u32 = 0xb;
const LC_SEGMENT_64: u32 = 0x19;
const LC_UUID: u32 = 0x1b;
const LC_DYLD_INFO: u32 = 0x22;
const LC_FUNCTION_STARTS: u32 = 0x26;
/// `LC_REQ_DYLD`, a flag that is not part of the command's number. It means that the dynamic linker must
/// know the command.
const REQUIRED: u32 = 0x8000_0000;
const LC_MAIN: u32 = 0x28;
const LC_DYLD_EXPORTS_TRIE: u32 = 0x33;

/// The thread state of each architecture (`flavor`), and the index of the instruction pointer in it
/// (`x86_THREAD_STATE64`, `ARM_THREAD_STATE64`).
const THREAD_STATES: [(u32, usize); 2] = [(4, 16), (6, 32)];

const SECTION_SIZE: usize = 80;

/// The entry point of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryPoint {
    /// At an offset from the start of `__TEXT`.
    InText(u64),
    /// At an address.
    At(Svma),
}

/// The data of the load commands.
#[derive(Debug, Default)]
pub(super) struct Commands {
    pub(super) segments: Vec<MachOSegment>,
    pub(super) sections: Vec<MachOSection>,
    pub(super) uuid: Option<MachUuid>,
    pub(super) entry: Option<EntryPoint>,
    pub(super) symbol_table: Option<SymbolTable>,
    /// The numbers of the symbols that stubs refer to, of 4 bytes each.
    pub(super) indirect_symbols: Option<FileRange>,
    pub(super) function_starts: Option<FileRange>,
    pub(super) exports_trie: Option<FileRange>,
}

impl Commands {
    /// Reads at most `count` commands, up to the first one with an impossible size.
    pub(super) fn parse(mut bytes: &[u8], count: u32) -> Self {
        let mut commands = Self::default();
        for _ in 0..count {
            let Some(command) = HeaderFields(bytes).u32(4).and_then(|size| bytes.get(..size as usize)) else {
                break;
            };
            if command.len() < 8 {
                break;
            }
            // A command that is too short for its fields is ignored; the next one can still be found.
            let _ = commands.add(HeaderFields(command));
            bytes = &bytes[command.len()..];
        }
        commands
    }

    fn add(&mut self, fields: HeaderFields<'_>) -> Option<()> {
        match fields.u32(0)? & !REQUIRED {
            LC_SEGMENT_64 => self.add_segment(fields)?,
            LC_UUID => self.uuid = Some(MachUuid(*fields.0.get(8..)?.first_chunk()?)),
            LC_SYMTAB => {
                let symbols = FileRange { size: u64::from(fields.u32(12)?) * 16, ..fields.range(8)? };
                self.symbol_table = Some(SymbolTable { symbols, strings: fields.range(16)? });
            }
            LC_DYSYMTAB => {
                let size = u64::from(fields.u32(60)?) * 4;
                self.indirect_symbols = Some(FileRange { size, ..fields.range(56)? });
            }
            LC_FUNCTION_STARTS => self.function_starts = Some(fields.range(8)?),
            LC_DYLD_EXPORTS_TRIE => self.exports_trie = Some(fields.range(8)?),
            LC_DYLD_INFO => self.exports_trie = Some(fields.range(40)?),
            LC_MAIN => self.entry = Some(EntryPoint::InText(fields.u64(8)?)),
            LC_UNIXTHREAD => {
                let flavor = fields.u32(8)?;
                let (_, word) = THREAD_STATES.iter().find(|state| state.0 == flavor)?;
                self.entry = Some(EntryPoint::At(Svma(fields.u64(16 + 8 * word)?)));
            }
            _ => {}
        }
        Some(())
    }

    fn add_segment(&mut self, fields: HeaderFields<'_>) -> Option<()> {
        const VM_PROT_EXECUTE: u32 = 4;
        let segment = MachOSegment {
            name: fields.name(8)?,
            address: Svma(fields.u64(24)?),
            memory_size: fields.u64(32)?,
            bytes: FileRange { offset: FileOffset(fields.u64(40)?), size: fields.u64(48)? },
            executable: fields.u32(60)? & VM_PROT_EXECUTE != 0,
        };
        let count = fields.u32(64)? as usize;
        let sections = fields.0.get(72..)?.chunks_exact(SECTION_SIZE).take(count);
        self.sections.extend(sections.filter_map(|section| section_of(HeaderFields(section), &segment)));
        self.segments.push(segment);
        Some(())
    }
}

fn section_of(fields: HeaderFields<'_>, segment: &MachOSegment) -> Option<MachOSection> {
    /// The types of zero-filled sections: `S_ZEROFILL`, `S_GB_ZEROFILL`, `S_THREAD_LOCAL_ZEROFILL`.
    const ZEROS: [u32; 3] = [0x1, 0xc, 0x12];
    let (size, flags) = (fields.u64(40)?, fields.u32(64)?);
    let offset = u64::from(fields.u32(48)?);
    // A `.dSYM` lists the code's sections with their sizes, in a segment without bytes.
    let in_file = offset >= segment.bytes.offset.0
        && offset.saturating_add(size) <= segment.bytes.offset.0.saturating_add(segment.bytes.size)
        && !ZEROS.contains(&(flags & 0xff));
    Some(MachOSection {
        name: fields.name(0)?,
        segment: fields.name(16)?,
        address: Svma(fields.u64(32)?),
        size,
        offset: in_file.then_some(FileOffset(offset)),
        flags,
        first_indirect: fields.u32(68)?,
        stub_size: fields.u32(72)?,
    })
}

impl HeaderFields<'_> {
    /// An offset and a size, of 32 bits each.
    fn range(self, at: usize) -> Option<FileRange> {
        Some(FileRange { offset: FileOffset(self.u32(at)?.into()), size: self.u32(at + 4)?.into() })
    }

    /// A name in 16 bytes, padded with zeros.
    fn name(self, at: usize) -> Option<String> {
        let bytes = self.0.get(at..)?.first_chunk::<16>()?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
    }
}
