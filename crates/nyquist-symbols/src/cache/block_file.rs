//! The common format of all files of a cache. Each kind of file defines the contents of its parts.
//!
//! ```text
//! part  = magic (8 bytes)  length of contents (u32)  checksum of contents (u64)  contents
//! block = checksum of contents (u64)  contents
//! ```
//!
//! Numbers are little-endian. A file that grows is a sequence of parts. A file that is read in pieces is one
//! part, its head, and then blocks. The head has the places and lengths of the blocks. The checksum of a part
//! begins with a seed. That of a block begins with the checksum of the head and the block's number, so a
//! block is valid only in its own file and place.

use super::checksum::checksum;
use crate::section_contents::SharedSource;
use nyquist_object::{ByteSource, Cursor};

/// The first bytes of a part, which name the kind of its contents and their layout.
pub(crate) type Magic = [u8; 8];

/// The size of a checksum, with which a block begins.
pub(crate) const CHECKSUM_LEN: usize = 8;

/// The size of a part's header.
pub(crate) const HEADER: usize = size_of::<Magic>() + 4 + CHECKSUM_LEN;

/// A part with these contents, valid or not. `None` if they are longer than a part can be.
pub(crate) fn seal(magic: Magic, seed: u64, contents: &[u8]) -> Option<Vec<u8>> {
    let mut part = Vec::with_capacity(HEADER + contents.len());
    part.extend_from_slice(&magic);
    part.extend_from_slice(&u32::try_from(contents.len()).ok()?.to_le_bytes());
    part.extend_from_slice(&checksum(seed, contents).to_le_bytes());
    part.extend_from_slice(contents);
    Some(part)
}

/// The contents of the part at the beginning of `bytes`, and its size. `None` if it is damaged.
pub(crate) fn unseal(bytes: &[u8], magic: Magic, seed: u64) -> Option<(&[u8], usize)> {
    let (len, sum) = parse_header(bytes.get(..HEADER)?, magic)?;
    let size = HEADER.checked_add(len as usize)?;
    let contents = bytes.get(HEADER..size)?;
    (checksum(seed, contents) == sum).then_some((contents, size))
}

/// How many bytes had to be read to detect that there is no valid part here.
pub(crate) fn claimed_size(bytes: &[u8], magic: Magic) -> usize {
    let len = bytes.strip_prefix(&magic).and_then(|rest| rest.first_chunk::<4>());
    let len = len.map_or(0, |len| u32::from_le_bytes(*len) as usize);
    HEADER.saturating_add(len).min(bytes.len())
}

/// The length and the checksum of the contents, from the bytes before them.
fn parse_header(header: &[u8], magic: Magic) -> Option<(u32, u64)> {
    let mut cursor = Cursor::new(header.strip_prefix(&magic)?, 0, true);
    Some((cursor.u32()?, cursor.u64()?))
}

/// A file with this head and these blocks, valid or not, with valid checksums. Empty if the head is longer
/// than a part can be.
pub(crate) fn sealed_file<B: AsRef<[u8]>>(
    magic: Magic,
    seed: u64,
    head: &[u8],
    blocks: impl Iterator<Item = B>,
) -> Vec<u8> {
    let Some(mut file) = seal(magic, seed, head) else { return Vec::new() };
    let head_sum = checksum(seed, head);
    for (number, contents) in blocks.enumerate() {
        file.extend(block_checksum(head_sum, number, contents.as_ref()).to_le_bytes());
        file.extend(contents.as_ref());
    }
    file
}

/// The head of a file.
pub(crate) struct FileHead {
    pub(crate) contents: Vec<u8>,
    sum: u64,
}

impl FileHead {
    /// Reads a head of at most `max` bytes. `None` if it is damaged.
    pub(crate) fn read(source: &impl ByteSource, magic: Magic, seed: u64, max: u32) -> Option<Self> {
        let (len, sum) = parse_header(&source.read_range(0, HEADER as u64).ok()?, magic)?;
        (len <= max).then_some(())?;
        let contents = source.read_range(HEADER as u64, len.into()).ok()?;
        (checksum(seed, &contents) == sum).then_some(Self { contents, sum })
    }

    /// The end of the head.
    pub(crate) fn end(&self) -> u64 {
        (HEADER + self.contents.len()) as u64
    }

    /// The blocks of the file with this head.
    pub(crate) fn blocks(&self, source: &SharedSource) -> FileBlocks {
        FileBlocks { source: source.clone(), head_sum: self.sum }
    }
}

/// The blocks of a file, which are read one by one.
pub(crate) struct FileBlocks {
    source: SharedSource,
    head_sum: u64,
}

impl FileBlocks {
    /// A block of `len` bytes, including its checksum. It must have existed when the file was opened. `None`
    /// if it is damaged.
    pub(crate) fn read(&self, number: usize, (at, len): (u64, usize)) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.source.read_exact_at(at, &mut bytes).ok()?;
        let (sum, contents) = bytes.split_first_chunk::<CHECKSUM_LEN>()?;
        let is_whole = block_checksum(self.head_sum, number, contents) == u64::from_le_bytes(*sum);
        is_whole.then_some(bytes)
    }
}

fn block_checksum(head_sum: u64, number: usize, contents: &[u8]) -> u64 {
    checksum(head_sum.wrapping_add(number as u64), contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const MAGIC: Magic = *b"\x00testing";
    const SEED: u64 = 3;

    /// A file of two blocks of four bytes each.
    fn file(head: &[u8]) -> Vec<u8> {
        sealed_file(MAGIC, SEED, head, [b"some", b"more"].into_iter())
    }

    #[test]
    fn a_block_counts_in_its_place_of_its_file_alone() {
        let source: SharedSource = Arc::new(file(b"head"));
        let head = FileHead::read(&source, MAGIC, SEED, 4).unwrap();
        assert_eq!((head.contents.as_slice(), source.len()), (&b"head"[..], head.end() + 24));
        let blocks = head.blocks(&source);
        let read = |blocks: &FileBlocks, number: usize, place: u64| {
            blocks.read(number, (head.end() + 12 * place, 12)).map(|block| block[CHECKSUM_LEN..].to_vec())
        };
        assert_eq!(read(&blocks, 1, 1).as_deref(), Some(&b"more"[..]));
        assert_eq!(
            [(0, 1), (1, 0), (2, 2)].map(|(number, place)| read(&blocks, number, place)),
            [const { None }; 3]
        );
        let other = FileHead::read(&file(b"hand").as_slice(), MAGIC, SEED, 4).unwrap();
        assert_eq!(read(&other.blocks(&source), 1, 1), None);
    }

    #[test]
    fn a_head_has_its_kind_and_a_believable_length() {
        let file = file(b"head");
        let is_read = |magic, seed, max| FileHead::read(&file.as_slice(), magic, seed, max).is_some();
        assert!(is_read(MAGIC, SEED, 4));
        assert!(
            !is_read(*b"\x00testinh", SEED, 4) && !is_read(MAGIC, SEED + 1, 4) && !is_read(MAGIC, SEED, 3)
        );
    }
}
