//! A program's memory according to its file, including pointers that only relocations fill.

use crate::section_contents::{SectionContents, SharedSource};
use nyquist_object::elf::{Architecture, ElfSegment};
use nyquist_object::{Cursor, Elf};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// The kind of relocation that writes an address of the program itself into a word (psABI of x86-64,
/// "Relocation"; ELF for the Arm 64-bit Architecture, "Dynamic relocations").
const R_X86_64_RELATIVE: u32 = 8;
const R_AARCH64_RELATIVE: u32 = 1027;

/// The loadable parts of a file, by their addresses.
#[derive(Debug)]
pub(super) struct FileMemory {
    parts: Vec<MemoryPart>,
    pointer_size: u8,
    little_endian: bool,
    /// The relocations, and the kind that is used.
    relocations: SectionContents,
    relative: Option<u32>,
    /// The words that are filled when the program is loaded. Go's own linker also writes them into the file,
    /// but others do not.
    filled: OnceLock<FxHashMap<u64, u64>>,
}

#[derive(Debug)]
struct MemoryPart {
    address: u64,
    bytes: SectionContents,
    is_code: bool,
}

impl FileMemory {
    pub(super) fn of(elf: &Elf<SharedSource>) -> Self {
        let relative = match elf.architecture() {
            Architecture::X86_64 => Some(R_X86_64_RELATIVE),
            Architecture::Aarch64 => Some(R_AARCH64_RELATIVE),
            _ => None,
        };
        Self {
            parts: elf.segments().iter().map(|segment| MemoryPart::of(elf, segment)).collect(),
            pointer_size: if elf.is_64_bit() { 8 } else { 4 },
            little_endian: elf.is_little_endian(),
            relocations: SectionContents::open(elf, ".rela.dyn").unwrap_or_default(),
            relative,
            filled: OnceLock::new(),
        }
    }

    /// The pointer at an address.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        if let Some(&filled) = self.filled().get(&address) {
            return Some(filled);
        }
        let bytes = self.window(address, self.pointer_size.into())?;
        self.cursor(&bytes).sized(self.pointer_size)
    }

    /// The bytes at an address: `want` of them, or fewer at the end of a loaded piece.
    pub(super) fn window(&self, address: u64, want: u64) -> Option<Cow<'_, [u8]>> {
        let part = self.parts.iter().find(|part| part.range().contains(&address))?;
        part.bytes.window(address - part.address, want)
    }

    pub(super) fn cursor<'a>(&self, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor::new(bytes, 0, self.little_endian)
    }

    /// The ranges of code.
    pub(super) fn code(&self) -> impl Iterator<Item = Range<u64>> {
        self.parts.iter().filter(|part| part.is_code).map(MemoryPart::range)
    }

    /// All addresses with a pointer to `target`. Pointers from relocations come first, and then those in the
    /// parts, from the last to the first, because data comes last.
    pub(super) fn pointers_to(&self, target: u64) -> impl Iterator<Item = u64> {
        let filled = self.filled().iter().filter(move |(_, value)| **value == target);
        let parts = self.parts.iter().rev().filter(|part| !part.is_code);
        filled.map(|(at, _)| *at).chain(parts.flat_map(move |part| self.pointers_in(part, target)))
    }

    fn pointers_in(&self, part: &MemoryPart, target: u64) -> Vec<u64> {
        let size = usize::from(self.pointer_size);
        let mut found = Vec::new();
        for_each_chunk(&part.bytes, |at, bytes| {
            for (index, word) in bytes.chunks_exact(size).enumerate() {
                if self.cursor(word).sized(self.pointer_size) == Some(target) {
                    found.push(part.address + at + (index * size) as u64);
                }
            }
        });
        found
    }

    fn filled(&self) -> &FxHashMap<u64, u64> {
        self.filled.get_or_init(|| {
            let mut scratch = Vec::new();
            let bytes = self.relocations.slice(0..self.relocations.len(), &mut scratch).unwrap_or_default();
            let read = |entry: &[u8; 24]| {
                let mut cursor = self.cursor(entry);
                let (at, info, addend) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
                (Some(info as u32) == self.relative).then_some((at, addend))
            };
            bytes.as_chunks::<24>().0.iter().filter_map(read).collect()
        })
    }
}

impl MemoryPart {
    fn of(elf: &Elf<SharedSource>, segment: &ElfSegment) -> Self {
        let address = segment.address.0;
        let size = segment.file_size.min(u64::MAX - address);
        let bytes = SectionContents::at(elf.source(), segment.offset.0, size);
        Self { address, bytes, is_code: segment.executable }
    }

    fn range(&self) -> Range<u64> {
        self.address..self.address + self.bytes.len()
    }
}

/// Reads bytes one piece at a time, and keeps nothing. The size of all pieces but the last is a multiple of
/// eight.
pub(super) fn for_each_chunk(bytes: &SectionContents, mut take: impl FnMut(u64, &[u8])) {
    const CHUNK: u64 = 1 << 20;
    let (mut at, mut scratch) = (0, Vec::new());
    while at < bytes.len() {
        let end = (at + CHUNK).min(bytes.len());
        let Some(chunk) = bytes.slice(at..end, &mut scratch) else { return };
        take(at, chunk);
        at = end;
    }
}
