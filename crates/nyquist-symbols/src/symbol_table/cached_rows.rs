//! The cached rows of a large symbol table, of which a few hundred of a hundred thousand are needed. All
//! values that depend on other symbols are precomputed. The rows are in blocks, and only the needed blocks
//! are read.
//!
//! ```text
//! head  = number of rows (u64)  for each block: where its first row begins (u64)
//! block = rows, of which all blocks but the last have 128
//! row = where it begins (u64) its length (u32) where its name is in the symbol table's strings (u32) its reach (u32)
//! ```
//!
//! The file has the format of all files of a cache (`cache/block_file.rs`), and is never modified.

use super::row_table::{RowTable, SymbolRow};
use crate::cache::block_file::{CHECKSUM_LEN, FileBlocks, FileHead, HEADER, Magic, sealed_file};
use crate::section_contents::SharedSource;
use nyquist_object::{ByteSource as _, Cursor};
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// The magic number of every file. The last byte is the version of the layout.
const MAGIC: Magic = *b"\x00nyqfun\x01";

/// The minimum number of symbols of a table that is worth a file.
const MIN_SYMBOLS: u64 = 1 << 14;

/// The number of rows in all blocks but the last.
const PER_BLOCK: usize = 128;

const ROW_LEN: usize = 20;

/// The longest head that is written and accepted. That of 105,000 rows has 7 kB.
const MAX_HEAD: u32 = 4 << 20;

/// The most rows that a file has.
const MAX_ROWS: u64 = (MAX_HEAD as u64 / 8 - 1) * PER_BLOCK as u64;

/// The rows of a file, which are read when they are needed.
pub(super) struct CachedRows {
    file: FileBlocks,
    /// How many rows there are.
    len: usize,
    /// Where the first block begins.
    start: u64,
    blocks: Vec<RowBlock>,
}

struct RowBlock {
    /// Where its first row begins.
    first: u64,
    /// Its rows, after they were first needed.
    rows: OnceLock<Result<Box<RowTable>, DamagedBlock>>,
}

/// A damaged block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DamagedBlock;

/// The most bytes that the file of a table with this many symbols has. `None` if the table is not worth a
/// file, or has too many for one.
pub(super) fn largest_file(symbols: u64) -> Option<u64> {
    (MIN_SYMBOLS..=MAX_ROWS).contains(&symbols).then(|| {
        let blocks = symbols.div_ceil(PER_BLOCK as u64);
        (HEADER + 8) as u64 + blocks * (8 + CHECKSUM_LEN) as u64 + symbols * ROW_LEN as u64
    })
}

/// A file of all rows of a table.
pub(super) fn encode(table: &RowTable, seed: u64) -> Vec<u8> {
    let begins = (0..table.len()).step_by(PER_BLOCK);
    let mut head = (table.len() as u64).to_le_bytes().to_vec();
    let firsts = begins.clone().filter_map(|begin| table.row(begin));
    head.extend(firsts.flat_map(|first| first.start.to_le_bytes()));
    let blocks = begins.map(|begin| contents((begin..begin + PER_BLOCK).map_while(|index| table.row(index))));
    sealed_table(&head, blocks, seed)
}

/// The contents of a block after its checksum.
fn contents(rows: impl Iterator<Item = SymbolRow>) -> Vec<u8> {
    let mut contents = Vec::with_capacity(PER_BLOCK * ROW_LEN);
    for row in rows {
        contents.extend(row.start.to_le_bytes());
        contents.extend([row.len, row.name, row.reach].into_iter().flat_map(u32::to_le_bytes));
    }
    contents
}

/// A file with this head and these blocks, valid or not, with checksums that
/// `read_table` accepts.
pub(crate) fn sealed_table(head: &[u8], blocks: impl Iterator<Item = Vec<u8>>, seed: u64) -> Vec<u8> {
    sealed_file(MAGIC, seed, head, blocks)
}

