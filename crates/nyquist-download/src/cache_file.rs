//! A file in a cache. It appears completely, under its final name, after it was checked.

use nyquist_system::{Access, create_private_folder, private_options, restrict};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// The suffix of a file that is being written.
const PENDING: &str = ".part";

/// An older unfinished file is abandoned.
const ABANDONED_AFTER: Duration = Duration::from_hours(24);

/// A file that is removed unless it is kept.
#[derive(Debug)]
pub(crate) struct PendingFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    target: PathBuf,
}

impl PendingFile {
    /// Opens a new file beside `target`. Missing folders are created.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        create_private_folder(folder)?;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{name}.{}-{number}{PENDING}", std::process::id()));
        let file = private_options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { file, path, target: target.to_owned() })
    }

    /// Gives it its final name, and replaces a file of that name.
    pub(crate) fn keep(self, access: Access) -> io::Result<()> {
        restrict(&self.file, access)?;
        fs::rename(&self.path, &self.target)
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        // If it was kept, no file of this name exists any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// A file below a cache's folder.
#[derive(Clone, Debug)]
pub(crate) struct CacheFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The time of its last use.
    pub(crate) used: Option<SystemTime>,
}

/// All files below `folder`, at most `depth` folders down; links are not followed. Empty if the folder
/// does not exist.
pub(crate) fn entries(folder: &Path, depth: usize) -> io::Result<Vec<CacheFile>> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, level)) = folders.pop() {
        let listed = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listed => listed?,
        };
        for entry in listed {
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && level < depth {
                folders.push((entry.path(), level + 1));
            } else if metadata.is_file() {
                let times = [metadata.accessed().ok(), metadata.modified().ok()];
                let used = times.into_iter().flatten().max();
                found.push(CacheFile { path: entry.path(), bytes: metadata.len(), used });
            }
        }
    }
    Ok(found)
}

/// Whether a killed process left the file behind.
pub(crate) fn is_abandoned(entry: &CacheFile) -> bool {
    let is_pending = entry.path.to_string_lossy().ends_with(PENDING);
    let age = entry.used.and_then(|used| SystemTime::now().duration_since(used).ok());
    is_pending && age.is_some_and(|age| age > ABANDONED_AFTER)
}

/// Removes a file, and the folders above it, up to `top`, that become empty.
pub(crate) fn remove(path: &Path, top: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    remove_empty_folders(path, top);
    Ok(())
}

/// Removes the folders above `path`, below `top`, that are empty.
pub(crate) fn remove_empty_folders(path: &Path, top: &Path) {
    let above = path.ancestors().skip(1).take_while(|folder| *folder != top && folder.starts_with(top));
    for folder in above {
        // A folder with files stays.
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

/// Records the use of a file, so that cleaning keeps it.
pub(crate) fn renew(path: &Path) {
    let times = fs::FileTimes::new().set_accessed(SystemTime::now());
    let _ = File::open(path).and_then(|file| file.set_times(times));
}

/// The size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of files.
    pub files: u64,
    /// The total number of bytes.
    pub bytes: u64,
}

/// The maximum depth of files in all caches.
const MAX_DEPTH: usize = 4;

/// The size of a cache's folder; zero if the folder does not exist.
pub fn usage(folder: &Path) -> io::Result<Usage> {
    let entries = entries(folder, MAX_DEPTH)?;
    Ok(Usage { files: entries.len() as u64, bytes: entries.iter().map(|entry| entry.bytes).sum() })
}

/// Removes all files of a cache's folder, and returns their size. Only for folders without other files.
pub fn clear(folder: &Path) -> io::Result<Usage> {
    let entries = entries(folder, MAX_DEPTH)?;
    entries.iter().try_for_each(|entry| remove(&entry.path, folder))?;
    Ok(Usage { files: entries.len() as u64, bytes: entries.iter().map(|entry| entry.bytes).sum() })
}
