//! Resolves a path to an open folder and the name in it. Links are followed here, one by one, and not by
//! the kernel, so that another user's links cannot decide which file is written.

use crate::output::OutputError;
use nyquist_record::linux::{file_user, invoking_user};
use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, accessat, fstat, fstatfs, open, openat,
    readlinkat, statat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The maximum number of links, the same as the kernel's.
const MAX_LINKS: u32 = 40;

/// The target of a path.
pub(super) enum Target {
    /// A regular file, or no file yet.
    File(FolderEntry),
    /// A FIFO, a socket or a device, opened with `O_PATH`.
    Special(OwnedFd, FileType),
    /// A descriptor of this process.
    Descriptor(u32),
}

/// A name in an open folder. It stays valid if the folder itself is renamed.
#[derive(Debug)]
pub(crate) struct FolderEntry {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    /// The path without links.
    pub(super) path: PathBuf,
}

/// Resolves a path, and checks whether a file can be created there. It changes nothing.
pub(super) fn find(path: &Path) -> Result<Target, OutputError> {
    let found = Walk::begin(path)?.go(Callers::now())?;
    if let Target::File(place) = &found {
        accessat(&place.folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
    }
    Ok(found)
}

/// The users whose files count as the caller's own: the user whose rights the process has, and under sudo the
/// user who typed the command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callers {
    own: u32,
    invoking: Option<u32>,
}

impl Callers {
    pub(super) fn now() -> Self {
        Self { own: file_user(), invoking: invoking_user().map(|user| user.uid) }
    }

    /// Whether a user is one of the caller's own.
    pub(super) fn include(self, user: u32) -> bool {
        user == self.own || Some(user) == self.invoking
    }

    /// Whether a link in a folder may be followed for writing, given both owners and the folder's mode. If
    /// others may write into the folder, the link must be the caller's. Elsewhere it may be root's or the
    /// folder owner's, but a process of root trusts only root.
    fn may_follow(self, owner: u32, folder_owner: u32, folder_mode: u32) -> bool {
        if self.include(owner) {
            return true;
        }
        let is_shared = folder_mode & (libc::S_IWGRP | libc::S_IWOTH | libc::S_ISVTX) != 0;
        let keeper = |user| user == 0 || self.include(user) || (self.own != 0 && user == folder_owner);
        !is_shared && keeper(owner) && keeper(folder_owner)
    }
}

/// A walk from folder to folder.
struct Walk {
    folder: OwnedFd,
    /// Its path, without links.
    path: PathBuf,
    /// The remaining names, the next one last.
    left: Vec<OsString>,
    links: u32,
}

impl Walk {
    fn begin(path: &Path) -> Result<Self, OutputError> {
        let start = if path.is_absolute() { PathBuf::from("/") } else { std::env::current_dir()? };
        let folder = open(if path.is_absolute() { "/" } else { "." }, FOLDER, Mode::empty())?;
        let mut walk = Self { folder, path: start, left: Vec::new(), links: 0 };
        walk.push(path.as_os_str())?;
        Ok(walk)
    }

    /// Puts the names of a path before the remaining ones.
    fn push(&mut self, path: &OsStr) -> Result<(), OutputError> {
        let bytes = path.as_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let names_folder = bytes.ends_with(b"/") || [&b"."[..], b".."].contains(&last_name(bytes));
        if names_folder && self.left.is_empty() {
            let is_there = self.path.join(path).is_dir();
            return Err(if is_there { OutputError::IsFolder } else { OutputError::NoFolder(path.into()) });
        }
        let names = bytes.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
        self.left.extend(names.rev().map(|name| OsString::from_vec(name.to_vec())));
        Ok(())
    }

