//! Answers that were found once, kept for the next time: a folder with a file a module. With them the debug info that had to be
//! inflated for them, and the functions of large symbol tables.
//!
//! Readers take no lock: blocks carry checksums, and a file that is written anew replaces the old one at once. Who
//! adds a block locks the file. The cache is a help and no more: where it cannot be read or written, everything goes
//! on without it, and [`AnswerCache::problem`] says why.

mod block;
mod block_file;
mod checksum;
mod extent;
mod file;
mod folder;
mod inflated;
mod key;
mod tables;

pub use block::sealed_block;
pub(crate) use block_file::{CHECKSUM_LEN, FileBlocks, FileHead, HEADER, Magic, sealed_file};
#[cfg(test)]
pub(crate) use checksum::checksum;
pub(crate) use extent::{Extent, push_unless_covered};
pub use file::read_answers;
pub(crate) use inflated::InflatedSections;
pub use inflated::{read_inflated, sealed_list};
pub(crate) use key::MAKER;
pub(crate) use tables::TableFile;

use crate::find::open_source;
use crate::kernel::{KALLSYMS, count_functions};
use crate::section::Source;
use crate::{AddressInfo, Found};
use file::{AnswerFile, MAX_FILE, block};
use key::Key;
use nyquist_object::{Elf, RelativeAddress};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime};

/// The bytes that a cache holds unless told otherwise.
const DEFAULT_QUOTA: u64 = 256 << 20;

/// The part of a cache that what is kept of one file beside its answers may take, as a divisor.
const LARGEST_PART: u64 = 4;

/// How long an addition waits for another process that adds to the same file. Adding takes milliseconds.
const LOCK_TRIES: u32 = 300;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A file's time of use is renewed when it is older than this.
const USE_COUNTS_AFTER: Duration = Duration::from_hours(1);

/// A folder of answers, shared by all processes of a user.
#[derive(Debug)]
pub struct AnswerCache {
    folder: PathBuf,
    quota: u64,
    /// The bytes that were added since the folder was last measured.
    added: AtomicU64,
    problem: OnceLock<String>,
}

/// A file of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedModule {
    /// The module's path when its answers were first kept; `None` where the file is damaged.
    pub path: Option<PathBuf>,
    /// The file's size in bytes.
    pub bytes: u64,
    /// How many answers are in it.
    pub answers: usize,
    /// When it was last used, to the hour.
    pub used: Option<SystemTime>,
}

