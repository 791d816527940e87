//! Reads a compressed tar archive from its beginning to its end, within limits: a small archive can contain much.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tar::{Archive, Entry, EntryType, PaxExtensions};

/// The most bytes in an archive, and how many times its packed size. Binaries shrink to a quarter, and their
/// debug info to a tenth.
const MAX_BYTES: u64 = 16 << 30;
const MAX_RATIO: u64 = 64;

/// How many bytes any archive may contain.
const MIN_BYTES: u64 = 64 << 20;

/// The most entries. A recording of a whole machine has some thousand files.
const MAX_ENTRIES: u32 = 100_000;

/// How long it may take. A gigabyte takes half a minute.
const MAX_TIME: Duration = Duration::from_mins(5);

/// The longest path.
const MAX_PATH: u64 = 64 << 10;

/// The maximum memory, in KiB, of xz's dictionary; `xz -9` needs 64 MiB.
const MAX_DICTIONARY_KIB: u32 = 80 << 10;

/// What an archive may contain, with what is skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArchiveLimits {
    bytes: u64,
    entries: u32,
    time: Duration,
}

impl ArchiveLimits {
    /// The limits of an archive of that packed size.
    pub(crate) fn of_packed(len: u64) -> Self {
        let bytes = len.saturating_mul(MAX_RATIO).clamp(MIN_BYTES, MAX_BYTES);
        Self { bytes, entries: MAX_ENTRIES, time: MAX_TIME }
    }
}

/// An open archive.
pub(crate) struct ArchiveReader {
    archive: Archive<LimitedReader>,
    entries: u32,
}

impl ArchiveReader {
    /// Opens an archive, whose compression the ending of its name says.
    ///
    /// # Errors
    /// It is damaged at its beginning.
    pub(crate) fn open(file: File, ending: &str, limits: ArchiveLimits) -> io::Result<Self> {
        let reader = decoder(file, ending)?;
        let limited = LimitedReader { reader, left: limits.bytes, ends: Instant::now() + limits.time };
        Ok(Self { archive: Archive::new(limited), entries: limits.entries })
    }

