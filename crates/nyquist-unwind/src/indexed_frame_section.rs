//! A large `.eh_frame`, of which parts are read when walks need them. The table in its header states where
//! the entry of each function is. The program's own unwinder uses it, too (Linux Standard Base 5, section
//! 10.6.2).

use crate::Damage;
use crate::cfi::{FrameSection, HeaderTable, SectionKind};
use crate::code::code_ranges;
use crate::compile::{CodePiece, FdeCompiler};
use crate::lazy_uncovered_code::ReadAll;
use nyquist_object::{ByteSource, Elf};
use std::fmt;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The sizes of sections that are read in parts. Reading a smaller section takes less time than reading its
/// header's table.
const SIZES: Range<u64> = 1 << 20..1 << 30;

/// The minimum number of bytes that are read in one call: a page.
const BLOCK: usize = 4096;

/// Entries of neighbouring functions are mostly neighbours. Entries within this distance are read together,
/// including the bytes between them.
const TOGETHER: usize = 64 << 10;

/// The most bytes of an entry. If an entry is larger, the whole section is read.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// The most bytes before the fields that state the size of an entry and its common information.
const MAX_HEADER_LEN: usize = 20;

/// Entries by the addresses at which they begin to hold, and the part of their section that was read.
#[derive(Debug)]
pub(crate) struct IndexedFrameSection {
    image_base: u64,
    /// Relative addresses of the module's code.
    code: Vec<Range<u32>>,
    /// By address.
    entries: Vec<IndexEntry>,
    excerpt: Mutex<SectionExcerpt>,
    /// The pieces of the whole section, if it was read.
    all: OnceLock<Vec<CodePiece>>,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexEntry {
    /// The relative address at which it begins to hold.
    start: u32,
    /// Its offset in the section.
    offset: u32,
}

/// A section whose blocks are read when they are needed. Unread blocks are zero.
struct SectionExcerpt {
    section: FrameSection,
    /// Whether a block was read.
    is_read: Vec<bool>,
    read: Box<ReadSection>,
}

/// Reads bytes of the section, from an offset in it on.
type ReadSection = dyn Fn(u64, &mut [u8]) -> io::Result<()> + Send + Sync;

impl IndexedFrameSection {
    /// The entries of an ELF file's `.eh_frame`. `None` if it has to be read as a whole. This is so if it is
    /// small or in no file, if other unwind information exists, or if its header has no table of the common
    /// form.
    pub(crate) fn of_elf<S: ByteSource + Send + Sync + 'static>(elf: &Arc<Elf<S>>) -> Option<Self> {
        let is_alone = elf.section(".debug_frame").is_none() && elf.section(".zdebug_frame").is_none();
        let is_large = elf.section(".eh_frame").is_some_and(|section| SIZES.contains(&section.size));
        if is_alone && is_large { Self::open(elf) } else { None }
    }

