//! The folder of spools: a folder for each recording, with its segments and a lock that its recorder holds.
//!
//! All files are reached through the open folder above them, and never through links. Those of other users are refused.

use crate::header::BootId;
use crate::path_walk::{Missing, open_folder};
use nyquist_system::{read_kernel_text, with_unused_name};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The file that the recorder holds a lock on.
const LOCK: &str = "lock";

/// How names of folders begin that are not spools yet.
const UNFINISHED: &str = ".new-";

/// The ending of the names of segments.
const ENDING: &str = ".spool";

/// The most spools that are looked at, and the most segments of one.
const MAX_ENTRIES: usize = 1 << 14;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const PRIVATE_FOLDER: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The folder of all spools of a user.
#[derive(Debug)]
pub struct SpoolFolder {
    folder: OwnedFd,
    path: PathBuf,
    user: u32,
}

/// The spool of a recording of this process.
#[derive(Debug)]
pub struct OwnSpool {
    place: Place,
    _lock: File,
    segments: u32,
}

/// A spool that no recorder writes to any more. It is locked while this exists.
#[derive(Debug)]
pub struct AbandonedSpool {
    place: Place,
    _lock: File,
}

/// What is in the folder of spools.
#[derive(Debug)]
pub enum Entry {
    /// A spool whose recorder lives.
    Live,
    /// A spool whose recorder has ended.
    Abandoned(AbandonedSpool),
    /// Something else: its name, and why it is not used.
    Refused(String, String),
}

/// An open folder, and its name in the folder above.
#[derive(Debug)]
struct Place {
    above: OwnedFd,
    folder: OwnedFd,
    name: String,
    /// The user that all files belong to.
    user: u32,
}

impl SpoolFolder {
    /// Opens the folder, which is made if it is missing. It has to belong to that user, with whose rights this is
    /// called, and others must not be able to write to it.
    pub fn create(path: &Path, user: u32) -> io::Result<Self> {
        Self::opened(path, user, Missing::Make)
    }

    /// Opens the folder.
    pub fn open(path: &Path, user: u32) -> io::Result<Self> {
        Self::opened(path, user, Missing::Refuse)
    }

    fn opened(path: &Path, user: u32, missing: Missing) -> io::Result<Self> {
        let folder = open_folder(path, user, missing)?;
        let stat = fstat(&folder)?;
        check_owner(&stat, user)?;
        if stat.st_mode & (Mode::WGRP | Mode::WOTH).bits() != 0 {
            return Err(io::Error::other("other users may write to it"));
        }
        Ok(Self { folder, path: path.to_owned(), user })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it, by name.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut names = names_in(&self.folder)?;
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        Ok(names.into_iter().map(|name| self.entry(name)).collect())
    }

    /// The entry of a name.
    pub fn entry(&self, name: String) -> Entry {
        if name.contains('/') || name.starts_with('.') || name.is_empty() {
            return Entry::Refused(name, "it is no name of a recording".to_owned());
        }
        match self.abandoned(&name) {
            Ok(spool) => spool.map_or(Entry::Live, Entry::Abandoned),
            Err(error) => Entry::Refused(name, reason(&error)),
        }
    }

    /// The spool of that name; `None` if its recorder lives.
    fn abandoned(&self, name: &str) -> io::Result<Option<AbandonedSpool>> {
        let folder = openat(&self.folder, name, FOLDER, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => io::Error::other("there is none of that name"),
            error => error.into(),
        })?;
        check_owner(&fstat(&folder)?, self.user)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = openat(&folder, LOCK, flags, Mode::empty())?;
        check_file(&fstat(&lock)?, self.user)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        let above = self.folder.try_clone()?;
        let place = Place { above, folder, name: name.to_owned(), user: self.user };
        Ok(Some(AbandonedSpool { place, _lock: lock.into() }))
    }

    /// Makes a spool that this process holds the lock of.
    pub fn make_spool(&self) -> io::Result<OwnSpool> {
        with_unused_name(|number| {
            let name = format!("{}-{:04x}", std::process::id(), number & 0xffff);
            let unfinished = format!("{UNFINISHED}{name}");
            mkdirat(&self.folder, &unfinished, PRIVATE_FOLDER)?;
            let folder = openat(&self.folder, &unfinished, FOLDER, Mode::empty())?;
            check_owner(&fstat(&folder)?, self.user)?;
            let lock = new_file(&folder, LOCK)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            // With its lock it appears at once.
            renameat(&self.folder, &unfinished, &self.folder, &name)?;
            let place = Place { above: self.folder.try_clone()?, folder, name, user: self.user };
            Ok(OwnSpool { place, _lock: lock, segments: 0 })
        })
    }

    /// The size of all segments of all spools in bytes, as far as they can be read.
    pub fn size(&self) -> io::Result<u64> {
        let sizes = names_in(&self.folder)?.into_iter().filter_map(|name| {
            let folder = openat(&self.folder, &name, FOLDER, Mode::empty()).ok()?;
            size_of(&folder, self.user).ok()
        });
        Ok(sizes.sum())
    }
}