impl AnswerCache {
    /// A cache in `folder`, which is made when the first answer is kept, of at most 256 MiB.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let (added, problem) = (AtomicU64::new(u64::MAX), OnceLock::new());
        Self { folder: folder.into(), quota: DEFAULT_QUOTA, added, problem }
    }

    /// Sets how many bytes all files together may have. The files that were not used for longest make room.
    #[must_use]
    pub fn with_quota(self, bytes: u64) -> Self {
        Self { quota: bytes, ..self }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many bytes all files together may have.
    pub fn quota(&self) -> u64 {
        self.quota
    }

    /// Why something could not be kept, the first time that it could not.
    pub fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// All modules with answers, the one that was used last first. Reads all files, of the kernel's symbols the head.
    pub fn modules(&self) -> io::Result<Vec<CachedModule>> {
        let mut modules = Vec::new();
        for entry in folder::entries(&self.folder)? {
            if folder::is_kernel(&entry.path) {
                let answers = open_source(&entry.path).ok().and_then(|file| count_functions(&file));
                let path = answers.map(|_| KALLSYMS.into());
                let answers = answers.unwrap_or_default();
                modules.push(CachedModule { path, bytes: entry.bytes, answers, used: entry.used });
                continue;
            }
            if inflated::is_one(&entry.path) || tables::is_one(&entry.path) {
                continue;
            }
            let seed = folder::seed(&entry.path).unwrap_or(0);
            let file = AnswerFile::parse(read(&entry.path).unwrap_or_default(), seed);
            let path = file.path().map(Path::to_owned);
            modules.push(CachedModule {
                path,
                bytes: entry.bytes,
                answers: file.entries(),
                used: entry.used,
            });
        }
        modules.sort_by_key(|module| std::cmp::Reverse(module.used));
        Ok(modules)
    }

    /// How many files there are with debug info that stood compressed in files, and how many bytes they have.
    pub fn inflated_files(&self) -> io::Result<(usize, u64)> {
        self.count_files(inflated::is_one)
    }

    /// How many function tables of large files there are, and how many bytes they have.
    pub fn table_files(&self) -> io::Result<(usize, u64)> {
        self.count_files(tables::is_one)
    }

    fn count_files(&self, is_counted: impl Fn(&Path) -> bool) -> io::Result<(usize, u64)> {
        let entries = folder::entries(&self.folder)?.into_iter();
        let sizes: Vec<u64> =
            entries.filter(|entry| is_counted(&entry.path)).map(|entry| entry.bytes).collect();
        Ok((sizes.len(), sizes.iter().sum()))
    }

    /// Removes all answers, and all else that was kept. Gives back how many bytes they had.
    pub fn clear(&self) -> io::Result<u64> {
        folder::clear(&self.folder)
    }

    /// The answers that there are for what was found.
    pub(crate) fn open(self: &Arc<Self>, found: &Found) -> Option<KeptAnswers> {
        let key = Key::of(found)?;
        let path = self.folder.join(key.file_name());
        let open = crate::find::open_regular(&path).ok();
        let read =
            open.as_ref().and_then(|open| Some((read_open(open).ok()?, inode(&open.metadata().ok()?))));
        let (bytes, inode) = read.unzip();
        let file = AnswerFile::parse(bytes.unwrap_or_default(), key.seed());
        if file.len() > 0 {
            renew(&path);
        }
        Some(KeptAnswers { cache: self.clone(), path, key, file, inode })
    }

    /// The sections of a file with debug info, as they are inflated; `None` where it has none that are compressed, or is no file.
    pub(crate) fn inflated<'a>(&'a self, elf: &'a Elf<Source>) -> Option<InflatedSections<'a>> {
        InflatedSections::of(self, elf)
    }

    /// The file with the symbols of the kernel that are kept. It stays as it is, also when others come in its place.
    pub(crate) fn kernel(&self) -> Option<Source> {
        let path = self.folder.join(folder::KERNEL);
        let file = open_source(&path).ok()?;
        renew(&path);
        Some(file)
    }

    /// Keeps symbols of the kernel, in the place of those that were kept before.
    pub(crate) fn keep_kernel(&self, bytes: &[u8]) {
        let path = self.folder.join(folder::KERNEL);
        self.keep_file(&path, &[bytes], "cannot keep the kernel's symbols in");
    }

    /// Whether so many bytes leave room for much else.
    fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.quota / LARGEST_PART
    }

    /// Keeps a whole file, of several parts, in the place of another; or notes what it `cannot` do.
    fn keep_file(&self, path: &Path, parts: &[&[u8]], cannot: &str) {
        let made = folder::create(&self.folder);
        match made.and_then(|()| replace(path, parts)) {
            Ok(()) => self.written(parts.iter().map(|part| part.len()).sum()),
            Err(error) => self.note(cannot, path, &error),
        }
    }

    fn note(&self, what: &str, path: &Path, error: &io::Error) {
        let _ = self.problem.set(format!("{what} {}: {error}", path.display()));
    }

    /// Adds up what was written, and makes room when it may be too much.
    fn written(&self, bytes: usize) {
        let added = self.added.load(Ordering::Relaxed).saturating_add(bytes as u64);
        let is_due = added > self.quota / 16;
        self.added.store(if is_due { 0 } else { added }, Ordering::Relaxed);
        if is_due && let Err(error) = folder::make_room(&self.folder, self.quota) {
            self.note("cannot make room in", &self.folder, &error);
        }
    }
}

