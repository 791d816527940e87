//! Decompresses gzip with a size limit, because a small file may have any size when decompressed.

use std::io::{self, Read as _};

use flate2::read::MultiGzDecoder;

use crate::error::{Note, ReadError};

/// The most bytes that are decompressed.
pub(crate) const MAX_BYTES: u64 = 2 << 30;

/// The first bytes of a gzip stream.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Whether the bytes are compressed with gzip.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The decompressed bytes. If a stream is truncated or damaged later on, the part before that, with a note.
pub(crate) fn decompress(bytes: &[u8]) -> Result<(Vec<u8>, Option<Note>), ReadError> {
    let mut decompressed = Vec::new();
    match MultiGzDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut decompressed) {
        Ok(count) if count as u64 == MAX_BYTES => {
            Err(ReadError::Gzip(io::Error::other("it holds more than 2 GiB")))
        }
        Ok(_) => Ok((decompressed, None)),
        Err(error) if decompressed.is_empty() => Err(ReadError::Gzip(error)),
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
    let _ = MultiGzDecoder::new(bytes).take(length).read_to_end(&mut start);
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    #[test]
    fn what_comes_before_a_cut_is_kept() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let text: Vec<u8> = (0..100_000_u32).flat_map(|number| (number * 7919).to_le_bytes()).collect();
        encoder.write_all(&text).unwrap();
        let bytes = encoder.finish().unwrap();
        assert_eq!(decompress(&bytes).unwrap(), (text.clone(), None));
        let (start, note) = decompress(&bytes[..bytes.len() / 2]).unwrap();
        assert!(note.is_some() && !start.is_empty() && text.starts_with(&start));
        assert!(decompress(&bytes[..5]).is_err());
        assert_eq!(decompress_start(&bytes[..2000], 16), text[..16]);
    }
}
