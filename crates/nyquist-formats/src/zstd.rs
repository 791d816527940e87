//! Decompresses zstd, which heaptrack uses, with the limits of [`gzip`](crate::gzip).

use std::io::{self, Read as _};

use ruzstd::decoding::StreamingDecoder;

use crate::error::{Note, ReadError};
use crate::gzip::MAX_BYTES;

/// The first bytes of a frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether the bytes are compressed with zstd.
pub(crate) fn is_zstd(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The decompressed bytes of all frames. If a stream is truncated or damaged later on, the part before that,
/// with a note.
pub(crate) fn decompress(bytes: &[u8]) -> Result<(Vec<u8>, Option<Note>), ReadError> {
    let mut decompressed = Vec::new();
    let ended = append(&mut decompressed, bytes, MAX_BYTES);
    match ended {
        _ if decompressed.len() as u64 >= MAX_BYTES => {
            Err(ReadError::Zstd(io::Error::other("it holds more than 2 GiB")))
        }
        Ok(()) => Ok((decompressed, None)),
        Err(error) if decompressed.is_empty() => Err(ReadError::Zstd(error)),
        Err(_) => {
            let place = format!("byte {} of its decompressed data", decompressed.len());
            Ok((decompressed, Some(Note::Cut { place })))
        }
    }
}

/// The first bytes when decompressed, as far as there are any.
pub(crate) fn decompress_start(bytes: &[u8], length: u64) -> Vec<u8> {
    let mut start = Vec::new();
    // The first bytes of a file are a truncated stream, so errors are ignored.
    let _ = append(&mut start, bytes, length);
    start
}

/// Appends the contents of the frames, up to `limit` bytes.
fn append(out: &mut Vec<u8>, mut bytes: &[u8], limit: u64) -> io::Result<()> {
    while !bytes.is_empty() && (out.len() as u64) < limit {
        let decoder = StreamingDecoder::new(&mut bytes).map_err(io::Error::other)?;
        let left = limit - out.len() as u64;
        decoder.take(left).read_to_end(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    #[test]
    fn frames_follow_each_other_and_may_be_cut() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(|number| (number * 7919).to_le_bytes()).collect();
        let frame = compress_to_vec(&*text, CompressionLevel::Fastest);
        let two = [&*frame, &frame].concat();
        assert!(is_zstd(&two) && decompress(&two).unwrap() == ([&*text, &text].concat(), None));
        let (start, note) = decompress(&frame[..frame.len() / 2]).unwrap();
        assert!(note.is_some() && !start.is_empty() && text.starts_with(&start));
        assert_eq!(decompress_start(&frame[..frame.len() / 2], 16), text[..16]);
        assert!(decompress(&frame[..5]).is_err());
    }
}
