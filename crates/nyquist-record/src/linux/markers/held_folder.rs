//! A folder that is held open together with its parent, so that only files in that very folder are read and
//! removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::PathBuf;

use crate::linux::sys::beneath::{self, PathHandle, Status, at_once};

/// The most entries of a folder that are read.
pub(super) const MAX_ENTRIES: usize = 1 << 16;

/// A folder that is held open, and its parent.
#[derive(Debug)]
pub(super) struct HeldFolder {
    place: File,
    name: OsString,
    pub(super) folder: File,
    pub(super) status: Status,
}

impl HeldFolder {
    /// Opens a folder in its parent. A mount point is refused.
    pub(super) fn new(place: File, name: &OsStr) -> io::Result<Self> {
        let found = PathHandle::in_folder(place.as_fd(), name)?;
        let status = found.status;
        if !status.is_folder() || status.device != Status::of(place.as_fd())?.device {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder: found.open(&at_once(false))?, place, name: name.to_owned(), status })
    }

    /// A path to the folder itself, regardless of what is at its original path now.
    pub(super) fn inner_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = OsString> + use<> {
        names(&self.folder)
    }

    /// Removes at most `most` files of the folder. Then removes the folder, if it is still in its parent and
    /// is empty. Leaves what cannot be removed to other clean-up tools. Does not touch other folders and
    /// mounts.
    pub(super) fn remove(&self, most: usize) {
        for name in self.names().take(most) {
            let _ = beneath::remove_file(self.folder.as_fd(), &name);
        }
        let is_here = PathHandle::in_folder(self.place.as_fd(), &self.name)
            .is_ok_and(|found| found.status.is(&self.status));
        if is_here {
            // If another folder has replaced it by now, that one is empty, and its owner may have moved it
            // there.
            let _ = beneath::remove_folder(self.place.as_fd(), &self.name);
        }
    }
}

/// The names of the entries of a folder.
pub(super) fn names(folder: &File) -> impl Iterator<Item = OsString> + use<> {
    let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())).into_iter().flatten();
    entries.take(MAX_ENTRIES).flatten().map(|entry| entry.file_name())
}
