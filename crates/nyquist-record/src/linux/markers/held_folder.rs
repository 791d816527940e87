//! A folder that is held open with the place that it lies in: what is read and removed is of that very folder.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::PathBuf;

use crate::linux::sys::beneath::{self, Found, Status, at_once};

/// How many entries of a folder are looked at.
pub(super) const MAX_ENTRIES: usize = 1 << 16;

/// A folder that is held open, and the place where it was found.
#[derive(Debug)]
pub(super) struct Held {
    place: File,
    name: OsString,
    pub(super) folder: File,
    pub(super) status: Status,
}

impl Held {
    /// Opens a folder in a place. What is mounted there is none of the place's.
    pub(super) fn new(place: File, name: &OsStr) -> io::Result<Self> {
        let found = Found::in_folder(place.as_fd(), name)?;
        let status = found.status;
        if !status.is_folder() || status.device != Status::of(place.as_fd())?.device {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder: found.open(&at_once(false))?, place, name: name.to_owned(), status })
    }

    /// The very folder, whatever is at the path where it was made.
    pub(super) fn inner_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = OsString> + use<> {
        names(&self.folder)
    }

    /// Removes the files that lie in the folder, so many at most, and then the folder, if it is still where it was found and
    /// nothing else is in it. What cannot be removed is left to whatever cleans the place up; other folders, and what is
    /// mounted, are not ours.
    pub(super) fn remove(&self, most: usize) {
        for name in self.names().take(most) {
            let _ = beneath::remove_file(self.folder.as_fd(), &name);
        }
        let is_here =
            Found::in_folder(self.place.as_fd(), &self.name).is_ok_and(|found| found.status.is(&self.status));
        if is_here {
            // If another folder has its place by now it is one that is empty, and whose owner may have moved it there.
            let _ = beneath::remove_folder(self.place.as_fd(), &self.name);
        }
    }
}

/// The names of what is in a folder.
pub(super) fn names(folder: &File) -> impl Iterator<Item = OsString> + use<> {
    let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())).into_iter().flatten();
    entries.take(MAX_ENTRIES).flatten().map(|entry| entry.file_name())
}
