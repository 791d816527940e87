//! Opens the folder at a path, and makes those that are missing. Links are followed here, one by one: not those of
//! other users, who could else choose where files are made.

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The most links on a path, as for the kernel.
const MAX_LINKS: u32 = 40;

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether missing folders are made, for the user alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    Refuse,
}

/// Opens the folder at a path for reading. A link on the path must be this user's, or root's in a folder where nobody
/// else can put one.
///
/// # Errors
/// There is no such folder, or another user's link is on the path.
pub(crate) fn open_folder(path: &Path, user: u32, missing: Missing) -> io::Result<OwnedFd> {
    let bytes = path.as_os_str().as_bytes();
    let mut walk = Walk { folder: place(CWD, b".")?, left: Vec::new(), links: 0, user, missing };
    walk.push(bytes)?;
    while let Some(name) = walk.left.pop() {
        walk.enter(&name)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(&walk.folder, ".", flags, Mode::empty())?)
}

struct Walk {
    folder: OwnedFd,
    /// The remaining names, the next one last.
    left: Vec<Vec<u8>>,
    links: u32,
    user: u32,
    missing: Missing,
}

impl Walk {
    /// Puts the names of a path before the remaining ones.
    fn push(&mut self, path: &[u8]) -> io::Result<()> {
        if path.starts_with(b"/") {
            self.folder = place(CWD, b"/")?;
        }
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
        self.left.extend(names.rev().map(<[u8]>::to_vec));
        Ok(())
    }

    fn enter(&mut self, name: &[u8]) -> io::Result<()> {
        let found = match place(&self.folder, name) {
            Err(Errno::NOENT) if self.missing == Missing::Make => self.make(name)?,
            found => found?,
        };
        let status = fstat(&found)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
            self.folder = found;
            return Ok(());
        }
        let above = fstat(&self.folder)?;
        if !may_follow(self.user, status.st_uid, (above.st_uid, above.st_mode)) {
            return Err(io::Error::other("a link of another user's is on its path"));
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(&found, "", Vec::new())?;
        self.push(target.as_bytes())
    }

    fn make(&self, name: &[u8]) -> rustix::io::Result<OwnedFd> {
        match mkdirat(&self.folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => place(&self.folder, name),
            Err(error) => Err(error),
        }
    }
}

fn place(folder: impl std::os::fd::AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, PLACE, Mode::empty())
}

/// Whether a user may follow a link of this owner, in a folder of that owner and mode.
fn may_follow(user: u32, owner: u32, (folder_owner, folder_mode): (u32, u32)) -> bool {
    let others_write = folder_mode & (Mode::WGRP | Mode::WOTH | Mode::SVTX).bits() != 0;
    owner == user || (owner == 0 && [0, user].contains(&folder_owner) && !others_write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn another_users_link_is_not_followed() {
        assert!(may_follow(7, 7, (8, 0o40777)));
        assert!(may_follow(7, 0, (0, 0o40755)));
        for (owner, folder) in [(8, (7, 0o40755)), (0, (0, 0o41777)), (0, (8, 0o40755)), (0, (0, 0o40775))] {
            assert!(!may_follow(7, owner, folder), "{owner} {folder:?}");
        }
        assert!(!may_follow(0, 7, (7, 0o40755)));
    }

    #[test]
    fn own_links_and_missing_folders_are_entered() {
        let top = std::env::temp_dir().join(format!("nyquist-walk-{}", std::process::id()));
        fs::create_dir(&top).unwrap();
        let user = fs::metadata(&top).unwrap().uid();
        symlink(&top, top.join("link")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let path = top.join("link/./new/../new/inner");
        let open = |path: &Path, missing| open_folder(path, user, missing);
        assert_eq!(open(&path, Missing::Refuse).unwrap_err().kind(), io::ErrorKind::NotFound);
        open(&path, Missing::Make).unwrap();
        let made = fs::metadata(top.join("new/inner")).unwrap();
        assert_eq!((made.is_dir(), made.mode() & 0o777), (true, 0o700));
        open(&path, Missing::Refuse).unwrap();
        assert!(open(&top.join("loop"), Missing::Make).is_err());
        fs::write(top.join("file"), "").unwrap();
        assert!(open(&top.join("file"), Missing::Make).is_err());
        fs::remove_dir_all(&top).unwrap();
    }
}