impl OwnSpool {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// The number of the next segment.
    pub fn next_segment(&self) -> u32 {
        self.segments
    }

    /// Makes the next segment.
    pub fn make_segment(&mut self) -> io::Result<File> {
        let file = new_file(&self.place.folder, &name_of_segment(self.segments))?;
        self.segments += 1;
        Ok(file)
    }

    /// Removes the segments before a number.
    pub fn remove_before(&self, number: u32) -> io::Result<()> {
        for name in names_in(&self.place.folder)? {
            if number_of_segment(&name).is_some_and(|segment| segment < number) {
                unlinkat(&self.place.folder, &name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Removes it.
    pub fn remove(self) -> io::Result<()> {
        self.place.remove()
    }
}

impl AbandonedSpool {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// The size of its segments in bytes.
    pub fn size(&self) -> io::Result<u64> {
        size_of(&self.place.folder, self.place.user)
    }

    /// Its segments, opened. Links and files of others are left out.
    pub fn segments(&self) -> io::Result<Vec<File>> {
        let mut names = names_in(&self.place.folder)?;
        names.retain(|name| number_of_segment(name).is_some());
        let open = |name: &String| open_segment(&self.place.folder, name, self.place.user);
        let (opened, failed): (Vec<_>, Vec<_>) = names.iter().map(open).partition(Result::is_ok);
        match failed.into_iter().find_map(Result::err) {
            Some(error) if opened.is_empty() => Err(error),
            _ => Ok(opened.into_iter().flatten().collect()),
        }
    }

    /// When something was written to it last, in seconds since 1970.
    pub fn changed(&self) -> io::Result<u64> {
        let times = self.segments()?.into_iter().filter_map(|file| file.metadata().ok()?.modified().ok());
        let newest = times.max().ok_or(io::ErrorKind::NotFound)?;
        Ok(newest.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }

    /// Removes it.
    pub fn remove(self) -> io::Result<()> {
        self.place.remove()
    }
}

impl Place {
    /// Removes the segments, the lock and the folder. Fails, and keeps the folder, if it has something else.
    fn remove(self) -> io::Result<()> {
        for name in names_in(&self.folder)? {
            if number_of_segment(&name).is_some() {
                unlinkat(&self.folder, &name, AtFlags::empty())?;
            }
        }
        unlinkat(&self.folder, LOCK, AtFlags::empty())?;
        Ok(unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR)?)
    }
}

/// The number of this boot of the machine.
pub fn boot_id() -> BootId {
    let text = read_kernel_text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> =
        text.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|digit| digit as u8).collect();
    let mut id = BootId::default();
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    id
}

fn names_in(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)?.take(MAX_ENTRIES) {
        // Names that this program gives are ASCII.
        if let Ok(name) = entry?.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn size_of(folder: &OwnedFd, user: u32) -> io::Result<u64> {
    let names = names_in(folder)?;
    let segments = names.iter().filter(|name| number_of_segment(name).is_some());
    Ok(segments
        .filter_map(|name| open_segment(folder, name, user).ok()?.metadata().ok())
        .map(|file| file.len())
        .sum())
}

fn open_segment(folder: &OwnedFd, name: &str, user: u32) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    check_file(&fstat(&file)?, user)?;
    Ok(file.into())
}

fn new_file(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, PRIVATE_FILE)?.into())
}

fn name_of_segment(number: u32) -> String {
    format!("{number:08}{ENDING}")
}

fn number_of_segment(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(ENDING)?;
    digits.parse().ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

fn check_owner(stat: &Stat, user: u32) -> io::Result<()> {
    let is_own = stat.st_uid == user;
    is_own.then_some(()).ok_or_else(|| io::Error::other("it belongs to another user"))
}

fn check_file(stat: &Stat, user: u32) -> io::Result<()> {
    check_owner(stat, user)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then_some(()).ok_or_else(|| io::Error::other("it has something else in place of a file"))
}

/// Why something is not used, as the end of a sentence.
fn reason(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::LOOP | Errno::MLINK) => "it has a link in place of a file or folder".to_owned(),
        Some(Errno::NOTDIR) => "it is a file or a link, and not a folder".to_owned(),
        Some(Errno::NOENT) => "it has no lock, so it is no recording".to_owned(),
        Some(Errno::ACCESS | Errno::PERM) => "it belongs to another user".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