    /// Calls `visit` with the path, the size and the contents of each regular file.
    ///
    /// # Errors
    /// The archive is damaged or exceeds a limit, or `visit` fails.
    pub(crate) fn each_file(
        &mut self,
        mut visit: impl FnMut(&Path, u64, &mut dyn Read) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut left = self.entries;
        let mut long_path = None;
        // Raw entries, because the library reads long paths of any length.
        for entry in self.archive.entries()?.raw(true) {
            let mut entry = entry?;
            left = left.checked_sub(1).ok_or_else(|| too_large("it has more than 100,000 entries"))?;
            match entry.header().entry_type() {
                EntryType::GNULongName => long_path = path_of(&bounded(&mut entry)?),
                EntryType::XHeader => long_path = pax_path(&bounded(&mut entry)?),
                kind => {
                    let path = match long_path.take() {
                        Some(path) => path,
                        None => entry.path()?.into_owned(),
                    };
                    if kind.is_file() {
                        let size = entry.size();
                        visit(&path, size, &mut entry)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn too_large(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

/// The contents of an entry that states the path of the next one.
fn bounded(entry: &mut Entry<'_, LimitedReader>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry.take(MAX_PATH).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path in an entry of GNU tar, which ends with a zero.
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    let path = bytes.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(OsString::from(String::from_utf8_lossy(path).into_owned())))
}

/// The path in an extended header (pax).
fn pax_path(bytes: &[u8]) -> Option<PathBuf> {
    let mut extensions = PaxExtensions::new(bytes).filter_map(Result::ok);
    extensions.find(|it| it.key_bytes() == b"path").and_then(|it| path_of(it.value_bytes()))
}

/// A reader that fails at a number of bytes, and at a time.
struct LimitedReader {
    reader: Box<dyn Read>,
    left: u64,
    ends: Instant,
}

impl Read for LimitedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() > self.ends {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes more than five minutes"));
        }
        if self.left == 0 && !buffer.is_empty() {
            return Err(too_large("it contains far more than its own size"));
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(&mut buffer[..room])?;
        self.left -= read as u64;
        Ok(read)
    }
}

fn decoder(file: File, ending: &str) -> io::Result<Box<dyn Read>> {
    let file = BufReader::new(file);
    Ok(match ending {
        "bz2" => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        "gz" => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        "xz" => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, MAX_DICTIONARY_KIB)),
        "zst" => Box::new(
            ruzstd::decoding::StreamingDecoder::new(file)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?,
        ),
        _ => Box::new(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_system::private_options;
    use std::io::{Seek as _, Write as _};

    /// An open file without a name, with these contents.
    fn file(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("nyquist-{name}-{}", std::process::id()));
        let mut file = private_options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    fn header(path: &str, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_path(path).unwrap();
        header.set_size(size);
        header.set_cksum();
        header
    }

    /// The paths of the files before the end or the error.
    fn read(name: &str, tar: &[u8], limits: ArchiveLimits) -> (Vec<String>, Option<io::ErrorKind>) {
        let mut paths = Vec::new();
        let mut reader = ArchiveReader::open(file(name, tar), "tar", limits).unwrap();
        let result = reader.each_file(|path, size, contents| {
            assert_eq!(io::copy(contents, &mut io::sink())?, size);
            paths.push(path.display().to_string());
            Ok(())
        });
        (paths, result.err().map(|error| error.kind()))
    }

    const USUAL: ArchiveLimits = ArchiveLimits { bytes: 1 << 20, entries: 10, time: MAX_TIME };

    #[test]
    fn long_paths_are_read_and_bounded() {
        let long = format!("{}/elf", "a/b".repeat(100));
        for pad in ["", &"x".repeat(2 * MAX_PATH as usize)] {
            let mut tar = tar::Builder::new(Vec::new());
            let mut data = tar::Header::new_gnu();
            data.set_size(5);
            let path = format!("{long}{pad}");
            tar.append_data(&mut data, &path, &b"bytes"[..]).unwrap();
            let (paths, error) = read("long", &tar.into_inner().unwrap(), USUAL);
            assert_eq!((paths.len(), error), (1, None));
            assert_eq!(paths[0].len(), path.len().min(MAX_PATH as usize));
        }
    }

    #[test]
    fn what_is_skipped_counts_too() {
        // A folder with contents, which no reader looks at, and a file behind it.
        let mut skipped = header("x/skip", 2 << 20);
        skipped.set_entry_type(EntryType::Directory);
        skipped.set_cksum();
        let mut tar = skipped.as_bytes().to_vec();
        tar.resize(512 + (2 << 20), 0);
        tar.extend(header("x/abcd/elf", 0).as_bytes());
        tar.extend([0; 1024]);
        let too_large = Some(io::ErrorKind::FileTooLarge);
        assert_eq!(read("skipped", &tar, USUAL), (Vec::new(), too_large));
        let wider = ArchiveLimits { bytes: 4 << 20, ..USUAL };
        assert_eq!(read("skipped", &tar, wider), (vec!["x/abcd/elf".to_owned()], None));
    }

    #[test]
    fn entries_and_time_are_limited() {
        let mut tar: Vec<u8> = (0..20).flat_map(|n| *header(&format!("{n}"), 0).as_bytes()).collect();
        tar.extend([0; 1024]);
        let (paths, error) = read("entries", &tar, USUAL);
        assert_eq!((paths.len(), error), (10, Some(io::ErrorKind::FileTooLarge)));
        let late = ArchiveLimits { time: Duration::ZERO, ..USUAL };
        assert_eq!(read("late", &tar, late), (Vec::new(), Some(io::ErrorKind::TimedOut)));
    }

    #[test]
    fn limits_grow_with_the_archive() {
        let bytes = |len| ArchiveLimits::of_packed(len).bytes;
        assert_eq!([bytes(1600), bytes(100 << 20), bytes(1 << 40)], [MIN_BYTES, 6400 << 20, MAX_BYTES]);
    }

    #[test]
    fn a_large_dictionary_is_refused() {
        // An xz file that states a dictionary of 4 GiB.
        const XZ: &[u8] = &[
            0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 4, 0xe6, 0xd6, 0xb4, 0x46, 2, 0, 0x21, 1, 40, 0, 0, 0, 0xac,
            0xb2, 0x93, 0xf7, 1, 0, 0, 0x41,
        ];
        let mut reader = ArchiveReader::open(file("xz", XZ), "xz", USUAL).unwrap();
        assert!(reader.each_file(|_, _, _| Ok(())).is_err());
    }
}