    /// The same for a section of any size, even if other unwind information exists.
    pub(crate) fn open<S: ByteSource + Send + Sync + 'static>(elf: &Arc<Elf<S>>) -> Option<Self> {
        let section = elf.section(".eh_frame").filter(|section| section.has_bytes())?;
        let is_there = section.offset.0.checked_add(section.size)? <= elf.source().len();
        if elf.is_compressed(section) || !is_there {
            return None;
        }
        let (file, offset) = (elf.clone(), section.offset.0);
        let read = move |at, buffer: &mut [u8]| file.source().read_exact_at(offset + at, buffer);
        let address_of = |name| elf.section(name).map(|section| section.address.0);
        let section = FrameSection {
            kind: SectionKind::EhFrame,
            bytes: vec![0; usize::try_from(section.size).ok()?],
            address: section.address.0,
            text: address_of(".text"),
            got: address_of(".got"),
        };
        let header = elf.unwind_header()?;
        let bytes = elf.source().read_range(header.offset.0, header.file_size).ok()?;
        let table = HeaderTable::parse(&bytes, header.address)?;
        let code = code_ranges(elf).into_iter().map(|code| code.range).collect();
        let entries = index(&table, &section, elf.image_base().0)?;
        let excerpt = Mutex::new(SectionExcerpt::new(section, Box::new(read)));
        Some(Self { image_base: elf.image_base().0, code, entries, excerpt, all: OnceLock::new() })
    }

    /// The addresses at which entries begin to hold, ascending.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.start)
    }

    /// Passes the pieces that begin in a range of addresses to `take`, by address, with the section of their
    /// entries.
    pub(crate) fn beginning_in<T>(
        &self,
        starts: RangeInclusive<u32>,
        damage: &mut Damage,
        take: impl FnOnce(&[CodePiece], &[FrameSection], &mut Damage) -> T,
    ) -> T {
        let begin = self.entries.partition_point(|entry| entry.start < *starts.start());
        let end = self.entries.partition_point(|entry| entry.start <= *starts.end());
        let mut excerpt = self.excerpt();
        let pieces = self.pieces(begin..end, &mut excerpt, damage).unwrap_or_else(|| {
            let all = self.all_of(&mut excerpt, damage);
            let begin = all.partition_point(|piece| piece.start < *starts.start());
            let end = all.partition_point(|piece| piece.start <= *starts.end());
            all.get(begin..end).unwrap_or_default().to_vec()
        });
        take(&pieces, std::slice::from_ref(&excerpt.section), damage)
    }

    /// The last piece that begins at or before a relative address.
    pub(crate) fn piece_before(&self, address: u32) -> Option<CodePiece> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let (mut excerpt, mut damage) = (self.excerpt(), Damage::default());
        let pieces = self.pieces(after.checked_sub(1)?..after, &mut excerpt, &mut damage);
        pieces.map_or_else(
            || {
                let all = self.all_of(&mut excerpt, &mut damage);
                let after = all.partition_point(|piece| piece.start <= address);
                all.get(after.checked_sub(1)?).copied()
            },
            |pieces| pieces.last().copied(),
        )
    }

    /// The gap between pieces that a relative address is in. Without a piece on one side, the gap begins at 0
    /// or ends at the last address. `None` if the address is described.
    pub(crate) fn gap_around(&self, address: u32) -> Result<Option<Range<u32>>, ReadAll> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let places = after.saturating_sub(1)..self.entries.len().min(after + 1);
        let (mut excerpt, count) = (self.excerpt(), places.len());
        let pieces = self.pieces(places, &mut excerpt, &mut Damage::default());
        let pieces = pieces.filter(|pieces| pieces.len() == count).ok_or(ReadAll)?;
        let (before, behind) = pieces.split_at(after.min(1));
        let start = before.first().map_or(0, |piece| piece.end);
        let end = behind.first().map_or(u32::MAX, |piece| piece.start);
        Ok((start <= address).then_some(start..end))
    }

    /// Passes the section and the offset of a piece's entry to `take`.
    pub(crate) fn with_entry<T>(&self, offset: usize, take: impl FnOnce(&FrameSection, usize) -> T) -> T {
        let excerpt = self.excerpt();
        take(&excerpt.section, offset)
    }

    /// All pieces, by address. Reads the whole section.
    pub(crate) fn all_pieces(&self) -> &[CodePiece] {
        self.all_of(&mut self.excerpt(), &mut Damage::default())
    }

    /// How many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        let read = self.excerpt().is_read.iter().filter(|is_read| **is_read).count();
        let all = self.all.get().map_or(0, |all| size_of_val(&**all));
        size_of_val(&*self.entries) + all + read * BLOCK
    }

    fn excerpt(&self) -> MutexGuard<'_, SectionExcerpt> {
        self.excerpt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compiler<'a>(&'a self, damage: &'a mut Damage) -> FdeCompiler<'a> {
        FdeCompiler { image_base: self.image_base, code: &self.code, damage }
    }

    /// The pieces of the whole section. If it was not read before, its damage is added to `damage`.
    fn all_of(&self, excerpt: &mut SectionExcerpt, damage: &mut Damage) -> &[CodePiece] {
        self.all.get_or_init(|| {
            excerpt.fetch(0..excerpt.section.bytes.len());
            self.compiler(damage).section_pieces(&excerpt.section)
        })
    }

    /// The pieces of entries that follow each other, by address. `None` if the whole section has to be read,
    /// because the table is not as expected. For example, the table has one entry for each address, and BOLT
    /// lists an entry without code in place of one that describes a function. If descriptions overlap or are
    /// huge, reading them one by one could take very long.
    fn pieces(
        &self,
        places: Range<usize>,
        excerpt: &mut SectionExcerpt,
        damage: &mut Damage,
    ) -> Option<Vec<CodePiece>> {
        if self.all.get().is_some() {
            return None;
        }
        let next = self.entries.get(places.end).map_or(u32::MAX, |next| next.start);
        let entries = self.entries.get(places).unwrap_or_default();
        let mut offsets: Vec<usize> = entries.iter().map(|entry| entry.offset as usize).collect();
        offsets.sort_unstable();
        if !excerpt.fetch_descriptions(&offsets) {
            return None;
        }
        let mut found = Damage::default();
        let mut pieces = self.compiler(&mut found).pieces_at(&excerpt.section, &offsets)?;
        // An entry with a wrong address in the table would describe code that belongs to other entries.
        pieces.retain(|piece| entries.binary_search_by_key(&piece.start, |entry| entry.start).is_ok());
        let is_whole = pieces.last().is_none_or(|last| last.end <= next);
        is_whole.then(|| damage.merge(found)).map(|()| pieces)
    }
}

