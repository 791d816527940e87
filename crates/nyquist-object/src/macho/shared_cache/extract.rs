//! Makes a Mach-O file from a library in the cache.

use super::space::{SpaceFile, string};
use super::{CachedImage, LocalSymbols, SharedCache};
use crate::fields::{u32_at, u64_at};
use crate::macho::{FileRange, HEADER_SIZE, MachO, MachOSection, MachOSegment};
use crate::{ByteSource, ObjectError};
use std::io;

/// The maximum length of a symbol's name, and the maximum size in bytes of all names of
/// a library.
const MAX_NAME: u64 = 64 << 10;
const MAX_NAMES: usize = 256 << 20;

/// The maximum size of other tables, and the maximum number of symbols.
const MAX_TABLE: u64 = 64 << 20;
const MAX_SYMBOLS: u64 = 1 << 24;

/// A library as a separate file: its headers and names are in memory, its code in the files of the cache.
#[derive(Debug)]
pub struct ExtractedLibrary<S> {
    head: Vec<u8>,
    /// The position of each piece of code in the new file, and its source.
    code: Vec<Piece<S>>,
}

#[derive(Debug)]
struct Piece<S> {
    start: u64,
    size: u64,
    source: S,
    offset: u64,
}

impl<S: ByteSource> ByteSource for ExtractedLibrary<S> {
    fn len(&self) -> u64 {
        self.code.last().map_or(self.head.len() as u64, |piece| piece.start + piece.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let size = buffer.len() as u64;
        let end = offset.checked_add(size).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end <= self.head.len() as u64 {
            return self.head.read_exact_at(offset, buffer);
        }
        let holds = |piece: &&Piece<S>| piece.start <= offset && end <= piece.start + piece.size;
        let piece = self.code.iter().find(holds).ok_or(io::ErrorKind::UnexpectedEof)?;
        piece.source.read_exact_at(piece.offset + (offset - piece.start), buffer)
    }
}

impl<S: ByteSource + Clone> SharedCache<S> {
    /// Makes a Mach-O file from a library. It has the library's segments, code, symbols (also those that
    /// are stored separately for debuggers), exported names, and function starts. Costs a copy of its
    /// names.
    ///
    /// # Errors
    /// If its header cannot be read: the cache is shorter than it claims, or a file of it is missing. Tables
    /// that cannot be read are left out.
    pub fn extract(&self, image: &CachedImage) -> Result<ExtractedLibrary<S>, ObjectError> {
        let space = &self.space;
        let address = image.address.0;
        let file = MachO::open(SpaceFile { space, address })?;
        let header = space.read(address, HEADER_SIZE)?;
        let mut made = FileBuilder::default();
        for segment in file.segments() {
            let place = space.find(segment.address.0).filter(|_| segment.executable);
            let sections: Vec<_> =
                file.sections().iter().filter(|section| section.segment == segment.name).collect();
            made.segment(
                segment,
                &sections,
                place.map(|(source, offset, room)| (source.clone(), offset, room)),
            );
        }
        made.command(0x1b, &image.uuid.0);
        let linkedit = file.segments().iter().find(|segment| segment.name == "__LINKEDIT");
        let in_memory = |range: FileRange| {
            let linkedit = linkedit?;
            let inside = range.offset.0.checked_sub(linkedit.bytes.offset.0)?;
            linkedit.address.0.checked_add(inside)
        };
        let table = |range: FileRange| {
            let size = Some(range.size).filter(|size| (1..=MAX_TABLE).contains(size))?;
            space.read(in_memory(range)?, size).ok()
        };
        let mut names = SymbolNames::default();
        if let Some(symbols) = file.symbol_table() {
            let entries = FileRange { size: symbols.symbols.size.min(16 * MAX_SYMBOLS), ..symbols.symbols };
            let strings = in_memory(symbols.strings);
            names.add(&table(entries).unwrap_or_default(), |at| {
                // The first string means that there is no name.
                let at = strings?.checked_add(at).filter(|_| at != 0)?;
                space.string(at, MAX_NAME)
            });
        }
        if let Some(symbols) = &self.symbols {
            let in_file = space.find(address).map(|(_, offset, _)| offset);
            let place = if symbols.by_address { address.checked_sub(space.start()) } else { in_file };
            place.and_then(|place| symbols.add_to(&mut names, place));
        }
        made.symbols(&names);
        made.table(0x26, file.commands.function_starts.and_then(table));
        made.table(0x8000_0033, file.exports_trie().and_then(table));
        made.indirect(file.commands.indirect_symbols.and_then(table));
        Ok(made.finish(&header))
    }
}

impl<S: ByteSource> LocalSymbols<S> {
    /// Adds the symbols of the library whose header is at a position of the cache, in memory or in the file
    /// (`dyld_cache_local_symbols_info`). Adds none if they cannot be read.
    fn add_to(&self, names: &mut SymbolNames, place: u64) -> Option<()> {
        let info = self.source.read_range(self.start, 24).ok()?;
        let field = |number: usize| self.start.checked_add(u32_at(&info, 4 * number).into());
        let (symbols, strings, entries) = (field(0)?, field(2)?, field(4)?);
        let (strings_size, count) = (u64::from(u32_at(&info, 12)), u32_at(&info, 20));
        if count > super::MAX_ENTRIES {
            return None;
        }
        // The position is a number of 64 bits in caches of several files, and of 32 bits in older ones.
        let width = if self.by_address { 8 } else { 4 };
        let table = self.source.read_range(entries, u64::from(count) * (width as u64 + 8)).ok()?;
        let place_of = |entry: &[u8]| if width == 8 { u64_at(entry, 0) } else { u32_at(entry, 0).into() };
        let entry = table.chunks_exact(width + 8).find(|entry| place_of(entry) == place)?;
        let (first, count) = (u64::from(u32_at(entry, width)), u64::from(u32_at(entry, width + 4)));
        let bytes =
            self.source.read_range(symbols.checked_add(16 * first)?, 16 * count.min(MAX_SYMBOLS)).ok()?;
        names.add(&bytes, |at| {
            let room = strings_size.checked_sub(at)?;
            string(&self.source, strings.checked_add(at)?, room.min(MAX_NAME))
        });
        Some(())
    }
}

/// Symbols, and the names that they refer to.
#[derive(Default)]
struct SymbolNames {
    symbols: Vec<u8>,
    strings: Vec<u8>,
}

impl SymbolNames {
    /// Adds entries of a symbol table (`nlist_64`), whose names `name` reads. Entries without a name are
    /// kept, because symbols are referred to by number.
    fn add(&mut self, entries: &[u8], name: impl Fn(u64) -> Option<Vec<u8>>) {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        for entry in entries.as_chunks::<16>().0 {
            let (at, rest) = (u32_at(entry, 0), &entry[4..]);
            let text = name(at.into()).filter(|text| !text.is_empty());
            let text = text.filter(|text| self.strings.len() + text.len() < MAX_NAMES);
            let at = if text.is_some() { self.strings.len() as u32 } else { 0 };
            self.symbols.extend(at.to_le_bytes());
            self.symbols.extend(rest);
            if let Some(text) = text {
                self.strings.extend(text);
                self.strings.push(0);
            }
        }
    }
}

/// The file under construction. Positions within it are known only when all commands exist. Until then
/// they are relative to the end of the commands, or of the tables.
struct FileBuilder<S> {
    commands: Vec<u8>,
    count: u32,
    tables: Vec<u8>,
    /// The positions of those numbers in the commands that are relative to the start of the tables.
    from_tables: Vec<usize>,
    /// The same for the start of the code.
    from_code: Vec<(usize, usize)>,
    code: Vec<Piece<S>>,
    code_size: u64,
}

impl<S> Default for FileBuilder<S> {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            count: 0,
            tables: Vec::new(),
            from_tables: Vec::new(),
            from_code: Vec::new(),
            code: Vec::new(),
            code_size: 0,
        }
    }
}

