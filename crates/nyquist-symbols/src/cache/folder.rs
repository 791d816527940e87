//! The folder of a cache: its files, and the removal of old ones.

use super::checksum::checksum;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The extension of a file with answers.
pub(super) const ANSWERS: &str = "answers";

/// The extension of a file with inflated sections.
pub(super) const INFLATED: &str = "sections";

/// The extension of a file with a function table.
pub(super) const TABLE: &str = "functions";

/// The file with the symbols of the running kernel.
pub(crate) const KERNEL: &str = "running.kernel";

/// A file that is still being written is more recent than this.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// A file of the cache.
#[derive(Debug)]
pub(super) struct CachedFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) used: Option<SystemTime>,
}

/// The cache's files except temporary ones, in no order. Empty if the folder does not exist.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<CachedFile>> {
    Ok(files(folder)?.into_iter().filter(|entry| !has_extension(&entry.path, "tmp")).collect())
}

/// Whether this is the file with the symbols of the kernel.
pub(super) fn is_kernel(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(KERNEL))
}

/// Whether this is a file of inflated sections.
pub(super) fn is_inflated(path: &Path) -> bool {
    has_extension(path, INFLATED)
}

/// Whether this is a file with a function table.
pub(super) fn is_table(path: &Path) -> bool {
    has_extension(path, TABLE)
}

/// The name of the file that belongs to an identity.
pub(super) fn file_name(identity: &str, extension: &str) -> String {
    format!("{:016x}{:016x}.{extension}", seed_of(identity), checksum(1, identity.as_bytes()))
}

/// The seed of the checksums in the file that belongs to an identity. It distinguishes parts of other files
/// from the file's own.
pub(super) fn seed_of(identity: &str) -> u64 {
    checksum(0, identity.as_bytes())
}

/// The seed, read from a file's name.
pub(super) fn seed(path: &Path) -> Option<u64> {
    u64::from_str_radix(path.file_stem()?.to_str()?.get(..16)?, 16).ok()
}

/// Removes the least recently used files until the others have at most `quota` bytes.
pub(super) fn make_room(folder: &Path, quota: u64) -> io::Result<()> {
    remove_abandoned(folder)?;
    let mut entries = entries(folder)?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
    let mut total = 0_u64;
    for entry in entries {
        total = total.saturating_add(entry.bytes);
        if total > quota {
            remove(&entry.path)?;
        }
    }
    Ok(())
}

/// Removes all files. Returns how many bytes they had.
pub(super) fn clear(folder: &Path) -> io::Result<u64> {
    let files = files(folder)?;
    files.iter().try_for_each(|entry| remove(&entry.path))?;
    Ok(files.iter().map(|entry| entry.bytes).sum())
}

/// Removes the temporary files of killed processes.
fn remove_abandoned(folder: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    let is_old = |entry: &CachedFile| {
        entry.used.is_some_and(|used| now.duration_since(used).is_ok_and(|age| age > ABANDONED_AFTER))
    };
    let files = files(folder)?.into_iter();
    let mut abandoned = files.filter(|entry| has_extension(&entry.path, "tmp") && is_old(entry));
    abandoned.try_for_each(|entry| remove(&entry.path))
}

/// The files that this cache has made.
fn files(folder: &Path) -> io::Result<Vec<CachedFile>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut files = Vec::new();
    for entry in listed {
        let entry = entry?;
        let path = entry.path();
        let extensions = [ANSWERS, INFLATED, TABLE, "tmp"];
        let is_own = is_kernel(&path) || extensions.iter().any(|own| has_extension(&path, own));
        // A file that is removed meanwhile is skipped.
        if let (true, Ok(metadata)) = (is_own, entry.metadata())
            && metadata.is_file()
        {
            files.push(CachedFile { path, bytes: metadata.len(), used: metadata.modified().ok() });
        }
    }
    Ok(files)
}

pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension() == Some(OsStr::new(extension))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
