//! A file that is written under a temporary name in an open folder. It appears completely or not at all.

use super::place::{Callers, FolderEntry, Target, find, is_there};
use super::stale_files;
use crate::identity::{Rights, as_invoking_user};
use crate::output::OutputError;
use nyquist_record::linux::file_user;
use nyquist_system::with_unused_name;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The number of names for an existing file that another one replaces.
const OLD_NAMES: u32 = 16;

/// The rights to a folder that everybody may enter.
const FOR_ALL: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);

/// A file with a temporary name. It is removed unless it is published.
#[derive(Debug)]
pub(crate) struct PendingFile {
    file: File,
    temporary: OsString,
    place: FolderEntry,
    /// The name for messages.
    shown: PathBuf,
    /// The folder that was created only for this file.
    own_folder: Option<FolderEntry>,
    /// The process that created it. No other process publishes or removes it.
    rights: Rights,
    has_appeared: bool,
}

impl PendingFile {
    /// Creates the temporary file. Removes files of the same name that dead recorders left behind.
    pub(crate) fn create(place: FolderEntry, shown: PathBuf, rights: Rights) -> Result<Self, OutputError> {
        let (file, temporary) = rights.with(|| {
            stale_files::remove(&place.folder, &place.name, Callers::now());
            make_temporary(&place)
        })??;
        Ok(Self { file, temporary, place, shown, own_folder: None, rights, has_appeared: false })
    }

    /// Creates the temporary file in a new folder below `parent`, which no other user may enter, and whose
    /// name cannot be predicted. Both belong to the user.
    pub(crate) fn create_in_private_folder(parent: &Path, name: &OsStr) -> Result<Self, OutputError> {
        as_invoking_user(|| Self::create_in_private_folder_as_user(parent, name))?
    }

    fn create_in_private_folder_as_user(parent: &Path, name: &OsStr) -> Result<Self, OutputError> {
        let place = new_private_folder(parent)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&place.folder, &place.name, flags, Mode::empty())?;
        let stat = fstat(&folder)?;
        if stat.st_uid != file_user() || stat.st_mode & 0o077 != 0 {
            return Err(Errno::PERM.into());
        }
        let inner = FolderEntry { folder, name: name.to_owned(), path: place.path.join(name) };
        let shown = inner.path.clone();
        match Self::create(inner, shown, Rights::Users) {
            Ok(mut pending) => {
                pending.own_folder = Some(place);
                Ok(pending)
            }
            Err(error) => {
                let _ = unlinkat(&place.folder, &place.name, AtFlags::REMOVEDIR);
                Err(error)
            }
        }
    }

    /// Its name for messages.
    pub(crate) fn display_path(&self) -> &Path {
        &self.shown
    }

    /// The absolute path, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.place.path
    }

    /// Writes files into a folder of that name beside it, which is created if it is missing. Existing
    /// files are replaced.
    pub(crate) fn write_sibling_files<'f>(
        &self,
        folder: &OsStr,
        files: impl Iterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<(), OutputError> {
        self.rights.with(|| self.write_sibling_files_with_rights(folder, files))?
    }

    fn write_sibling_files_with_rights<'f>(
        &self,
        folder: &OsStr,
        files: impl Iterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<(), OutputError> {
        match mkdirat(&self.place.folder, folder, FOR_ALL) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = openat(&self.place.folder, folder, flags, Mode::empty())?;
        let owner = fstat(&inner)?.st_uid;
        if !Callers::now().include(owner) {
            return Err(OutputError::OthersFolder { owner });
        }
        for (name, bytes) in files {
            if name.contains('/') {
                return Err(Errno::INVAL.into());
            }
            let path = self.place.path.with_file_name(folder).join(name);
            let place = FolderEntry { folder: inner.try_clone()?, name: name.into(), path: path.clone() };
            let mut pending = Self::create(place, path, self.rights.clone())?;
            pending.file.write_all(bytes)?;
            pending.replace()?;
        }
        Ok(())
    }

    /// The file for writing.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives it its final name. An existing file of that name is renamed.
    pub(crate) fn appear(mut self) -> io::Result<()> {
        self.rights.with(|| self.take_name())??;
        self.has_appeared = true;
        Ok(())
    }

    /// Gives it its final name. An existing file of that name is not kept.
    pub(crate) fn replace(mut self) -> io::Result<()> {
        self.rights.with(|| self.replace_name())??;
        self.has_appeared = true;
        Ok(())
    }

    fn replace_name(&self) -> io::Result<()> {
        let FolderEntry { folder, name, .. } = &self.place;
        self.check_is_there()?;
        Ok(renameat(folder, &self.temporary, folder, name)?)
    }

    fn check_is_there(&self) -> io::Result<()> {
        if is_there(&self.place.folder, &self.temporary, &self.file) {
            return Ok(());
        }
        Err(io::Error::other("another program removed or replaced it while it was written"))
    }

    fn take_name(&self) -> io::Result<()> {
        let FolderEntry { folder, name, .. } = &self.place;
        self.check_is_there()?;
        let old = keep_old(folder, name)?;
        if let Err(error) = renameat(folder, &self.temporary, folder, name) {
            if let Some(old) = old {
                renameat(folder, &old, folder, name)?;
            }
            return Err(error.into());
        }
        Ok(())
    }

    fn remove(&self) {
        if is_there(&self.place.folder, &self.temporary, &self.file) {
            let _ = unlinkat(&self.place.folder, &self.temporary, AtFlags::empty());
        }
        if let Some(own) = &self.own_folder {
            let _ = unlinkat(&own.folder, &own.name, AtFlags::REMOVEDIR);
        }
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.has_appeared {
            // Files that cannot be removed are left to the next recorder with that name.
            let _ = self.rights.with(|| self.remove());
        }
    }
}

