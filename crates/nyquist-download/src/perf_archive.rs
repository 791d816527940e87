//! An archive of a recording's binaries made by `perf archive`, unpacked once into a separate cache.
//!
//! Of an entry's path (Linux: `tools/perf/perf-archive.sh` and `util/build-id.c`) only the last two parts
//! are used, the build id and the kind of file. They determine the names of written files, so no archive
//! can write elsewhere. Only files of build ids that the recording contains are written.

use crate::archive_reader::{ArchiveLimits, ArchiveReader};
use crate::cache_file::{PendingFile, entries, remove};
use nyquist_object::BuildId;
use nyquist_system::{Access, modified, open_regular};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The suffixes of archives. The first is perf's.
const ENDINGS: [&str; 5] = [".tar.bz2", ".tar.gz", ".tar.zst", ".tar.xz", ".tar"];

/// The files of a build id that are used.
const KINDS: [&str; 2] = ["elf", "debug"];

/// Archives that were unused for this time are removed when another archive is unpacked.
const KEEP_UNUSED: Duration = Duration::from_hours(24 * 7);

/// The file that marks an archive as complete. It contains a hash of the build ids that were requested.
const COMPLETE: &str = "complete";

/// The depth of files in the cache: `ARCHIVE/.build-id/xx/yyyy/elf`.
const DEPTH: usize = 4;

/// An archive of binaries beside its recording.
#[derive(Debug)]
pub struct PerfArchive {
    path: PathBuf,
    file: File,
    len: u64,
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
        let (path, file) = ENDINGS.iter().find_map(|ending| {
            let mut name = recording.as_os_str().to_owned();
            name.push(ending);
            let path = PathBuf::from(name);
            let file = open_regular(&path).ok()?;
            Some((path, file))
        })?;
        // A different archive of the same name gets another folder.
        let metadata = file.metadata().ok()?;
        let mut hasher = DefaultHasher::new();
        (path.canonicalize().ok()?, metadata.len(), modified(&metadata)).hash(&mut hasher);
        let folder = cache.join(format!("{:016x}", hasher.finish()));
        Some(Self { path, file, len: metadata.len(), cache: cache.to_owned(), folder })
    }

    /// The path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder with its unpacked files, laid out like perf's cache: `.build-id/xx/yyyy/elf`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it was unpacked before, for these build ids.
    pub fn is_unpacked(&self, requested: &BTreeSet<BuildId>) -> bool {
        let mut text = String::new();
        let marked = open_regular(&self.folder.join(COMPLETE));
        marked.and_then(|file| file.take(64).read_to_string(&mut text)).is_ok() && text == mark(requested)
    }

    /// Unpacks the files of these build ids. Each file appears completely. If an archive is damaged, or larger
    /// than is allowed, the files before that place stay.
    ///
    /// # Errors
    /// It cannot be read, is larger than is allowed, or the files cannot be written.
    pub fn unpack(self, requested: &BTreeSet<BuildId>) -> io::Result<()> {
        // A cache that cannot be cleaned can still be used.
        let _ = self.remove_unused();
        let ending = self.path.extension().unwrap_or_default().to_str().unwrap_or_default();
        let mut archive = ArchiveReader::open(self.file, ending, ArchiveLimits::of_packed(self.len))?;
        archive.each_file(|path, size, contents| {
            let Some(name) = place_in_cache(path, requested) else { return Ok(()) };
            let mut pending = PendingFile::create(&self.folder.join(name))?;
            if io::copy(contents, &mut pending.file)? < size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            pending.keep(Access::ReadOnly)
        })?;
        let mut pending = PendingFile::create(&self.folder.join(COMPLETE))?;
        pending.file.write_all(mark(requested).as_bytes())?;
        pending.keep(Access::ReadWrite)
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

/// The contents of the file that marks an archive as complete.
fn mark(requested: &BTreeSet<BuildId>) -> String {
    let mut hasher = DefaultHasher::new();
    requested.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The place of an archived file in the cache; `None` if it is not needed.
fn place_in_cache(path: &Path, requested: &BTreeSet<BuildId>) -> Option<PathBuf> {
    let kind = KINDS.into_iter().find(|kind| path.file_name().is_some_and(|name| name == *kind))?;
    let id = BuildId::from_hex(path.parent()?.file_name()?.to_str()?).filter(|id| requested.contains(id))?;
    let id = id.to_string();
    let (first, rest) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some([".build-id", first, rest, kind].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn ids(ids: &[&str]) -> BTreeSet<BuildId> {
        ids.iter().map(|id| BuildId::from_hex(id).unwrap()).collect()
    }

    fn archive_of(folder: &Path) -> PerfArchive {
        PerfArchive::of_recording(&folder.join("perf.data"), &folder.join("cache")).unwrap()
    }

    #[test]
    fn binaries_are_unpacked_under_their_build_ids() {
        let folder = TestFolder::new("binaries");
        let (elf, debug) = (format!("usr/bin/app/{ID}/elf"), format!("usr/bin/app/{ID}/debug"));
        let others = [format!("x/{ID}/probes"), "x/abcd/elf".to_owned()];
        let tar = tar_of(&[(&elf, b"binary"), (&debug, b"names"), (&others[0], b""), (&others[1], b"other")]);
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        packed.write_all(&tar).unwrap();
        fs::write(folder.0.join("perf.data.tar.bz2"), packed.finish().unwrap()).unwrap();
        let archive = archive_of(&folder.0);
        let requested = ids(&[ID, "0123"]);
        assert!(!archive.is_unpacked(&requested));
        let unpacked = archive.folder().to_owned();
        archive.unpack(&requested).unwrap();
        assert!(archive_of(&folder.0).is_unpacked(&requested));
        assert!(!archive_of(&folder.0).is_unpacked(&ids(&[ID, "abcd"])), "another recording wants more");
        assert!(!unpacked.join(".build-id/ab").exists(), "no build id asked for it");
        let place = unpacked.join(".build-id/4a/5a9b0affb66c437abcd455d2738af879985fa9");
        assert_eq!(fs::read(place.join("elf")).unwrap(), b"binary");
        assert_eq!(fs::read(place.join("debug")).unwrap(), b"names");
        assert_eq!(fs::read_dir(place).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_written_anywhere_else() {
        let check = |path: &str, expected: Option<&str>| {
            let requested = ids(&["abcd", "ab"]);
            assert_eq!(place_in_cache(Path::new(path), &requested), expected.map(PathBuf::from), "{path}");
        };
        check("a/../../abcd/elf", Some(".build-id/ab/cd/elf"));
        check("/etc/abcd/elf", Some(".build-id/ab/cd/elf"));
        for path in
            ["elf", "../elf", "abce/elf", "ab/elf", "abc/elf", "xy00/elf", "abcd/..", "abcd/vdso/", ""]
        {
            check(path, None);
        }
    }

    #[test]
    fn a_damaged_archive_gives_what_comes_before() {
        let folder = TestFolder::new("damaged");
        let tar = tar_of(&[("a/abcd/elf", b"first"), ("b/ef01/elf", &[7; 4000])]);
        fs::write(folder.0.join("perf.data.tar"), &tar[..2000]).unwrap();
        let archive = archive_of(&folder.0);
        let (unpacked, requested) = (archive.folder().to_owned(), ids(&["abcd", "ef01"]));
        assert!(archive.unpack(&requested).is_err() && !archive_of(&folder.0).is_unpacked(&requested));
        assert_eq!(fs::read(unpacked.join(".build-id/ab/cd/elf")).unwrap(), b"first");
        assert!(!unpacked.join(".build-id/ef/01/elf").exists());
    }
}
