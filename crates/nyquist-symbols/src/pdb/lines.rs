//! Lines: the part of a module's stream after its symbols (LLVM, "CodeView Type Records" and
//! `DebugSubsection.h`; Microsoft's `cvinfo.h`, "Line number and file information").

use super::dbi::PdbProgram;
use nyquist_object::Cursor;
use rustc_hash::FxHashMap;

/// Kinds of subsections.
const LINES: u32 = 0xf2;
const FILES: u32 = 0xf4;
const INLINEE_LINES: u32 = 0xf6;
const IMPORTS: u32 = 0xf7;
const EXPORTS: u32 = 0xf8;

/// Line numbers from here on mean code without a line.
const FIRST_SPECIAL_LINE: u32 = 0x00f0_0000;

/// A place in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceLocation {
    /// The offset of the file in the module's list of files.
    pub(super) file: u32,
    pub(super) line: u32,
    /// 0 if it is not known.
    pub(super) column: u32,
}

impl SourceLocation {
    /// Whether it is a line of a file.
    pub(super) fn is_real(self) -> bool {
        self.line != 0 && self.line < FIRST_SPECIAL_LINE
    }
}

/// The lines of one module in its stream.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    files: &'a [u8],
    /// The places where inlined functions begin, by their ids.
    inlinees: FxHashMap<u32, SourceLocation>,
    /// The imports from other modules, and the exports to them.
    imports: &'a [u8],
    exports: &'a [u8],
}

/// The subsections of `bytes`, each with its kind and contents.
fn subsections(bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut cursor = Cursor::new(bytes, 0, true);
    std::iter::from_fn(move || {
        let (kind, len) = (cursor.u32()?, cursor.u32()? as usize);
        let start = cursor.position();
        let contents = bytes.get(start..start.checked_add(len)?)?;
        cursor.seek((start + len).next_multiple_of(4));
        Some((kind, contents))
    })
}

impl<'a> Lines<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Self {
        let mut lines =
            Self { bytes, files: &[], inlinees: FxHashMap::default(), imports: &[], exports: &[] };
        for (kind, contents) in subsections(bytes) {
            match kind {
                FILES => lines.files = contents,
                IMPORTS => lines.imports = contents,
                EXPORTS => lines.exports = contents,
                INLINEE_LINES => {
                    lines.add_inlinees(contents);
                }
                _ => {}
            }
        }
        lines
    }

    fn add_inlinees(&mut self, bytes: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(bytes, 0, true);
        let has_more_files = cursor.u32()? == 1;
        loop {
            let (inlinee, file, line) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
            self.inlinees.insert(inlinee, SourceLocation { file, line, column: 0 });
            if has_more_files {
                let count = cursor.u32()?;
                cursor.skip(u64::from(count) * 4)?;
            }
        }
    }

    /// The place where an inlined function begins.
    pub(super) fn inlinee(&self, id: u32) -> Option<SourceLocation> {
        self.inlinees.get(&id).copied()
    }

    /// The meaning of an imported number: the offset of the other module's name in the program's strings, and
    /// the number in that module (`CodeView`, `DEBUG_S_CROSSSCOPEIMPORTS`). The bits of `number` are the
    /// index of the module in the list, and the index among the numbers that are imported from it.
    pub(super) fn imported(&self, number: u32) -> Option<(u32, u32)> {
        let (module, entry) = (number >> 20 & 0x7ff, number & 0xf_ffff);
        let mut cursor = Cursor::new(self.imports, 0, true);
        for _ in 0..module {
            let (_, count) = (cursor.u32()?, cursor.u32()?);
            cursor.skip(u64::from(count) * 4)?;
        }
        let (name, count) = (cursor.u32()?, cursor.u32()?);
        cursor.skip(u64::from(Some(entry).filter(|entry| *entry < count)?) * 4)?;
        Some((name, cursor.u32()?))
    }

    /// The numbers of this module that others import, and the corresponding numbers of the program
    /// (`DEBUG_S_CROSSSCOPEEXPORTS`).
    pub(super) fn exported(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pair = |[a, b, c, d, rest @ ..]: &[u8; 8]| {
            (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes(*rest))
        };
        self.exports.as_chunks().0.iter().map(pair)
    }

    /// The offset of a file's name in the program's strings.
    pub(super) fn file_name(&self, file: u32) -> Option<u32> {
        Cursor::new(self.files, file as usize, true).u32()
    }

    /// The offsets of the names of all files in the program's strings.
    pub(super) fn files(&self) -> impl Iterator<Item = u32> + '_ {
        let mut cursor = Cursor::new(self.files, 0, true);
        std::iter::from_fn(move || {
            let (name, checksum_len, _) = (cursor.u32()?, cursor.u8()?, cursor.u8()?);
            cursor.seek((cursor.position() + usize::from(checksum_len)).next_multiple_of(4));
            Some(name)
        })
    }

    /// The places of the code at each of `lookups`, which are sorted.
    pub(super) fn find(&self, program: &PdbProgram, lookups: &[u32]) -> Vec<Option<SourceLocation>> {
        let mut found = vec![None; lookups.len()];
        for (_, contents) in subsections(self.bytes).filter(|(kind, _)| *kind == LINES) {
            find_in(contents, program, lookups, &mut found);
        }
        found
    }
}

/// Parses the lines of one piece of code: its place and size, and then a block of lines for each of its
/// files.
fn find_in(
    bytes: &[u8],
    program: &PdbProgram,
    lookups: &[u32],
    found: &mut [Option<SourceLocation>],
) -> Option<()> {
    let mut cursor = Cursor::new(bytes, 0, true);
    let (offset, section, flags, size) = (cursor.u32()?, cursor.u16()?, cursor.u16()?, cursor.u32()?);
    let start = program.address(section, offset)?;
    let first = lookups.partition_point(|address| *address < start);
    let end = lookups.partition_point(|address| address.wrapping_sub(start) < size || *address < start);
    if first >= end {
        return None;
    }
    let mut lines = Vec::new();
    while read_block(&mut cursor, bytes, flags & 1 != 0, &mut lines).is_some() {}
    lines.sort_by_key(|(offset, _)| *offset);
    for (address, found) in lookups.iter().zip(found).take(end).skip(first) {
        let after = lines.partition_point(|(offset, _)| *offset <= address - start);
        *found = after.checked_sub(1).and_then(|index| lines.get(index)).map(|(_, place)| *place);
    }
    Some(())
}

fn read_block(
    cursor: &mut Cursor<'_>,
    bytes: &[u8],
    has_columns: bool,
    lines: &mut Vec<(u32, SourceLocation)>,
) -> Option<()> {
    let start = cursor.position();
    let (file, count, size) = (cursor.u32()?, cursor.u32()? as usize, cursor.u32()? as usize);
    let at = cursor.position();
    let entries = bytes.get(at..at.checked_add(count.checked_mul(8)?)?)?;
    let mut columns = Cursor::new(bytes, at + entries.len(), true);
    for [offset, flags] in entries.as_chunks().0.iter().map(|entry: &[u8; 8]| {
        let mut entry = Cursor::new(entry, 0, true);
        [entry.u32(), entry.u32()].map(Option::unwrap_or_default)
    }) {
        let column = if has_columns { columns.u32()? & 0xffff } else { 0 };
        lines.push((offset, SourceLocation { file, line: flags & 0x00ff_ffff, column }));
    }
    cursor.seek(start.checked_add(size).filter(|end| *end > start)?);
    Some(())
}