/// Makes a folder that everybody may enter, and those above it that are missing. Another user's links are not
/// followed.
pub(crate) fn create_folders(folder: &Path) -> Result<(), OutputError> {
    // Without a slash at its end.
    let folder: PathBuf = folder.components().collect();
    let mut folders: Vec<_> = folder.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    folders.reverse();
    for folder in folders {
        match find(folder) {
            Ok(Target::File(place)) => match mkdirat(&place.folder, &place.name, FOR_ALL) {
                // Another process has made it, or it is no folder: what is written into it says so.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            },
            Ok(_) => return Err(Errno::NOTDIR.into()),
            Err(OutputError::IsFolder) => {}
            Err(denied) => return Err(denied),
        }
    }
    Ok(())
}

/// Makes a folder below `parent` that no other user may enter.
fn new_private_folder(parent: &Path) -> Result<FolderEntry, OutputError> {
    with_unused_name(|number| {
        let place = match find(&parent.join(format!("nyquist-{number:016x}"))) {
            Ok(Target::File(place)) => place,
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(denied) => return Ok(Err(denied)),
        };
        mkdirat(&place.folder, &place.name, Mode::RWXU)?;
        Ok(Ok(place))
    })?
}

/// A new file with a temporary name, which is locked while this process runs.
fn make_temporary(place: &FolderEntry) -> io::Result<(File, OsString)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut is_first = true;
    with_unused_name(|number| {
        // Other users can have created files with all predictable names.
        let number = if std::mem::take(&mut is_first) { 0 } else { number };
        let temporary = stale_files::name(&place.name, std::process::id(), number);
        let file = File::from(openat(&place.folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
        // Another process may have treated it as a leftover before it was locked. If files cannot be locked,
        // no process removes stale files.
        let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK);
        if is_locked && is_there(&place.folder, &temporary, &file) {
            Ok((file, temporary))
        } else {
            Err(io::ErrorKind::AlreadyExists.into())
        }
    })
}

/// Renames an existing file, and returns the new name: `NAME.old`, or an unused one if that is not possible.
fn keep_old(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<OsString>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(_) => {}
    }
    let old = with_suffix(name, ".old");
    let Err(error) = renameat(folder, name, folder, &old) else { return Ok(Some(old)) };
    let others = (2..=OLD_NAMES).map(|number| with_suffix(name, &format!(".old.{number}")));
    let mut retained =
        others.filter(|old| renameat_with(folder, name, folder, old, RenameFlags::NOREPLACE).is_ok());
    retained.next().map(Some).ok_or_else(|| error.into())
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}
