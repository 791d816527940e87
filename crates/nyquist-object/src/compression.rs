//! Decompresses sections. The size is limited by the header and by what the bytes can possibly expand to.

use crate::{ByteSource, ObjectError};
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;

/// The compression of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Zlib,
    Zstd,
}

/// Deflate cannot expand by more than this factor (zlib's technical details). zstd can expand by far more,
/// but no debug section comes near this factor.
const MAX_RATIO: u64 = 1032;

/// Decompresses `bytes`, which come from `source`, to exactly `size` bytes.
pub(crate) fn decompress(
    kind: Compression,
    bytes: &[u8],
    size: u64,
    source: &impl ByteSource,
) -> Result<Vec<u8>, ObjectError> {
    let malformed = |reason: String| ObjectError::malformed("compressed section", reason);
    source.check_room(size)?;
    if size > (bytes.len() as u64).saturating_mul(MAX_RATIO) {
        return Err(malformed(format!("{} bytes cannot hold the {size} that are claimed", bytes.len())));
    }
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))
        .map_err(|error| malformed(format!("{size} bytes are claimed: {error}")))?;
    match kind {
        Compression::Zlib => {
            // In one call, because a reader keeps a copy of its last output.
            let inflated = Decompress::new(true).decompress_vec(bytes, &mut out, FlushDecompress::Finish);
            let status = inflated.map_err(|error| malformed(error.to_string()))?;
            if status != Status::StreamEnd {
                return Err(malformed(format!(
                    "the stream does not end with the {size} bytes that are claimed"
                )));
            }
        }
        Compression::Zstd => {
            let decoder =
                ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|e| malformed(e.to_string()))?;
            let read = decoder.take(size + 1).read_to_end(&mut out);
            read.map_err(|error| malformed(error.to_string()))?;
        }
    }
    if out.len() as u64 != size {
        return Err(malformed(format!("{} bytes where {size} are claimed", out.len())));
    }
    Ok(out)
}

/// Decompresses a section of the old form: "ZLIB", the size as a big-endian number, a zlib stream.
pub(crate) fn old_compressed(bytes: &[u8], source: &impl ByteSource) -> Result<Vec<u8>, ObjectError> {
    match bytes.split_first_chunk::<12>() {
        Some(([b'Z', b'L', b'I', b'B', size @ ..], stream)) => {
            decompress(Compression::Zlib, stream, u64::from_be_bytes(*size), source)
        }
        _ => Err(ObjectError::malformed("zdebug section", "no ZLIB header")),
    }
}