impl CachedRows {
    /// Reads the head of a file, whose checksum has this `seed`. `None` if it is damaged.
    pub(super) fn open(source: &SharedSource, seed: u64) -> Option<Self> {
        let head = FileHead::read(source, MAGIC, seed, MAX_HEAD)?;
        let (len, firsts) = head.contents.split_first_chunk::<8>()?;
        let (len, (firsts, rest)) = (u64::from_le_bytes(*len), firsts.as_chunks::<8>());
        let len = usize::try_from(len).ok()?;
        let is_whole = len > 0 && rest.is_empty() && firsts.len() == len.div_ceil(PER_BLOCK);
        is_whole.then_some(())?;
        let block = |first: &[u8; 8]| RowBlock { first: u64::from_le_bytes(*first), rows: OnceLock::new() };
        let blocks: Vec<_> = firsts.iter().map(block).collect();
        let cached = Self { file: head.blocks(source), len, start: head.end(), blocks };
        let is_right = cached.place(cached.blocks.len() - 1).end == source.len()
            && cached.blocks.is_sorted_by_key(|block| block.first);
        is_right.then_some(cached)
    }

    /// The row with this index. `None` after the last one.
    pub(super) fn row(&self, index: usize) -> Result<Option<SymbolRow>, DamagedBlock> {
        match self.blocks.get(index / PER_BLOCK).filter(|_| index < self.len) {
            Some(_) => Ok(self.block(index / PER_BLOCK)?.row(index % PER_BLOCK)),
            None => Ok(None),
        }
    }

    /// How many rows begin at or before an address.
    pub(super) fn after(&self, address: u64) -> Result<usize, DamagedBlock> {
        let blocks = self.blocks.partition_point(|block| block.first <= address);
        match blocks.checked_sub(1) {
            Some(last) => Ok(last * PER_BLOCK + self.block(last)?.after(address)),
            None => Ok(0),
        }
    }

    /// The rows of a block.
    fn block(&self, number: usize) -> Result<&RowTable, DamagedBlock> {
        let block = self.blocks.get(number).ok_or(DamagedBlock)?;
        let rows = block.rows.get_or_init(|| self.read(number).map(Box::new).ok_or(DamagedBlock));
        rows.as_deref().map_err(|damaged| *damaged)
    }

    /// The range of a block in the file.
    fn place(&self, number: usize) -> Range<u64> {
        let begin = |number: usize| {
            let rows = number.saturating_mul(PER_BLOCK).min(self.len);
            self.start + (number * CHECKSUM_LEN + rows * ROW_LEN) as u64
        };
        begin(number)..begin(number + 1)
    }

    fn read(&self, number: usize) -> Option<RowTable> {
        let place = self.place(number);
        let len = (place.end - place.start) as usize;
        let bytes = self.file.read(number, (place.start, len))?;
        let contents = bytes.get(CHECKSUM_LEN..)?;
        let rows = contents.as_chunks::<ROW_LEN>().0.iter().map(row).collect::<Option<Vec<_>>>()?;
        let end = self.blocks.get(number + 1).map_or(u64::MAX, |next| next.first);
        let is_right = rows.is_sorted_by_key(|row| row.start)
            && rows.first()?.start == self.blocks.get(number)?.first
            && rows.last()?.start <= end;
        is_right.then(|| RowTable::of_rows(rows.into_iter()))
    }
}

