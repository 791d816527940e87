//! The hash of the code that identifies a file without an id.

use crate::{ByteSource, FileOffset, ObjectError};

/// How much of the code is hashed.
const HASHED: u64 = 4096;

/// The exclusive or of the 16-byte blocks in the first 4096 bytes of the code, as Breakpad makes it
/// (`src/common/linux/file_id.cc`, `HashElfTextSection`).
pub(crate) fn of(source: &impl ByteSource, offset: FileOffset, size: u64) -> Result<[u8; 16], ObjectError> {
    let mut hash = [0; 16];
    for (at, byte) in source.read_range(offset.0, size.min(HASHED))?.into_iter().enumerate() {
        hash[at % 16] ^= byte;
    }
    Ok(hash)
}
