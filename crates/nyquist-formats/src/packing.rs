//! Files that are compressed as a whole. If the format's reader does not support the compression, they are
//! unpacked into another file.

use crate::{Format, zip};
use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, Write as _};

/// The maximum unpacked size.
const MAX_UNPACKED_BYTES: u64 = 16 << 30;

/// The maximum memory, in KiB, of xz's dictionary; `xz -9` needs 64 MiB.
const MAX_DICTIONARY_KIB: u32 = 80 << 10;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// xz, with LZMA2.
    Xz,
    /// bzip2.
    Bzip2,
    /// A zip archive, of which the first file is read.
    Zip,
}

/// An unpacked file.
#[derive(Debug)]
pub struct UnpackedFile {
    /// The file, at its start.
    pub file: File,
    /// The error if the packed file is truncated or damaged, and the contents are incomplete.
    pub cut: Option<io::Error>,
}

impl Packing {
    /// The compression of a file with these first bytes.
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [b'P', b'K', 3, 4, ..] => Some(Self::Zip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            // A block begins with the digits of pi. A file without blocks has those of its square root
            // instead.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// Whether readers of the inner format do not support this compression. Most support gzip and zstd.
    pub fn hides(self, inside: Option<Format>) -> bool {
        match self {
            Self::Xz | Self::Bzip2 | Self::Zip => true,
            Self::Zstd => matches!(inside, None | Some(Format::Firefox | Format::PerfData)),
            Self::Gzip => inside == Some(Format::PerfData),
        }
    }

    /// Unpacks a file into an empty one, of at most 16 GiB. Memory is bounded, whatever the file states.
    ///
    /// # Errors
    /// If nothing can be unpacked, the size exceeds the maximum, or the disk is full.
    pub fn unpack(self, packed: impl Read, mut file: File) -> io::Result<UnpackedFile> {
        let (written, cut) = self.copy(packed, &mut file)?;
        if written > MAX_UNPACKED_BYTES {
            return Err(io::Error::other(format!("more than {} GiB are in it", MAX_UNPACKED_BYTES >> 30)));
        }
        if let (0, Some(error)) = (written, cut.as_ref()) {
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        file.rewind()?;
        Ok(UnpackedFile { file, cut })
    }

    /// Copies the contents. Returns their size, and the error if it ended early.
    fn copy(self, packed: impl Read, file: &mut File) -> io::Result<(u64, Option<io::Error>)> {
        let mut packed = BufReader::new(packed);
        match self {
            Self::Gzip => copy(MultiGzDecoder::new(packed), file, MAX_UNPACKED_BYTES + 1),
            Self::Zip => copy(zip::first_file(packed)?, file, MAX_UNPACKED_BYTES + 1),
            Self::Bzip2 => copy(MultiBzDecoder::new(packed), file, MAX_UNPACKED_BYTES + 1),
            Self::Xz => {
                copy(XzReader::new_mem_limit(packed, true, MAX_DICTIONARY_KIB), file, MAX_UNPACKED_BYTES + 1)
            }
            Self::Zstd => {
                let mut written = 0;
                // A file may have several frames in sequence.
                while written <= MAX_UNPACKED_BYTES && !packed.fill_buf()?.is_empty() {
                    let frame = match StreamingDecoder::new(&mut packed) {
                        Ok(frame) => frame,
                        Err(error) => return Ok((written, Some(io::Error::other(error)))),
                    };
                    let (more, cut) = copy(frame, file, MAX_UNPACKED_BYTES + 1 - written)?;
                    written += more;
                    if cut.is_some() {
                        return Ok((written, cut));
                    }
                }
                Ok((written, None))
            }
        }
    }
}

/// Copies at most `most` bytes. A failure to write is an error. A failure to read is returned with the
/// contents so far.
fn copy(mut from: impl Read, to: &mut File, most: u64) -> io::Result<(u64, Option<io::Error>)> {
    let mut buffer = vec![0; 64 << 10];
    let mut written = 0;
    while written < most {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok((written, Some(error))),
        };
        to.write_all(buffer.get(..count).unwrap_or_default())?;
        written += count as u64;
    }
    Ok((written, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The first bytes of an `xz` file.
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16,
        0x00,
    ];

    /// An empty file that has no name any more.
    fn empty() -> File {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nyquist-packed-{}-{number}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let _ = fs::remove_file(path);
        file
    }

    #[test]
    fn packed_files_are_known_by_their_beginnings() {
        assert_eq!(Packing::of(XZ), Some(Packing::Xz));
        assert_eq!(Packing::of(b"BZh91AY&SY"), Some(Packing::Bzip2));
        // Folded stacks may begin like this.
        assert_eq!(Packing::of(b"BZhang;main 3\n"), None);
        assert_eq!(Packing::of(&[0x1f, 0x8b, 8]), Some(Packing::Gzip));
        assert_eq!(Packing::of(b"PK\x03\x04\x14"), Some(Packing::Zip));
        assert_eq!(Packing::of(b"{}"), None);
    }

    #[test]
    fn only_what_readers_cannot_read_is_unpacked() {
        assert!(Packing::Gzip.hides(Some(Format::PerfData)) && !Packing::Gzip.hides(Some(Format::Firefox)));
        assert!(Packing::Zstd.hides(Some(Format::Firefox)) && !Packing::Zstd.hides(Some(Format::Heaptrack)));
        assert!(Packing::Xz.hides(Some(Format::Folded)) && Packing::Bzip2.hides(None));
    }

    #[test]
    fn what_comes_before_the_damage_is_kept() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(|number| (number * 7919).to_le_bytes()).collect();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&text).unwrap();
        let packed = packed.finish().unwrap();
        let unpacked = |packed: &[u8]| {
            let UnpackedFile { mut file, cut } = Packing::Gzip.unpack(packed, empty())?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            io::Result::Ok((bytes, cut.is_some()))
        };
        assert_eq!(unpacked(&packed).unwrap(), (text.clone(), false));
        let (start, is_cut) = unpacked(&packed[..packed.len() / 2]).unwrap();
        assert!(is_cut && !start.is_empty() && text.starts_with(&start));
        assert!(unpacked(&packed[..4]).is_err());
        assert!(Packing::Xz.unpack(XZ, empty()).is_err());
        let mut frames =
            ruzstd::encoding::compress_to_vec(&*text, ruzstd::encoding::CompressionLevel::Fastest);
        frames.extend_from_within(..);
        let mut file = Packing::Zstd.unpack(&*frames, empty()).unwrap().file;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [&*text, &text].concat());
    }
}