fn row(bytes: &[u8; ROW_LEN]) -> Option<SymbolRow> {
    let mut cursor = Cursor::new(bytes, 0, true);
    let (start, len, name, reach) = (cursor.u64()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
    Some(SymbolRow { start, len, name, reach })
}

impl fmt::Debug for CachedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptRows({} of {} blocks)", self.len, self.blocks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{CachedTable, SymbolRows};
    use super::super::tests::crowded;
    use super::super::{SymbolTable, read_table};
    use super::*;
    use crate::Origin;
    use crate::section_contents::SectionContents;
    use crate::section_contents::tests::CountedBytes;
    use nyquist_object::Svma;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const SEED: u64 = 5;
    const SPAN: u64 = 1500;

    /// A table of `symbols` symbols.
    fn whole(symbols: u32, seed: u64) -> RowTable {
        RowTable::of(crowded(seed, symbols, SPAN))
    }

    fn table(rows: SymbolRows) -> SymbolTable {
        let strings =
            SectionContents::from((0..5000).map(|at| [b'_', b'f', 0][at * at % 7 % 3]).collect::<Vec<u8>>());
        SymbolTable { rows, has_underscores: false, strings, origin: Origin::SymbolTable, _charge: None }
    }

    /// Opens a table from its file. `remake` replaces a damaged block.
    fn opened(file: Vec<u8>, remake: impl Fn() -> RowTable + Send + Sync + 'static) -> Option<SymbolTable> {
        let cached = CachedRows::open(&(Arc::new(file) as SharedSource), SEED)?;
        Some(table(SymbolRows::Kept(CachedTable::new(cached, Box::new(remake)))))
    }

    /// The answers of a table for all addresses.
    fn answers(table: &SymbolTable) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
        let answer = |address| {
            let index = table.find(Svma(address))?;
            Some((index, table.extent(index, Svma(address)), table.function(index)))
        };
        (0..SPAN + 150).chain([u64::MAX]).map(answer).collect()
    }

    fn head_len(file: &[u8]) -> usize {
        HEADER + u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize
    }

    /// The contents of a file's blocks after their checksums.
    fn blocks_of(file: &[u8]) -> Vec<Vec<u8>> {
        let blocks = file[head_len(file)..].chunks(CHECKSUM_LEN + PER_BLOCK * ROW_LEN);
        blocks.map(|block| block[CHECKSUM_LEN..].to_vec()).collect()
    }

    #[test]
    fn kept_rows_say_what_all_symbols_say() {
        let (mut blocks, mut same_over_a_border, mut inside_over_a_border) = (0, 0, 0);
        let few = [1, 2, 3, 130, 200, 260, 3000, 4000].into_iter();
        // Sizes of a few blocks. For some of them the last block is full, or has one row.
        for (symbols, seed) in few.chain((140..1500).step_by(11)).zip(0..) {
            let whole = whole(symbols, seed);
            let cached =
                opened(encode(&whole, SEED), || panic!("nothing is damaged")).expect("it is as written");
            for border in (PER_BLOCK..whole.len()).step_by(PER_BLOCK) {
                let [last, first] = [border - 1, border].map(|index| whole.row(index).unwrap());
                blocks += 1;
                same_over_a_border += usize::from(last.start == first.start);
                inside_over_a_border += usize::from(last.furthest_end() > first.start);
            }
            for index in 0..whole.len() + 3 {
                assert_eq!(cached.rows.row(index), whole.row(index), "{index} of {symbols}");
            }
            assert_eq!(
                answers(&cached),
                answers(&table(SymbolRows::Read(whole))),
                "{symbols} symbols, {seed}"
            );
        }
        let seen = [blocks, same_over_a_border, inside_over_a_border];
        assert!(seen[0] > 100 && seen[1] > 5 && seen[2] > 50, "{seen:?}");
    }

    #[test]
    fn damage_costs_no_answer_and_one_remake() {
        let (whole, other) = (|| whole(900, 1), whole(900, 2));
        let file = encode(&whole(), SEED);
        let expected = answers(&table(SymbolRows::Read(whole())));
        let check = |damaged: Vec<u8>| {
            let made = Arc::new(AtomicU64::new(0));
            let count = made.clone();
            let remake = move || {
                count.fetch_add(1, Ordering::Relaxed);
                whole()
            };
            assert!(answers(&opened(damaged, remake).unwrap()) == expected);
            assert_eq!(made.load(Ordering::Relaxed), 1);
        };
        let blocks = head_len(&file);
        for at in (blocks..file.len()).step_by(41) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            check(damaged);
        }
        let second =
            blocks + CHECKSUM_LEN + PER_BLOCK * ROW_LEN..blocks + 2 * (CHECKSUM_LEN + PER_BLOCK * ROW_LEN);
        let other = encode(&other, SEED);
        let mut of_other = file.clone();
        of_other[second.clone()].copy_from_slice(&other[second]);
        check(of_other);
    }

    #[test]
    fn a_foreign_or_partial_file_is_not_opened() {
        let file = encode(&whole(300, 3), SEED);
        let opens =
            |file: &[u8], seed| CachedRows::open(&(Arc::new(file.to_vec()) as SharedSource), seed).is_some();
        assert!(opens(&file, SEED) && !opens(&file, SEED + 1));
        for len in 0..file.len() {
            assert!(!opens(&file[..len], SEED), "{len}");
        }
        assert!(!opens(&[file.as_slice(), &[0]].concat(), SEED));
        for at in 0..head_len(&file) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(!opens(&damaged, SEED), "{at}");
        }
        assert!(!opens(&encode(&RowTable::default(), SEED), SEED), "a table of nothing is none");
    }

    #[test]
    fn opening_reads_the_head_and_a_query_one_block() {
        let rows = (0..1000).map(|n| SymbolRow { start: 8 * n, len: 8, name: 1, reach: 8 });
        let bytes = encode(&RowTable::of_rows(rows), SEED);
        let head = head_len(&bytes) as u64;
        let counted = Arc::new(CountedBytes::new(bytes));
        let read = || counted.take_read();
        let cached = CachedRows::open(&(counted.clone() as SharedSource), SEED).unwrap();
        assert_eq!(read(), head);
        for _ in 0..2 {
            assert_eq!(cached.after(8 * 130), Ok(131));
            assert_eq!(cached.row(200).map(|row| row.map(|row| row.start)), Ok(Some(1600)));
        }
        assert_eq!(read(), (CHECKSUM_LEN + PER_BLOCK * ROW_LEN) as u64);
        assert_eq!((cached.row(1000), cached.row(usize::MAX)), (Ok(None), Ok(None)));
        assert_eq!(read(), 0);
    }

    #[test]
    fn nothing_that_is_sealed_panics() {
        let file = encode(&whole(420, 4), SEED);
        let (head, blocks) = (&file[HEADER..head_len(&file)], blocks_of(&file));
        assert!(sealed_table(head, blocks.iter().cloned(), SEED) == file);
        let addresses: Vec<u64> = (0..SPAN + 100).step_by(61).chain([u64::MAX]).collect();
        let read = |file| drop(read_table(file, SEED, b"\0name\0other".to_vec(), &addresses));
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            for at in 0..head.len() {
                let mut damaged = head.to_vec();
                damaged[at] = value;
                read(sealed_table(&damaged, blocks.iter().cloned(), SEED));
            }
            for at in 0..blocks[1].len() {
                let mut damaged = blocks.clone();
                damaged[1][at] = value;
                read(sealed_table(head, damaged.into_iter(), SEED));
            }
        }
    }

    #[test]
    fn a_file_is_no_larger_than_its_symbols_imply() {
        for rows in [1_u64 << 14, (1 << 14) + 1, 20_000] {
            let row = |n| SymbolRow { start: n, len: 1, name: 1, reach: 1 };
            let file = encode(&RowTable::of_rows((0..rows).map(row)), SEED);
            assert_eq!(largest_file(rows), Some(file.len() as u64));
        }
        assert_eq!([largest_file(1), largest_file(MAX_ROWS + 1)], [None; 2]);
        assert!(HEADER as u64 + 8 + MAX_ROWS / PER_BLOCK as u64 * 8 <= u64::from(MAX_HEAD) + HEADER as u64);
    }
}