impl<S: ByteSource> FileBuilder<S> {
    fn command(&mut self, number: u32, fields: &[u8]) {
        self.count += 1;
        self.commands.extend(number.to_le_bytes());
        self.commands.extend((fields.len() as u32 + 8).to_le_bytes());
        self.commands.extend(fields);
    }

    /// Adds a segment. For a segment with code, the position of its bytes in the cache is known.
    fn segment(&mut self, segment: &MachOSegment, sections: &[&MachOSection], bytes: Option<(S, u64, u64)>) {
        let start = self.code_size;
        let base = self.commands.len();
        let size = bytes.as_ref().map_or(0, |(.., room)| segment.memory_size.min(*room));
        let has_bytes = bytes.is_some();
        if let Some((source, offset, _)) = bytes {
            self.from_code.push((base + 40, 8));
            self.code.push(Piece { start, size, source, offset });
            self.code_size += size;
        }
        let mut fields = name(&segment.name).to_vec();
        fields.extend([segment.address.0, segment.memory_size, start, size].map(u64::to_le_bytes).concat());
        let protection = if segment.executable { 5 } else { 1 };
        fields.extend([protection, protection, sections.len() as u32, 0].map(u32::to_le_bytes).concat());
        for section in sections {
            let inside = section.address.0.wrapping_sub(segment.address.0);
            let is_inside = has_bytes && inside.checked_add(section.size).is_some_and(|end| end <= size);
            let offset = if is_inside { (start + inside) as u32 } else { 0 };
            if is_inside {
                self.from_code.push((base + 8 + fields.len() + 48, 4));
            }
            fields.extend([name(&section.name), name(&section.segment)].concat());
            fields.extend([section.address.0, section.size].map(u64::to_le_bytes).concat());
            let (first, size) = (section.first_indirect, section.stub_size);
            fields.extend([offset, 0, 0, 0, section.flags, first, size, 0].map(u32::to_le_bytes).concat());
        }
        self.command(0x19, &fields);
    }

