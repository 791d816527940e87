//! An archive of a recording's binaries made by `perf archive`, unpacked once into a separate cache.
//!
//! Of an entry's path (Linux: `tools/perf/perf-archive.sh` and `util/build-id.c`) only the last two parts
//! are used, the build id and the kind of file. They determine the names of written files, so no archive
//! can write elsewhere.

use crate::cache_file::{PendingFile, entries, remove};
use nyquist_object::BuildId;
use nyquist_system::{Access, modified};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The suffixes of archives. The first is perf's.
const ENDINGS: [&str; 5] = [".tar.bz2", ".tar.gz", ".tar.zst", ".tar.xz", ".tar"];

/// The files of a build id that are used.
const KINDS: [&str; 2] = ["elf", "debug"];

/// The maximum size that is unpacked from an archive, because a small archive can contain much.
const MAX_BYTES: u64 = 16 << 30;

/// Archives that were unused for this time are removed when another archive is unpacked.
const KEEP_UNUSED: Duration = Duration::from_hours(24 * 7);

/// The file that marks an archive as complete.
const COMPLETE: &str = "complete";

/// The depth of files in the cache: `ARCHIVE/.build-id/xx/yyyy/elf`.
const DEPTH: usize = 4;

/// An archive of binaries beside its recording.
#[derive(Debug)]
pub struct PerfArchive {
    path: PathBuf,
    cache: PathBuf,
    folder: PathBuf,
}

impl PerfArchive {
    /// Whether a file's name is that of an archive.
    pub fn has_name_of_one(path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    }

    /// The archive of a recording, whose name begins with the recording's. `None` if there is none, or if
    /// it cannot be read. `cache` is used only for such archives.
    pub fn of_recording(recording: &Path, cache: &Path) -> Option<Self> {
        let path = ENDINGS.iter().find_map(|ending| {
            let mut name = recording.as_os_str().to_owned();
            name.push(ending);
            Some(PathBuf::from(name)).filter(|archive| archive.is_file())
        })?;
        // A different archive of the same name gets another folder.
        let metadata = fs::metadata(&path).ok()?;
        let mut hasher = DefaultHasher::new();
        (path.canonicalize().ok()?, metadata.len(), modified(&metadata)).hash(&mut hasher);
        let folder = cache.join(format!("{:016x}", hasher.finish()));
        Some(Self { path, cache: cache.to_owned(), folder })
    }

    /// The path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder with its unpacked files, laid out like perf's cache: `.build-id/xx/yyyy/elf`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it was unpacked before.
    pub fn is_unpacked(&self) -> bool {
        self.folder.join(COMPLETE).is_file()
    }

    /// Unpacks it. Each file appears completely. If an archive is damaged, the files before the damage stay.
    pub fn unpack(&self) -> io::Result<()> {
        // A cache that cannot be cleaned can still be used.
        let _ = self.remove_unused();
        let mut archive = tar::Archive::new(decoder(&self.path)?);
        let mut left = MAX_BYTES;
        for entry in archive.entries()? {
            let mut entry = entry?;
            let Some(name) = place_in_cache(&entry.path()?).filter(|_| entry.header().entry_type().is_file())
            else {
                continue;
            };
            left = left.checked_sub(entry.size()).ok_or_else(|| {
                io::Error::new(io::ErrorKind::FileTooLarge, "it holds more than 16 GB of binaries")
            })?;
            let mut pending = PendingFile::create(&self.folder.join(name))?;
            if io::copy(&mut entry, &mut pending.file)? < entry.size() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            pending.keep(Access::ReadOnly)?;
        }
        PendingFile::create(&self.folder.join(COMPLETE))?.keep(Access::ReadWrite)
    }