/// The entries of a header's table. `None` if they are not in order, or if some are not in the section.
fn index(table: &HeaderTable<'_>, section: &FrameSection, image_base: u64) -> Option<Vec<IndexEntry>> {
    if table.section != section.address {
        return None;
    }
    let entry = |(start, entry): (u64, u64)| {
        let start = u32::try_from(start.checked_sub(image_base)?).ok()?;
        let offset = entry.checked_sub(section.address).filter(|&at| at < section.bytes.len() as u64)?;
        Some(IndexEntry { start, offset: u32::try_from(offset).ok()? })
    };
    let entries: Vec<IndexEntry> = table.entries().map(entry).collect::<Option<_>>()?;
    let is_in_order = entries.is_sorted_by(|entry, next| entry.start < next.start);
    (is_in_order && !entries.is_empty()).then_some(entries)
}

impl SectionExcerpt {
    fn new(section: FrameSection, read: Box<ReadSection>) -> Self {
        let is_read = vec![false; section.bytes.len().div_ceil(BLOCK)];
        Self { section, is_read, read }
    }

    /// Reads the unread blocks of a range. Blocks that cannot be read stay zero, which means no entry.
    #[inline]
    fn fetch(&mut self, range: Range<usize>) {
        let blocks = range.start / BLOCK..range.end.min(self.section.bytes.len()).div_ceil(BLOCK);
        if self.is_read.get(blocks.clone()).is_some_and(|blocks| blocks.iter().any(|is_read| !is_read)) {
            self.fetch_blocks(blocks);
        }
    }

    #[cold]
    fn fetch_blocks(&mut self, blocks: Range<usize>) {
        let (len, mut block, end) = (self.section.bytes.len(), blocks.start, blocks.end);
        while block < end {
            let missing = self.is_read.get(block..end).unwrap_or_default();
            let missing = missing.iter().take_while(|is_read| !**is_read).count();
            if missing > 0 {
                let (start, end) = (block * BLOCK, ((block + missing) * BLOCK).min(len));
                if let Some(bytes) = self.section.bytes.get_mut(start..end)
                    && (self.read)(start as u64, bytes).is_err()
                {
                    bytes.fill(0);
                }
                self.is_read.iter_mut().skip(block).take(missing).for_each(|is_read| *is_read = true);
            }
            block += missing.max(1);
        }
    }

