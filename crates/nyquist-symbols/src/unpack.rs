//! Unpacks files that are compressed as a whole, up to a maximum size.

use lzma_rust2::XzReader;
#[cfg(feature = "kernel")]
use nyquist_system::open_regular;
use std::io::{self, Read};
#[cfg(feature = "kernel")]
use std::path::Path;

/// The most memory, in KiB, that the decoder of xz may use for its dictionary. `xz -9` needs 64 MiB.
const MAX_DICTIONARY_KIB: u32 = 80 << 10;

/// The largest file that is unpacked. The largest symbols without debug info are below ten megabytes, and the
/// largest kernel modules with debug info about 200.
const MAX_SIZE: u64 = 256 << 20;

/// The contents of a file that is compressed by xz, zstd or gzip, which is recognised by its first bytes.
/// `None` for any other file, a damaged one, and one that is too large.
#[cfg(feature = "kernel")]
pub(crate) fn unpack_file(path: &Path) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    open_regular(path).ok()?.take(MAX_SIZE).read_to_end(&mut packed).ok()?;
    unpack(&packed)
}

/// The contents of compressed bytes, as for [`unpack_file`].
pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    match packed {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => read(XzReader::new_mem_limit(packed, true, MAX_DICTIONARY_KIB)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => read(ruzstd::decoding::StreamingDecoder::new(packed).ok()?),
        [0x1f, 0x8b, ..] => read(flate2::read::MultiGzDecoder::new(packed)),
        _ => None,
    }
}

fn read(reader: impl io::Read) -> Option<Vec<u8>> {
    let mut image = Vec::new();
    reader.take(MAX_SIZE + 1).read_to_end(&mut image).ok()?;
    (image.len() as u64 <= MAX_SIZE).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf nyquist | xz -9 | xxd -i`
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x1c,
        0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0x01, 0x00, 0x06, 0x6e, 0x79, 0x71, 0x75, 0x69, 0x73, 0x74,
        0x00, 0x00, 0x26, 0x26, 0x6d, 0xad, 0xd4, 0x6c, 0xf1, 0x01, 0x00, 0x01, 0x1f, 0x07, 0x16, 0x2e, 0xb8,
        0x73, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];

    /// `printf nyquist | zstd -9 --no-check | xxd -i`
    const ZSTD: &[u8] =
        &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x60, 0x39, 0x00, 0x00, 0x6e, 0x79, 0x71, 0x75, 0x69, 0x73, 0x74];

    /// `printf nyquist | gzip -9n | xxd -i`
    const GZIP: &[u8] = &[
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0xab, 0x2c, 0x2c, 0xcd, 0x2c, 0x2e,
        0x01, 0x00, 0xa1, 0x42, 0xe7, 0xe6, 0x07, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn what_is_packed_is_unpacked() {
        for packed in [XZ, ZSTD, GZIP] {
            assert_eq!(unpack(packed).unwrap(), b"nyquist", "{packed:x?}");
        }
        assert!(unpack(b"nyquist").is_none());
    }

    #[test]
    fn a_damaged_file_is_left_out() {
        for packed in [XZ, GZIP] {
            for len in 0..packed.len() {
                assert!(unpack(&packed[..len]).is_none(), "{len} of {packed:x?}");
            }
        }
        for packed in [XZ, ZSTD, GZIP] {
            for at in 0..packed.len() {
                let mut damaged = packed.to_vec();
                damaged[at] ^= 0x40;
                let _ = unpack(&damaged);
                let _ = unpack(&packed[..at]);
            }
        }
    }
}