    fn remove_unused(&self) -> io::Result<()> {
        let now = SystemTime::now();
        for entry in entries(&self.cache, DEPTH)? {
            let age = entry.used.and_then(|used| now.duration_since(used).ok());
            if age.is_some_and(|age| age > KEEP_UNUSED) {
                // Without the marking file, the archive no longer counts as complete.
                let top = entry.path.strip_prefix(&self.cache).ok().and_then(|path| path.iter().next());
                if let Some(top) = top {
                    let _ = fs::remove_file(self.cache.join(top).join(COMPLETE));
                }
                remove(&entry.path, &self.cache)?;
            }
        }
        Ok(())
    }
}

/// The place of an archived file in the cache; `None` if it is not needed.
fn place_in_cache(path: &Path) -> Option<PathBuf> {
    let kind = KINDS.into_iter().find(|kind| path.file_name().is_some_and(|name| name == *kind))?;
    let id = BuildId::from_hex(path.parent()?.file_name()?.to_str()?)?.to_string();
    let (first, rest) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some([".build-id", first, rest, kind].iter().collect())
}

fn decoder(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = BufReader::new(File::open(path)?);
    let ending = path.extension().unwrap_or_default().to_str();
    Ok(match ending {
        Some("bz2") => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        Some("gz") => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        Some("xz") => Box::new(lzma_rust2::XzReader::new(file, true)),
        Some("zst") => Box::new(
            ruzstd::decoding::StreamingDecoder::new(file)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?,
        ),
        _ => Box::new(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const ID: &str = "4a5a9b0affb66c437abcd455d2738af879985fa9";

    /// A temporary folder.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nyquist-archive-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o755);
            header.set_cksum();
            tar.append(&header, *bytes).unwrap();
        }
        tar.into_inner().unwrap()
    }

    fn archive_of(folder: &Path) -> PerfArchive {
        PerfArchive::of_recording(&folder.join("perf.data"), &folder.join("cache")).unwrap()
    }

    #[test]
    fn binaries_are_unpacked_under_their_build_ids() {
        let folder = TestFolder::new("binaries");
        let (elf, debug) = (format!("usr/bin/app/{ID}/elf"), format!("usr/bin/app/{ID}/debug"));
        let tar = tar_of(&[(&elf, b"binary"), (&debug, b"names"), (&format!("x/{ID}/probes"), b"")]);
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        packed.write_all(&tar).unwrap();
        fs::write(folder.0.join("perf.data.tar.bz2"), packed.finish().unwrap()).unwrap();
        let archive = archive_of(&folder.0);
        assert!(!archive.is_unpacked());
        archive.unpack().unwrap();
        assert!(archive.is_unpacked() && archive_of(&folder.0).is_unpacked());
        let place = archive.folder().join(".build-id/4a/5a9b0affb66c437abcd455d2738af879985fa9");
        assert_eq!(fs::read(place.join("elf")).unwrap(), b"binary");
        assert_eq!(fs::read(place.join("debug")).unwrap(), b"names");
        assert_eq!(fs::read_dir(place).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_written_anywhere_else() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(place_in_cache(Path::new(path)), expected.map(PathBuf::from), "{path}");
        };
        check("a/../../abcd/elf", Some(".build-id/ab/cd/elf"));
        check("/etc/abcd/elf", Some(".build-id/ab/cd/elf"));
        for path in ["elf", "../elf", "ab/elf", "abc/elf", "xy00/elf", "abcd/..", "abcd/vdso/", ""] {
            check(path, None);
        }
    }

    #[test]
    fn a_damaged_archive_gives_what_comes_before() {
        let folder = TestFolder::new("damaged");
        let tar = tar_of(&[("a/abcd/elf", b"first"), ("b/ef01/elf", &[7; 4000])]);
        fs::write(folder.0.join("perf.data.tar"), &tar[..2000]).unwrap();
        let archive = archive_of(&folder.0);
        assert!(archive.unpack().is_err() && !archive.is_unpacked());
        assert_eq!(fs::read(archive.folder().join(".build-id/ab/cd/elf")).unwrap(), b"first");
        assert!(!archive.folder().join(".build-id/ef/01/elf").exists());
    }
}