    /// Reads the descriptions at ascending offsets. If they are near each other, one call also reads the
    /// bytes between them. Returns whether none overlaps another one, and none is huge.
    fn fetch_descriptions(&mut self, offsets: &[usize]) -> bool {
        let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return true };
        if last - first <= TOGETHER {
            self.fetch(first..last);
        }
        let mut common = None;
        let are_small = offsets.iter().all(|&offset| self.fetch_description(offset, &mut common));
        let end = |offset| self.section.reach(offset).map_or(offset, |(end, _)| end);
        are_small && offsets.is_sorted_by(|&offset, &next| end(offset) <= next)
    }

    /// Reads a description, and its common information if that differs from the last description's. Returns
    /// whether neither is huge.
    fn fetch_description(&mut self, offset: usize, last: &mut Option<usize>) -> bool {
        let (is_small, common) = self.fetch_entry(offset);
        match common.filter(|_| common != *last) {
            None => is_small,
            Some(common) => {
                *last = Some(common);
                is_small && self.fetch_entry(common).0
            }
        }
    }

    /// Reads an entry, if it is not huge. Returns whether it was read, and the offset of the common
    /// information that it refers to.
    fn fetch_entry(&mut self, offset: usize) -> (bool, Option<usize>) {
        self.fetch(offset..offset.saturating_add(MAX_HEADER_LEN));
        let Some((end, common)) = self.section.reach(offset) else { return (true, None) };
        let is_small = end - offset <= MAX_ENTRY_BYTES;
        if is_small {
            self.fetch(offset..end);
        }
        (is_small, common)
    }
}