    /// Adds a table, and returns its position among the tables.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.tables.len() as u32;
        self.tables.extend(bytes);
        at
    }

    /// Adds a command with the position of a table and its size in bytes.
    fn table(&mut self, number: u32, bytes: Option<Vec<u8>>) {
        let Some(bytes) = bytes else { return };
        let at = self.put(&bytes);
        self.from_tables.push(self.commands.len() + 8);
        self.command(number, &[at, bytes.len() as u32].map(u32::to_le_bytes).concat());
    }

    fn symbols(&mut self, names: &SymbolNames) {
        let (symbols, strings) = (self.put(&names.symbols), self.put(&names.strings));
        self.from_tables.extend([8, 16].map(|at| self.commands.len() + at));
        let fields = [symbols, (names.symbols.len() / 16) as u32, strings, names.strings.len() as u32];
        self.command(0x2, &fields.map(u32::to_le_bytes).concat());
    }

    /// Adds the symbols that the stubs stand for.
    fn indirect(&mut self, numbers: Option<Vec<u8>>) {
        let Some(numbers) = numbers else { return };
        let at = self.put(&numbers);
        self.from_tables.push(self.commands.len() + 56);
        let mut fields = [0_u32; 18];
        (fields[12], fields[13]) = (at, (numbers.len() / 4) as u32);
        self.command(0xb, &fields.map(u32::to_le_bytes).concat());
    }

    fn finish(mut self, header: &[u8]) -> ExtractedLibrary<S> {
        let tables_at = HEADER_SIZE + self.commands.len() as u64;
        let code_at = (tables_at + self.tables.len() as u64).next_multiple_of(0x1000);
        let from_tables = self.from_tables.iter().map(|&at| (at, 4, tables_at));
        let from_code = self.from_code.iter().map(|&(at, size)| (at, size, code_at));
        for (at, size, base) in from_tables.chain(from_code) {
            if let Some(place) = self.commands.get_mut(at..at + size) {
                let mut number = [0; 8];
                number[..size].copy_from_slice(place);
                place.copy_from_slice(&u64::from_le_bytes(number).wrapping_add(base).to_le_bytes()[..size]);
            }
        }
        let mut head = header.get(..16).unwrap_or_default().to_vec();
        head.extend([self.count, self.commands.len() as u32].map(u32::to_le_bytes).concat());
        head.extend([0; 8]);
        head.extend(self.commands);
        head.extend(self.tables);
        head.resize(code_at as usize, 0);
        for piece in &mut self.code {
            piece.start += code_at;
        }
        ExtractedLibrary { head, code: self.code }
    }
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    name
}
