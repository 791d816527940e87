//! Notification of the first file that is made in a folder: inotify(7).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::check;
use super::poll::PollSet;

/// Notifies of the first file that is made in a folder, or moved into it.
#[derive(Debug)]
pub(crate) struct FolderWatch {
    descriptor: OwnedFd,
}

impl FolderWatch {
    /// Watches for a file from now on.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let path = CString::new(folder.as_os_str().as_bytes())?;
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(fd) };
        let kinds = libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ONLYDIR | libc::IN_ONESHOT;
        // SAFETY: the path ends in a zero, and the call only reads it.
        check(unsafe { libc::inotify_add_watch(fd, path.as_ptr(), kinds) })?;
        Ok(Self { descriptor })
    }

    /// The descriptor, which becomes readable when a file was made, and stays readable.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Whether a file was made. If this cannot be determined, returns true.
    pub(crate) fn has_changed(&self) -> bool {
        let mut poll = PollSet::default();
        let place = poll.add(self.descriptor());
        poll.wait(Some(0)).is_err() || poll.ready(place).readable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_heard_of_when_it_is_made() {
        let folder = std::env::temp_dir().join(format!("nyquist-watch-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let watch = FolderWatch::of(&folder).unwrap();
        let before = watch.has_changed();
        fs::write(folder.join("x".repeat(255)), b"").unwrap();
        let after = [(); 2].map(|()| watch.has_changed());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((before, after), (false, [true; 2]), "whoever looks next hears of it, too");
        assert!(FolderWatch::of(&folder).is_err());
    }
}
