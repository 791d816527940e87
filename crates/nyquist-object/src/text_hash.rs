//! The hash of the code, which identifies a file without an id.

use crate::{ByteSource, FileOffset, ObjectError};

/// The size of the hashed code.
const HASHED: u64 = 4096;

/// The exclusive or of the 16-byte blocks in the first 4096 bytes of the code, computed as in Breakpad
/// (`src/common/linux/file_id.cc`, `HashElfTextSection`).
pub(crate) fn of(source: &impl ByteSource, offset: FileOffset, size: u64) -> Result<[u8; 16], ObjectError> {
    let mut hash = [0; 16];
    for (at, byte) in source.read_range(offset.0, size.min(HASHED))?.into_iter().enumerate() {
        hash[at % 16] ^= byte;
    }
    Ok(hash)
}
