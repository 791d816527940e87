//! Files and names of Linux and macOS.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{OFlags, SeekFrom, seek};

/// Reading and writing at a place of a file.
pub use std::os::unix::fs::FileExt;

/// Names as the bytes that they are.
pub use std::os::unix::ffi::OsStrExt;

use crate::{Access, FileId, Ownership};

/// At most so many parts between holes are looked for.
const MAX_PARTS: usize = 1 << 12;

/// The identity of an open file.
pub fn file_id(file: &File) -> io::Result<FileId> {
    let metadata = file.metadata()?;
    Ok(FileId { device: metadata.dev(), number: metadata.ino() })
}

/// The identity of a file or folder. Links are followed.
pub fn path_id(path: &Path) -> io::Result<FileId> {
    let metadata = path.metadata()?;
    Ok(FileId { device: metadata.dev(), number: metadata.ino() })
}

/// The owner of an open file, and what others may do with it.
pub fn ownership(file: &File) -> io::Result<Ownership> {
    const READABLE_BY_ALL: u32 = 0o004;
    let metadata = file.metadata()?;
    let is_readable_by_all = metadata.mode() & READABLE_BY_ALL != 0;
    Ok(Ownership { user: metadata.uid(), is_readable_by_all, links: metadata.nlink() })
}

/// Whether a file can be replaced by another of its name while it is open.
pub const REPLACES_OPEN_FILES: bool = true;

/// Replaces this process by a program. Returns only if that fails.
pub fn replace_process(command: &mut Command) -> io::Error {
    command.exec()
}

/// When a file, its rights or its owner were changed last: seconds since 1970, and the nanoseconds after these.
/// Programs cannot set this time.
pub fn changed(metadata: &Metadata) -> (i64, i64) {
    (metadata.ctime(), metadata.ctime_nsec())
}

/// How much of the disk a file takes, in bytes, as far as the file system counts that.
pub fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.blocks().saturating_mul(512)
}

/// Whether at least that many bytes of a file of a length are in no hole. O(parts between holes), of which few
/// are looked for.
pub fn has_data(file: &File, len: u64, least: u64) -> bool {
    let (mut at, mut found) = (0, 0);
    for _ in 0..MAX_PARTS {
        // An error: there is only a hole behind this place. Where holes are not known, all is one part.
        let Ok(start) = seek(file, SeekFrom::Data(at)) else { return false };
        let end = seek(file, SeekFrom::Hole(start)).unwrap_or(len);
        found += end.saturating_sub(start);
        if found >= least {
            return true;
        }
        at = end;
    }
    false
}

/// A path that leads to an open file even when it was deleted, for as long as it is open here.
pub fn path_of_open(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    cfg!(target_os = "linux").then(|| format!("/proc/self/fd/{}", file.as_raw_fd()).into())
}

/// How files are made, or opened again, that only this process's user may use. Links are not followed.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Makes a folder and those above it that are missing, for this process's user only.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Sets the rights to a file that is complete.
pub fn restrict(file: &File, access: Access) -> io::Result<()> {
    let mode = match access {
        Access::ReadWrite => 0o600,
        Access::ReadOnly => 0o400,
        Access::ReadByAll => 0o644,
    };
    file.set_permissions(Permissions::from_mode(mode))
}

/// Whether a path names a file of another machine: only mounted ones are reached here.
pub(crate) fn is_of_another_machine(_path: &Path) -> bool {
    false
}

/// Options for reading a file. If it is a FIFO or a terminal, opening it neither waits nor has effects.
pub(crate) fn reading(follows_links: bool) -> OpenOptions {
    let links = if follows_links { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | links;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits() as i32);
    options
}