/// Puts a whole file, of several parts, in the place of another. Several threads may do so at once.
fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}.{number}.tmp", std::process::id()));
    let write = || {
        let mut file = options().write(true).create(true).truncate(true).open(&temporary)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// The answers of one module that are kept, and the way to keep more.
#[derive(Debug)]
pub(crate) struct KeptAnswers {
    cache: Arc<AnswerCache>,
    path: PathBuf,
    key: Key,
    file: AnswerFile,
    /// Which file that was; `None` where there was none.
    inode: Option<(u64, u64)>,
}

impl KeptAnswers {
    /// The cache that they are in.
    pub(crate) fn cache(&self) -> &AnswerCache {
        &self.cache
    }

    /// Whether there were any when they were opened.
    pub(crate) fn is_known(&self) -> bool {
        self.file.has_answers()
    }

    /// The answers to `wanted`, which are sorted.
    pub(crate) fn find(&self, wanted: &[RelativeAddress]) -> Vec<Option<Arc<AddressInfo>>> {
        self.file.find(wanted)
    }

    /// Keeps answers, whose addresses ascend. Not those of files that were written to meanwhile.
    pub(crate) fn keep(&self, answers: &[(Extent, &AddressInfo)]) {
        if answers.is_empty() || !self.key.still_holds() {
            return;
        }
        match self.add(answers) {
            Ok(bytes) => self.cache.written(bytes),
            Err(error) => self.cache.note("cannot keep names in", &self.path, &error),
        }
    }

    fn add(&self, answers: &[(Extent, &AddressInfo)]) -> io::Result<usize> {
        folder::create(&self.cache.folder)?;
        let mut file = self.lock()?;
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let metadata = file.metadata()?;
        // Files only grow, or others come in their place.
        let is_as_read = self.inode == Some(inode(&metadata)) && metadata.len() == self.file.len() as u64;
        let anew;
        let known = if is_as_read {
            &self.file
        } else {
            anew = AnswerFile::parse(read_open(&file)?, self.key.seed());
            &anew
        };
        let new = if known.can_grow() { block(answers, &self.key) } else { None };
        match new.filter(|new| known.len() + new.len() <= MAX_FILE) {
            Some(block) => {
                let end = file.seek(io::SeekFrom::End(0))?;
                // Half a block would be passed over by readers, but it need not stay.
                file.write_all(&block).inspect_err(|_| drop(file.set_len(end)))?;
                Ok(block.len())
            }
            None => {
                let bytes = known.rewritten(answers, &self.key).ok_or_else(too_large)?;
                // The file that is locked goes with this.
                replace(&self.path, &[&bytes])?;
                Ok(bytes.len())
            }
        }
    }

    /// Opens and locks the file, which is made where there is none. Another process may have replaced it meanwhile.
    fn lock(&self) -> io::Result<File> {
        for _ in 0..LOCK_TRIES {
            let file = options().read(true).append(true).create(true).open(&self.path)?;
            match file.try_lock() {
                Ok(()) => {
                    let (locked, named) = (file.metadata()?, fs::symlink_metadata(&self.path));
                    if named.is_ok_and(|named| inode(&named) == inode(&locked)) {
                        return Ok(file);
                    }
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has it locked"))
    }
}

/// What is the same of two descriptions of one file alone.
fn inode(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Links are not followed: the cache makes none.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_open(&crate::find::open_regular(path)?)
}

/// The bytes of a file as far as one may reach.
fn read_open(mut file: &File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len().min(MAX_FILE as u64);
    // One byte more is where reading sees that the file has ended.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.rewind()?;
    file.take(MAX_FILE as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Notes that a file was used, at most once an hour.
fn renew(path: &Path) {
    let now = SystemTime::now();
    let used = fs::metadata(path).and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > USE_COUNTS_AFTER)) {
        // A file of another user's keeps its time.
        let _ = File::open(path).and_then(|file| file.set_modified(now));
    }
}
