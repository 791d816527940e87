//! Finds Go's function tables in a file, by the name of their section. If a file has no sections, or its
//! linker has merged them, the tables are found by their first bytes.

use super::memory::for_each_chunk;
use crate::section_contents::{SectionContents, SharedSource};
use nyquist_object::go::{TableHeader, Version};
use nyquist_object::{ByteSource, Elf};

/// The tables' own section. The second name is that in position-independent programs, whose pointers are
/// filled when they are loaded.
const NAMED: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// The sections into which C linkers merge them.
const MERGED: [&str; 2] = [".data.rel.ro", ".rodata"];

/// The sections that indicate a Go file.
const MARKS: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// Whether a file is a Go file, by the names of its sections.
pub(crate) fn is_go<S: ByteSource>(elf: &Elf<S>) -> bool {
    NAMED.iter().chain(&MARKS).any(|name| elf.section(name).is_some())
}

/// Whether a file has the tables, by the names of its sections.
pub(crate) fn has_tables<S: ByteSource>(elf: &Elf<S>) -> bool {
    let has_bytes = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| elf.section(name))
            .any(|section| section.has_bytes() && section.size > 0)
    };
    has_bytes(&NAMED) || is_go(elf) && has_bytes(&MERGED)
}

/// The tables: their bytes, and the contiguous bytes after them.
#[derive(Debug)]
pub(super) struct LocatedTables {
    pub(super) table: SectionContents,
    pub(super) address: u64,
    pub(super) header: TableHeader,
}

/// A piece of the file: its address in memory, its offset in the file, and its size.
#[derive(Clone, Copy)]
struct FilePiece {
    address: u64,
    offset: u64,
    size: u64,
}

/// Finds the tables of a file.
pub(super) fn locate(elf: &Elf<SharedSource>) -> Option<LocatedTables> {
    let named = sections(elf, &NAMED).into_iter().find_map(|piece| piece.tables_at(elf, 0));
    named.or_else(|| suspects(elf).into_iter().find_map(|piece| piece.search(elf)))
}

fn sections(elf: &Elf<SharedSource>, names: &[&str]) -> Vec<FilePiece> {
    let found = names.iter().filter_map(|name| elf.section(name)).filter(|section| section.has_bytes());
    let piece = found.map(|section| FilePiece {
        address: section.address.0,
        offset: section.offset.0,
        size: section.size,
    });
    piece.collect()
}

/// The pieces that may contain the tables.
fn suspects(elf: &Elf<SharedSource>) -> Vec<FilePiece> {
    if MARKS.iter().any(|name| elf.section(name).is_some()) {
        return sections(elf, &MERGED);
    }
    // The first section is the null one.
    if elf.sections().len() > 1 {
        return Vec::new();
    }
    let segments = elf.segments().iter();
    let piece = segments.map(|segment| FilePiece {
        address: segment.address.0,
        offset: segment.offset.0,
        size: segment.file_size,
    });
    piece.collect()
}

impl FilePiece {
    /// The tables that begin `at` bytes after the piece's start.
    fn tables_at(self, elf: &Elf<SharedSource>, at: u64) -> Option<LocatedTables> {
        let address = self.address.checked_add(at)?;
        let table =
            SectionContents::at(elf.source(), self.offset.checked_add(at)?, self.size.checked_sub(at)?);
        let header = TableHeader::parse(&table)?;
        Some(LocatedTables { table, address, header })
    }

    fn search(self, elf: &Elf<SharedSource>) -> Option<LocatedTables> {
        let mut places = Vec::new();
        for_each_chunk(&SectionContents::at(elf.source(), self.offset, self.size), |at, bytes| {
            let words = bytes.as_chunks::<8>().0.iter().enumerate();
            let found = words.filter(|(_, word)| begins_tables(**word));
            places.extend(found.map(|(index, _)| at + index as u64 * 8));
        });
        places.into_iter().find_map(|at| self.tables_at(elf, at))
    }
}

/// Whether the tables can begin with these bytes.
fn begins_tables([a, b, c, d, rest @ ..]: [u8; 8]) -> bool {
    Version::of_magic([a, b, c, d]).is_some() && matches!(rest, [0, 0, 1 | 2 | 4, 4 | 8])
}
