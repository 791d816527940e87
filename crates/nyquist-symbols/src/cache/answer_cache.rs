//! A cache as a whole: its contents, its quota, and why something could not be stored.

#[cfg(feature = "kernel")]
use super::disk::renew;
use super::disk::{read, replace};
use super::file::AnswerFile;
use super::folder;
#[cfg(feature = "kernel")]
use crate::find::open_source;
#[cfg(feature = "kernel")]
use crate::section_contents::SharedSource;
use nyquist_system::create_private_folder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The default quota of a cache in bytes.
const DEFAULT_QUOTA: u64 = 256 << 20;

/// The largest part of a cache that the data of one file besides its answers may take, as a divisor.
const MAX_PART_DIVISOR: u64 = 4;

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
    /// The module's path when its answers were first stored. `None` if the file is damaged.
    pub path: Option<PathBuf>,
    /// The file's size in bytes.
    pub bytes: u64,
    /// How many answers are in it.
    pub answers: usize,
    /// When it was last used, to the hour.
    pub used: Option<SystemTime>,
}

impl AnswerCache {
    /// A cache in `folder` of at most 256 MiB. The folder is created when the first answer is stored.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let (added, problem) = (AtomicU64::new(u64::MAX), OnceLock::new());
        Self { folder: folder.into(), quota: DEFAULT_QUOTA, added, problem }
    }

    /// Sets how many bytes all files together may have. The least recently used files are removed.
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

    /// The first reason why something could not be stored.
    pub fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// All modules with answers, the most recently used first. Reads all files, but only the head of the file
    /// of the kernel's symbols.
    pub fn modules(&self) -> io::Result<Vec<CachedModule>> {
        let mut modules = Vec::new();
        for entry in folder::entries(&self.folder)? {
            if folder::is_kernel(&entry.path) {
                let functions = count_functions_of_kernel(&entry.path);
                let path = functions.map(|_| KALLSYMS.into());
                let answers = functions.unwrap_or_default();
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

    /// The number of files with inflated debug info, and their size in bytes.
    pub fn inflated_files(&self) -> io::Result<(usize, u64)> {
        self.count_files(folder::is_inflated)
    }

    /// The number of function tables of large files, and their size in bytes.
    pub fn table_files(&self) -> io::Result<(usize, u64)> {
        self.count_files(folder::is_table)
    }

    fn count_files(&self, is_counted: impl Fn(&Path) -> bool) -> io::Result<(usize, u64)> {
        let entries = folder::entries(&self.folder)?.into_iter();
        let sizes: Vec<u64> =
            entries.filter(|entry| is_counted(&entry.path)).map(|entry| entry.bytes).collect();
        Ok((sizes.len(), sizes.iter().sum()))
    }

    /// Removes all answers, and everything else in the cache. Returns how many bytes were removed.
    pub fn clear(&self) -> io::Result<u64> {
        folder::clear(&self.folder)
    }

    /// The file with the cached symbols of the kernel. It stays valid when the file is replaced.
    #[cfg(feature = "kernel")]
    pub(crate) fn kernel(&self) -> Option<SharedSource> {
        let path = self.folder.join(folder::KERNEL);
        let file = open_source(&path, None).ok()?;
        renew(&path);
        Some(file)
    }

    /// Stores symbols of the kernel, and replaces those that were stored before.
    #[cfg(feature = "kernel")]
    pub(crate) fn keep_kernel(&self, bytes: &[u8]) {
        let path = self.folder.join(folder::KERNEL);
        self.keep_file(&path, &[bytes], "cannot keep the kernel's symbols in");
    }

    /// Whether this many bytes are a small part of the cache.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.quota / MAX_PART_DIVISOR
    }

    /// Stores a whole file, of several parts, and replaces an earlier one. If this fails, notes that the
    /// cache `cannot` do it.
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

    /// Counts written bytes, and removes old files if the quota may be exceeded.
    pub(super) fn written(&self, bytes: usize) {
        let added = self.added.load(Ordering::Relaxed).saturating_add(bytes as u64);
        let is_due = added > self.quota / 16;
        self.added.store(if is_due { 0 } else { added }, Ordering::Relaxed);
        if is_due && let Err(error) = folder::make_room(&self.folder, self.quota) {
            self.note("cannot make room in", &self.folder, &error);
        }
    }
}

/// The source of the kernel's symbols, for display.
const KALLSYMS: &str = "/proc/kallsyms";

/// How many functions of the kernel a file of them has. `None` if it is damaged.
#[cfg(feature = "kernel")]
fn count_functions_of_kernel(path: &Path) -> Option<usize> {
    crate::kernel::count_functions(&open_source(path, None).ok()?)
}

/// The same without a reader of such files.
#[cfg(not(feature = "kernel"))]
fn count_functions_of_kernel(_: &Path) -> Option<usize> {
    None
}
