//! Access to files in places where others may write. Their status is checked before they are opened, and
//! links are not followed in folders.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::{check, check_long};

/// A file that is held without being opened (`O_PATH`): no driver or file system server is notified.
#[derive(Debug)]
pub(crate) struct PathHandle {
    descriptor: OwnedFd,
    pub(crate) status: Status,
}

/// The status of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The numbers of its device.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    pub(crate) owner: u32,
    pub(crate) links: u32,
    /// Its type and permissions.
    mode: u32,
}

impl Status {
    /// The status of an open descriptor. Does not query the server of a file system.
    pub(crate) fn of(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        // SAFETY: a statx is plain numbers, for which zeros are valid.
        let mut found: libc::statx = unsafe { zeroed() };
        let (fd, path, mask) = (descriptor.as_raw_fd(), c"".as_ptr(), libc::STATX_BASIC_STATS);
        // SAFETY: the path ends in a zero, and the call writes to `found` alone.
        check_long(unsafe { libc::syscall(libc::SYS_statx, fd, path, flags, mask, &raw mut found) })?;
        Ok(Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            owner: found.stx_uid,
            links: found.stx_nlink,
            mode: u32::from(found.stx_mode),
        })
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }

    /// The permissions (chmod(2)).
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// Whether both are the same file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl PathHandle {
    /// Finds an entry of a folder. A mount point is an error, or has another device.
    pub(crate) fn in_folder(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Self> {
        if name.as_bytes().contains(&b'/') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let name = CString::new(name.as_bytes())?;
        let descriptor = match open_in_folder(folder, &name) {
            // Before Linux 5.6, or forbidden by a seccomp filter that does not know the call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                open_at(folder, &name)
            }
            result => result,
        }?;
        Self::new(descriptor)
    }

    /// Finds a path and follows links, including those in `/proc` to a process's descriptors.
    pub(crate) fn shown_at(path: &Path) -> io::Result<Self> {
        Self::new(OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?.into())
    }

    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let status = Status::of(descriptor.as_fd())?;
        Ok(Self { descriptor, status })
    }

    /// Opens what was found and nothing else.
    pub(crate) fn open(&self, options: &OpenOptions) -> io::Result<File> {
        options.open(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
    }
}

/// Options that open a regular file without blocking, for reading and optionally for writing.
pub(crate) fn at_once(write: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_NONBLOCK);
    options
}

/// Opens a folder, if the path's last part is not a link.
pub(crate) fn folder(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}

/// Makes a folder for its owner only.
pub(crate) fn make_folder(place: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: the name ends in a zero, and the call only reads it.
    check(unsafe { libc::mkdirat(place.as_raw_fd(), name.as_ptr(), 0o700) }).map(drop)
}

/// Removes an entry of a folder that is not a folder itself. Removes a link, not its target.
pub(crate) fn remove_file(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    unlink(folder, name, 0)
}

/// Removes an empty folder.
pub(crate) fn remove_folder(place: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    unlink(place, name, libc::AT_REMOVEDIR)
}

fn unlink(folder: BorrowedFd<'_>, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: the name ends in a zero, and the call only reads it.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// A file in memory.
pub(crate) fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: the name ends in a zero; the call returns a new descriptor.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

const PATH_FLAGS: libc::c_int = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;

fn open_in_folder(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: an open_how is plain numbers, for which zeros are valid.
    let mut how: libc::open_how = unsafe { zeroed() };
    how.flags = PATH_FLAGS as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_XDEV;
    let (fd, len) = (folder.as_raw_fd(), size_of_val(&how));
    // SAFETY: the name ends in a zero, and the call reads `len` bytes of `how`.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_openat2, fd, name.as_ptr(), &raw const how, len) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn open_at(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name ends in a zero, and the call only reads it.
    let fd = check(unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), PATH_FLAGS) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_seen_and_not_followed() {
        let path = std::env::temp_dir().join(format!("nyquist-beneath-{}", std::process::id()));
        fs::create_dir_all(path.join("a")).unwrap();
        let path = path.canonicalize().unwrap();
        fs::write(path.join("a/file"), b"text").unwrap();
        symlink("file", path.join("a/link")).unwrap();
        symlink("a", path.join("b")).unwrap();
        let held = folder(&path.join("a")).unwrap();
        let file = PathHandle::in_folder(held.as_fd(), "file".as_ref()).unwrap();
        assert!(file.status.is_file() && !file.status.is_folder());
        assert_eq!(io::read_to_string(file.open(&at_once(false)).unwrap()).unwrap(), "text");
        let is_file = |found: io::Result<PathHandle>| found.is_ok_and(|found| found.status.is_file());
        assert!(!is_file(PathHandle::in_folder(held.as_fd(), "link".as_ref())));
        assert!(!is_file(PathHandle::in_folder(held.as_fd(), "../a/file".as_ref())));
        assert!(folder(&path.join("b")).is_err());
        // The way through links only is separate code.
        assert!(!is_file(open_at(held.as_fd(), c"link").and_then(PathHandle::new)));
        assert!(remove_folder(held.as_fd(), "file".as_ref()).is_err());
        remove_file(held.as_fd(), "link".as_ref()).unwrap();
        assert!(path.join("a/file").exists());
        fs::remove_dir_all(path).unwrap();
    }
}
