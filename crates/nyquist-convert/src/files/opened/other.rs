//! Files at the paths of processes, on systems other than Linux: paths are followed without links.

use super::FileDenied;
use crate::event::Pid;
use nyquist_system::open_regular_unlinked;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

impl From<io::Error> for FileDenied {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Absent,
            io::ErrorKind::InvalidInput => Self::NotRegular,
            _ => Self::Unreadable(error),
        }
    }
}

/// A folder from which paths are followed.
#[derive(Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// A process's own root folder: processes of these systems have none.
    pub(crate) fn of_process(_pid: Pid) -> Option<Self> {
        None
    }

    /// Ours.
    pub(crate) fn own() -> Option<Self> {
        None
    }

    /// The mount that it is on, and its number in there: not known.
    #[expect(clippy::unused_self, reason = "on Linux, it is known")]
    pub(crate) fn mount(&self) -> Option<(u64, u64)> {
        None
    }

    /// A folder that the user has named.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        folder.is_dir().then(|| Self(folder.to_owned()))
    }

    /// The folder for temporary files in it.
    pub(crate) fn temporary(&self) -> Option<Self> {
        Self::at(&self.0.join("tmp"))
    }

    /// Opens a regular file for reading. No link is followed on the way.
    pub(crate) fn open(&self, path: &Path) -> Result<OpenedFile, FileDenied> {
        let mut place = self.0.clone();
        for component in path.components() {
            match component {
                Component::Normal(name) => place.push(name),
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => return Err(FileDenied::Absent),
            }
            if place.symlink_metadata()?.is_symlink() {
                return Err(FileDenied::Link);
            }
        }
        Ok(OpenedFile { file: open_regular_unlinked(&place)? })
    }
}

/// Opens a regular file at a path, and follows all links: a path that the user has named.
pub(crate) fn open_regular(path: &Path) -> Result<File, FileDenied> {
    Ok(nyquist_system::open_regular(path)?)
}

/// A regular file that is open.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
}

impl OpenedFile {
    /// One that was found some other way.
    pub(crate) fn without_place(file: File) -> Self {
        Self { file }
    }

    /// The file: what the user names is trusted.
    #[expect(clippy::unnecessary_wraps, reason = "on Linux, some files are not trusted")]
    pub(crate) fn trusted(self, _users: &[u32]) -> Result<Self, FileDenied> {
        Ok(self)
    }

    /// Removes the file: only what a recorded process has left is removed.
    #[expect(clippy::unused_self, reason = "on Linux, files of recorded processes are removed")]
    pub(crate) fn remove(&self, _user: u32) -> Result<(), FileDenied> {
        Err(FileDenied::Absent)
    }
}

/// The user whose rights a process has: none can be recorded.
pub(crate) fn user_of(_pid: Pid) -> Option<u32> {
    None
}

/// The user whose rights we have. Owners of files are not compared.
pub(crate) fn own_user() -> u32 {
    0
}
