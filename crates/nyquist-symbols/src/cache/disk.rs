//! Reads and replaces the files of a cache, and notes that they are used.

use super::file::MAX_FILE;
use nyquist_system::private_options;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A file's time of use is renewed when it is older than this.
const USE_COUNTS_AFTER: Duration = Duration::from_hours(1);

/// Replaces a file by a whole file of several parts. Several threads may do so at the same time.
pub(super) fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}.{number}.tmp", std::process::id()));
    let write = || {
        let mut file = private_options().write(true).create(true).truncate(true).open(&temporary)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_open(&nyquist_system::open_regular(path)?)
}

/// The bytes of a file, up to the size limit.
pub(super) fn read_open(mut file: &File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len().min(MAX_FILE as u64);
    // One byte more, so that reading detects the end of the file.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.rewind()?;
    file.take(MAX_FILE as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Notes that a file was used, at most once an hour.
pub(super) fn renew(path: &Path) {
    let now = SystemTime::now();
    let used = fs::metadata(path).and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > USE_COUNTS_AFTER)) {
        // A file of another user keeps its time.
        let _ = File::open(path).and_then(|file| file.set_modified(now));
    }
}
