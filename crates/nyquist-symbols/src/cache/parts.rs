//! The parts of a kept file of which not all is read at once: a head behind the file's magic, with its length and a checksum, and
//! blocks, each with a checksum of its own that begins with that of the head, so that no block counts in another file or place.

use super::checksum::checksum;
use nyquist_object::{ByteSource, Cursor};

/// What a file begins with. The last byte is the number of its layout.
pub(crate) type Magic = [u8; 8];

/// The bytes of a checksum, which a block begins with.
pub(crate) const CHECKSUM_LEN: usize = 8;

/// The bytes before the head: the magic, the head's length and its checksum.
pub(crate) const HEADER: usize = size_of::<Magic>() + 4 + CHECKSUM_LEN;

/// The beginning of a file with this head, whatever it is, as [`read_head`] takes it for whole.
pub(crate) fn sealed_head(magic: Magic, seed: u64, head: &[u8]) -> Vec<u8> {
    let sum = checksum(seed, head);
    [&magic[..], &(head.len() as u32).to_le_bytes(), &sum.to_le_bytes(), head].concat()
}

/// A file's head of at most `max` bytes, and its checksum; `None` where it is not as it was written.
pub(crate) fn read_head(
    source: &impl ByteSource,
    magic: Magic,
    seed: u64,
    max: u32,
) -> Option<(Vec<u8>, u64)> {
    let header = source.read_range(0, HEADER as u64).ok()?;
    let mut cursor = Cursor::new(header.strip_prefix(&magic)?, 0, true);
    let (len, sum) = (cursor.u32()?, cursor.u64()?);
    (len <= max).then_some(())?;
    let head = source.read_range(HEADER as u64, len.into()).ok()?;
    (checksum(seed, &head) == sum).then_some((head, sum))
}

/// Adds a block to a file whose head has this checksum.
pub(crate) fn add_block(file: &mut Vec<u8>, head_sum: u64, number: usize, contents: &[u8]) {
    file.extend(block_checksum(head_sum, number, contents).to_le_bytes());
    file.extend(contents);
}

/// A block with its checksum, of so many bytes, which must have been there when the file was opened; `None` where it is not as it was
/// written.
pub(crate) fn read_block(
    source: &impl ByteSource,
    (at, len): (u64, usize),
    head_sum: u64,
    number: usize,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    source.read_exact_at(at, &mut bytes).ok()?;
    let (sum, contents) = bytes.split_first_chunk::<CHECKSUM_LEN>()?;
    let is_whole = block_checksum(head_sum, number, contents) == u64::from_le_bytes(*sum);
    is_whole.then_some(bytes)
}

fn block_checksum(head_sum: u64, number: usize, contents: &[u8]) -> u64 {
    checksum(head_sum.wrapping_add(number as u64), contents)
}