    fn go(mut self, callers: Callers) -> Result<Target, OutputError> {
        while let Some(name) = self.left.pop() {
            if name == ".." {
                self.enter(&name)?;
                continue;
            }
            let is_last = self.left.is_empty();
            let there =
                openat(&self.folder, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            let there = match there {
                Err(Errno::NOENT) if is_last => return Ok(self.new_file(name)),
                Err(Errno::NOENT) => return Err(OutputError::NoFolder(self.missing(&name))),
                there => there?,
            };
            let stat = fstat(&there)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    if let (true, Some(number)) = (is_last, self.descriptor(&name)) {
                        return Ok(Target::Descriptor(number));
                    }
                    self.follow(&name, &there, &stat, callers)?;
                }
                FileType::Directory if is_last => return Err(OutputError::IsFolder),
                FileType::Directory => self.enter(&name)?,
                _ if !is_last => return Err(Errno::NOTDIR.into()),
                FileType::RegularFile => {
                    let folder = fstat(&self.folder)?;
                    let owners = [stat.st_uid, folder.st_uid];
                    let is_sticky = folder.st_mode & libc::S_ISVTX != 0;
                    if is_sticky && callers.own != 0 && !owners.contains(&callers.own) {
                        return Err(OutputError::OthersFile { owner: stat.st_uid });
                    }
                    return Ok(self.new_file(name));
                }
                kind => {
                    let folder = fstat(&self.folder)?;
                    if !callers.may_follow(stat.st_uid, folder.st_uid, folder.st_mode) {
                        return Err(OutputError::Special { owner: stat.st_uid });
                    }
                    return Ok(Target::Special(there, kind));
                }
            }
        }
        Err(OutputError::IsFolder)
    }

    fn new_file(self, name: OsString) -> Target {
        let path = self.path.join(&name);
        Target::File(FolderEntry { folder: self.folder, name, path })
    }

    /// The path of a missing folder, for the error.
    fn missing(&self, name: &OsStr) -> PathBuf {
        let between = self.left.iter().skip(1).rev();
        between.fold(self.path.join(name), |path, name| path.join(name))
    }

    /// Enters a folder. It is opened as a directory, so that the kernel mounts automatic mounts there.
    fn enter(&mut self, name: &OsStr) -> Result<(), OutputError> {
        self.folder = openat(&self.folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        if name == ".." {
            self.path.pop();
        } else {
            self.path.push(name);
        }
        Ok(())
    }

    /// Continues at the target of a link. The link that is read is the one that was checked.
    fn follow(
        &mut self,
        name: &OsStr,
        link: &OwnedFd,
        stat: &Stat,
        callers: Callers,
    ) -> Result<(), OutputError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let folder = fstat(&self.folder)?;
        if !self.is_kernels(name) && !callers.may_follow(stat.st_uid, folder.st_uid, folder.st_mode) {
            return Err(OutputError::Link { link: self.path.join(name), owner: stat.st_uid });
        }
        let target = OsString::from_vec(readlinkat(link, "", Vec::new())?.into_bytes());
        if target.as_bytes().starts_with(b"/") {
            self.folder = open("/", FOLDER, Mode::empty())?;
            self.path = PathBuf::from("/");
        }
        self.push(&target)
    }

    /// Whether it is one of the links at the top of `/proc`, which have no owner in a user namespace.
    fn is_kernels(&self, name: &OsStr) -> bool {
        self.path == Path::new("/proc") && (name == "self" || name == "thread-self") && self.is_in_proc()
    }

    /// The number of this process's own descriptor, if the name is that of one.
    fn descriptor(&self, name: &OsStr) -> Option<u32> {
        let number = name.to_str()?.parse().ok()?;
        let own = Path::new("/proc").join(std::fs::read_link("/proc/self").ok()?);
        let below = self.path.strip_prefix(&own).ok()?;
        let mut parts = below.iter().map(OsStr::as_bytes);
        let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
        let is_folder =
            matches!(parts, [Some(b"fd"), None, None, None] | [Some(b"task"), Some(_), Some(b"fd"), None]);
        (is_folder && self.is_in_proc()).then_some(number)
    }

    fn is_in_proc(&self) -> bool {
        fstatfs(&self.folder).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
    }
}

/// The flags for opening folders on the way. `O_PATH` needs no right to list them.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Whether a name still refers to a file.
pub(super) fn is_there(folder: &OwnedFd, name: &OsStr, file: &File) -> bool {
    let (Ok(there), Ok(own)) = (statat(folder, name, AtFlags::SYMLINK_NOFOLLOW), fstat(file)) else {
        return false;
    };
    (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_believed_by_its_owner_and_folder() {
        const ANN: Callers = Callers { own: 1000, invoking: None };
        const ROOT: Callers = Callers { own: 0, invoking: None };
        const SUDO: Callers = Callers { own: 0, invoking: Some(1000) };
        let check = |callers: Callers, owner, (folder_owner, mode), expected| {
            let followed = callers.may_follow(owner, folder_owner, mode);
            assert_eq!(followed, expected, "{callers:?}: {owner} in {folder_owner} {mode:o}");
        };
        let (tmp, bin, common) = ((0, 0o41777), (0, 0o40755), (1001, 0o40775));
        // In a shared folder only one's own links, and in root's own folder also root's.
        for callers in [ANN, SUDO] {
            check(callers, 1000, tmp, true);
            check(callers, 1001, tmp, false);
            check(callers, 0, bin, true);
            check(callers, 1001, bin, false);
            check(callers, 1001, common, false);
        }
        check(ANN, 0, tmp, false);
        check(ROOT, 0, tmp, true);
        check(ROOT, 1000, tmp, false);
        check(SUDO, 0, tmp, true);
        // In a folder of another user, into which no third user may write.
        check(ANN, 1001, (1001, 0o40755), true);
        check(ANN, 0, (1001, 0o40755), true);
        check(ROOT, 1001, (1001, 0o40755), false);
        check(ROOT, 1000, (1000, 0o40700), false);
        check(SUDO, 1000, (1000, 0o40700), true);
        check(SUDO, 1001, (1001, 0o40700), false);
        // A sticky folder, or one of a group, counts as shared, even if no other user may write there now.
        check(ANN, 0, (0, 0o41755), false);
        check(ANN, 0, (0, 0o40775), false);
    }
}
