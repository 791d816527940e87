//! A cache as a whole: what it holds, how much that may be, and why something could not be kept.

use super::disk::{read, renew, replace};
use super::file::AnswerFile;
use super::folder;
use crate::find::open_source;
use crate::kernel::kept_head::{KALLSYMS, count_functions};
use crate::section::Source;
use nyquist_system::create_private_folder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The bytes that a cache holds by default.
const DEFAULT_QUOTA: u64 = 256 << 20;

/// The part of a cache that what is kept of one file beside its answers may take, as a divisor.
const LARGEST_PART: u64 = 4;

/// A folder of answers, shared by all processes of a user.
#[derive(Debug)]
pub struct AnswerCache {
    pub(super) folder: PathBuf,
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
            if folder::is_inflated(&entry.path) || folder::is_table(&entry.path) {
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
        self.count_files(folder::is_inflated)
    }

    /// How many function tables of large files there are, and how many bytes they have.
    pub fn table_files(&self) -> io::Result<(usize, u64)> {
        self.count_files(folder::is_table)
    }

    fn count_files(&self, is_counted: impl Fn(&Path) -> bool) -> io::Result<(usize, u64)> {
        let entries = folder::entries(&self.folder)?.into_iter();
        let sizes: Vec<u64> =
            entries.filter(|entry| is_counted(&entry.path)).map(|entry| entry.bytes).collect();
        Ok((sizes.len(), sizes.iter().sum()))
    }

    /// Removes all answers, and everything else that was kept. Gives back how many bytes they had.
    pub fn clear(&self) -> io::Result<u64> {
        folder::clear(&self.folder)
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

    /// Whether that many bytes are a small part of the cache.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.quota / LARGEST_PART
    }

    /// Keeps a whole file, of several parts, in the place of another; or notes what it `cannot` do.
    pub(super) fn keep_file(&self, path: &Path, parts: &[&[u8]], cannot: &str) {
        let made = create_private_folder(&self.folder);
        match made.and_then(|()| replace(path, parts)) {
            Ok(()) => self.written(parts.iter().map(|part| part.len()).sum()),
            Err(error) => self.note(cannot, path, &error),
        }
    }

    pub(super) fn note(&self, what: &str, path: &Path, error: &io::Error) {
        let _ = self.problem.set(format!("{what} {}: {error}", path.display()));
    }

    /// Adds up what was written, and makes room when it may be too much.
    pub(super) fn written(&self, bytes: usize) {
        let added = self.added.load(Ordering::Relaxed).saturating_add(bytes as u64);
        let is_due = added > self.quota / 16;
        self.added.store(if is_due { 0 } else { added }, Ordering::Relaxed);
        if is_due && let Err(error) = folder::make_room(&self.folder, self.quota) {
            self.note("cannot make room in", &self.folder, &error);
        }
    }
}
