//! The head of a kept file that is read in parts: behind the file's magic, with its length and a checksum.

use super::checksum::checksum;
use crate::cursor::Cursor;
use nyquist_object::ByteSource;

/// What a file begins with. The last byte is the number of its layout.
pub(crate) type Magic = [u8; 8];

/// The bytes before the head: the magic, the head's length and its checksum.
pub(crate) const HEADER: usize = size_of::<Magic>() + 4 + 8;

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