impl fmt::Debug for SectionExcerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = self.is_read.iter().filter(|is_read| **is_read).count();
        write!(f, "Excerpt({read} of {} blocks)", self.is_read.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;
    use crate::call_frame_info::{CallFrameInfo, ReadFrames};
    use nyquist_object::FileSource;
    use std::fs::File;

    fn this_program() -> Elf<FileSource> {
        Elf::open(FileSource::new(File::open(std::env::current_exe().unwrap()).unwrap())).unwrap()
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn reading_piece_by_piece_gives_the_same() {
        let CallFrameInfo::Read(ReadFrames { pieces, sections }) =
            Module::from_elf(&this_program()).unwrap().frames
        else {
            panic!("it is read at once")
        };
        let indexed = IndexedFrameSection::open(&Arc::new(this_program())).unwrap();
        let is_unread = |indexed: &IndexedFrameSection| indexed.excerpt().is_read.contains(&false);
        for piece in pieces.iter().rev().step_by(pieces.len() / 3) {
            for address in [piece.start, piece.end - 1] {
                assert_eq!(indexed.piece_before(address), Some(*piece), "{address:#x}");
            }
        }
        assert!(is_unread(&indexed), "a few entries are requested, and all of them are read");
        for starts in [0..=u32::MAX, 0..=pieces[0].start, pieces[9].start..=pieces[200].start] {
            let expected: Vec<_> =
                pieces.iter().filter(|piece| starts.contains(&piece.start)).copied().collect();
            let mut damage = Damage::default();
            let found = indexed.beginning_in(starts, &mut damage, |pieces, _, _| pieces.to_vec());
            assert_eq!((found, damage), (expected, Damage::default()));
        }
        assert_eq!(indexed.piece_before(pieces[0].start - 1), None);
        assert_eq!(indexed.all_pieces(), pieces);
        assert!(!is_unread(&indexed));
        assert_eq!(indexed.excerpt().section.bytes, sections[0].bytes);
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn an_index_that_is_wrong_is_not_believed() {
        let check = |change: &dyn Fn(&mut Vec<IndexEntry>), expected: Option<u32>| {
            let mut indexed = IndexedFrameSection::open(&Arc::new(this_program())).unwrap();
            let requested = indexed.entries[7].start;
            change(&mut indexed.entries);
            assert_eq!(
                indexed.piece_before(requested).map(|piece| piece.start),
                expected.map(|at| requested - at)
            );
        };
        check(&|_| {}, Some(0));
        // The entry of another function; the middle of an entry; the last bytes; common information.
        check(&|entries| entries[7].offset = entries[8].offset, None);
        check(&|entries| entries[7].offset += 2, None);
        check(&|entries| entries[7].offset = u32::MAX, None);
        check(&|entries| entries[7].offset = 0, None);
    }

    #[test]
    fn a_table_that_cannot_be_right_is_no_index() {
        let section = || section_of(vec![0; 0x100]);
        let check = |entries: &[(i32, i32)], is_index: bool| {
            let numbers = entries.iter().flat_map(|&(start, entry)| [start, entry]);
            let words: Vec<i32> =
                [0x2000 - 0x1004, entries.len() as i32].into_iter().chain(numbers).collect();
            let bytes: Vec<u8> = words.into_iter().flat_map(i32::to_le_bytes).collect();
            let header = [&[1, 0x1b, 0x03, 0x3b][..], &bytes].concat();
            let table = HeaderTable::parse(&header, nyquist_object::Svma(0x1000)).unwrap();
            assert_eq!(index(&table, &section(), 0x500).is_some(), is_index, "{entries:x?}");
        };
        check(&[(-0x800, 0x1000), (-0x7ff, 0x1040), (0x10, 0x10ff)], true);
        check(&[], false);
        check(&[(0x10, 0x1000), (0x10, 0x1040)], false);
        check(&[(0x10, 0x1000), (-0x800, 0x1040)], false);
        check(&[(-0xb01, 0x1000)], false);
        check(&[(0, 0xfff)], false);
        check(&[(0, 0x1100)], false);
    }

    /// A section whose entries have the given code and number of bytes of instructions, and its table, which
    /// lists some of them. The entry `goes_on` extends to the end of the section, and contains the entries
    /// after it.
    fn made(
        functions: &[(u64, u64, usize)],
        listed: &[usize],
        goes_on: Option<usize>,
    ) -> (Vec<u8>, IndexedFrameSection) {
        let entry = |body: &[u8]| [&(body.len() as u32).to_le_bytes()[..], body].concat();
        let common = [&[0; 4][..], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0]].concat();
        let (mut bytes, mut offsets) = (entry(&common), Vec::new());
        for &(start, len, instructions) in functions {
            offsets.push(bytes.len());
            let distance = bytes.len() as u32 + 4;
            let code = [start.to_le_bytes(), len.to_le_bytes()].concat();
            bytes.extend(entry(&[&distance.to_le_bytes()[..], &code, &vec![0; instructions]].concat()));
        }
        if let Some(offset) = goes_on.map(|number| offsets[number]) {
            let len = (bytes.len() - offset - 4) as u32;
            bytes[offset..offset + 4].copy_from_slice(&len.to_le_bytes());
        }
        let entries =
            listed.iter().map(|&n| IndexEntry { start: functions[n].0 as u32, offset: offsets[n] as u32 });
        let entries = entries.collect();
        let section = FrameSection { bytes: vec![0; bytes.len()], ..section_of(Vec::new()) };
        let file = bytes.clone();
        let read = move |at: u64, buffer: &mut [u8]| {
            buffer.copy_from_slice(&file[at as usize..][..buffer.len()]);
            Ok(())
        };
        let excerpt = Mutex::new(SectionExcerpt::new(section, Box::new(read)));
        let code = std::iter::once(0..0x10000).collect();
        (bytes, IndexedFrameSection { image_base: 0, code, entries, excerpt, all: OnceLock::new() })
    }

    fn section_of(bytes: Vec<u8>) -> FrameSection {
        FrameSection { kind: SectionKind::EhFrame, bytes, address: 0x2000, text: None, got: None }
    }

    #[test]
    fn what_the_table_omits_is_read_from_the_section() {
        let check = |functions: &[(u64, u64, usize)], listed: &[usize], goes_on, by_table: bool| {
            let (bytes, indexed) = made(functions, listed, goes_on);
            let pieces = indexed.compiler(&mut Damage::default()).section_pieces(&section_of(bytes));
            let before = |address| pieces.iter().rfind(|piece| piece.start <= address).copied();
            for address in (0..0x600).step_by(0x10) {
                // Each look-up uses a fresh section, of which nothing was read.
                let (_, indexed) = made(functions, listed, goes_on);
                let begin = indexed.beginning_in(0..=address, &mut Damage::default(), |pieces, _, _| {
                    pieces.iter().rfind(|piece| piece.start <= address).copied()
                });
                assert_eq!(begin, before(address), "{functions:x?} up to {address:#x}");
                assert_eq!(indexed.piece_before(address), before(address), "{functions:x?} at {address:#x}");
            }
            let (_, indexed) = made(functions, listed, goes_on);
            indexed.beginning_in(0..=0x600, &mut Damage::default(), |_, _, _| ());
            assert_eq!(indexed.all.get().is_none(), by_table, "{functions:x?}");
        };
        let apart = [(0x100, 0x100, 0), (0x200, 0x50, 4), (0x300, 0x100, 0)];
        check(&apart, &[0, 1, 2], None, true);
        // As BOLT does, the table lists an entry without code in place of one with code.
        check(&[(0x100, 0, 0), (0x100, 0x80, 0), (0x300, 0x100, 0)], &[0, 2], None, false);
        check(&[(0x100, 0x200, 0), (0x180, 0x20, 0), (0x400, 0x10, 0)], &[0, 1, 2], None, false);
        check(&[(0x100, 0x20, MAX_ENTRY_BYTES), (0x200, 0x20, 0)], &[0, 1], None, false);
    }

    #[test]
    fn nested_descriptions_are_not_read_one_by_one() {
        let functions = [(0x100, 0x100, 0), (0x200, 0x50, 4), (0x300, 0x100, 0)];
        let (_, indexed) = made(&functions, &[0, 1, 2], Some(1));
        indexed.beginning_in(0..=0x250, &mut Damage::default(), |pieces, _, _| assert_eq!(pieces.len(), 2));
        assert!(indexed.all.get().is_none(), "so far there is only the first of them");
        indexed.beginning_in(0..=0x600, &mut Damage::default(), |pieces, _, _| assert_eq!(pieces.len(), 2));
        assert!(indexed.all.get().is_some());
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn no_bytes_do_harm() {
        for seed in 1..100_u64 {
            let mut state = seed;
            let mut below = move |limit: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % limit
            };
            let file = this_program();
            let (offset, rarity) = (file.section(".eh_frame").unwrap().offset.0, 1 + below(1 << (seed % 10)));
            let mut indexed = IndexedFrameSection::open(&Arc::new(this_program())).unwrap();
            let change = Mutex::new(below);
            indexed.excerpt.get_mut().unwrap().read = Box::new(move |at, buffer: &mut [u8]| {
                file.source().read_exact_at(offset + at, buffer)?;
                let mut below = change.lock().unwrap();
                for byte in buffer {
                    if below(rarity) == 0 {
                        *byte = below(256) as u8;
                    }
                }
                Ok(())
            });
            let starts: Vec<u32> = indexed.starts().step_by(97).collect();
            for pair in starts.windows(2) {
                let take = |pieces: &[CodePiece], _: &[FrameSection], _: &mut Damage| {
                    assert!(pieces.is_sorted_by(|a, b| a.end <= b.start && a.start < a.end));
                };
                indexed.beginning_in(pair[0]..=pair[1], &mut Damage::default(), take);
                let piece = indexed.piece_before(pair[1]);
                assert!(piece.is_none_or(|piece| piece.start <= pair[1]));
                indexed.with_entry(pair[0] as usize, |_, _| ());
            }
            indexed.all_pieces();
        }
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn bytes_that_cannot_be_read_are_no_entries() {
        let mut indexed = IndexedFrameSection::open(&Arc::new(this_program())).unwrap();
        let requested = indexed.entries[7].start;
        indexed.excerpt.get_mut().unwrap().read = Box::new(|_, buffer: &mut [u8]| {
            buffer.fill(1);
            Err(io::ErrorKind::UnexpectedEof.into())
        });
        assert_eq!(indexed.piece_before(requested), None);
        assert!(indexed.excerpt().section.bytes.iter().all(|byte| *byte == 0));
    }
}
