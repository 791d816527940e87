//! The folder that programs put their marker files into.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, lchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nyquist_convert::event::{Event, Mapping, Timestamp};
use nyquist_convert::marker_file::OpenIntervals;
use nyquist_tracing::protocol::EXTENSION;

use super::Summary;
use super::ring::{Refusal, Ring};
use super::text::TextFile;
use crate::linux::now;
use crate::linux::sys::watch::FolderWatch;

/// Where the folder is made: in memory if that can be, for what is mapped from a disk is written to it time and again.
const PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// How many files are read: a thread that marks has one, and those of threads that have ended are used again.
const MAX_FILES: usize = 1 << 14;

/// The folder, and the files in it.
#[derive(Debug)]
pub(super) struct Folder {
    /// As we see it.
    path: PathBuf,
    /// As the programs see it.
    inside: PathBuf,
    owner: u32,
    /// Tells of the first file; `None` where nobody can.
    watch: Option<FolderWatch>,
    /// Whether there is one.
    has_files: bool,
    /// `None` for what is not read.
    rings: HashMap<OsString, Option<Ring>>,
    texts: Vec<TextFile>,
    open: OpenIntervals,
    since: Timestamp,
    strangers: u64,
    unreadable_files: u64,
    markers: u64,
}

impl Folder {
    /// Makes a folder for one user alone, under the root folder that the programs have.
    pub(super) fn create(root: &str, owner: Option<(u32, u32)>) -> io::Result<Self> {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("nyquist-markers-{}-{number}-{}", std::process::id(), now().0);
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for place in PLACES {
            let inside = Path::new(place).join(&name);
            let path = PathBuf::from(format!("{root}{}", inside.display()));
            match make(&path, owner) {
                Ok(owner) => return Ok(Self::new(path, inside, owner)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn new(path: PathBuf, inside: PathBuf, owner: u32) -> Self {
        Self {
            watch: FolderWatch::of(&path).ok(),
            has_files: false,
            path,
            inside,
            owner,
            rings: HashMap::new(),
            texts: Vec::new(),
            open: OpenIntervals::default(),
            since: Timestamp(0),
            strangers: 0,
            unreadable_files: 0,
            markers: 0,
        }
    }

    /// The folder as the programs see it.
    pub(super) fn path_inside(&self) -> &Path {
        &self.inside
    }

    pub(super) fn begin_at(&mut self, since: Timestamp) {
        self.since = since;
    }

    pub(super) fn notice(&mut self, mapping: &Mapping) {
        let known = |file: &TextFile| file.path == mapping.path;
        if self.texts.len() < MAX_FILES && !self.texts.iter().any(known) {
            self.texts.extend(TextFile::of_mapping(mapping));
        }
    }

    /// Reads what was written since the last time.
    pub(super) fn read(&mut self, events: &mut Vec<Event>) {
        self.read_all(events, false);
    }

    fn read_all(&mut self, events: &mut Vec<Event>, last: bool) {
        let before = events.len();
        if self.awaited().is_none() {
            self.look_for_files();
        }
        for ring in self.rings.values_mut().flatten() {
            ring.read(self.since, &mut self.open, events);
        }
        for text in &mut self.texts {
            text.read(self.since, last, events);
        }
        self.markers += (events.len() - before) as u64;
    }

    /// Reads what is left, and says what was counted.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> Summary {
        self.read_all(events, true);
        let before = events.len();
        std::mem::take(&mut self.open).finish(events);
        self.markers += (events.len() - before) as u64;
        let rings = || self.rings.values().flatten();
        Summary {
            markers: self.markers,
            lost: rings().map(|ring| ring.lost).sum(),
            unreadable: rings().map(Ring::unreadable).sum::<u64>()
                + self.texts.iter().map(|text| text.unreadable).sum::<u64>()
                + self.unreadable_files,
            strangers: self.strangers,
        }
    }

    /// What becomes readable with the first file, as long as there is none. Most programs never make one.
    pub(super) fn awaited(&mut self) -> Option<RawFd> {
        self.has_files |= self.watch.as_ref().is_none_or(FolderWatch::has_news);
        self.watch.as_ref().filter(|_| !self.has_files).map(FolderWatch::descriptor)
    }

    fn look_for_files(&mut self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_marker_file = Path::new(&name).extension().is_some_and(|extension| extension == EXTENSION);
            if !is_marker_file || self.rings.len() >= MAX_FILES || self.rings.contains_key(&name) {
                continue;
            }
            match Ring::open(&entry.path(), self.owner) {
                Ok(ring) => drop(self.rings.insert(name, Some(ring))),
                Err(Refusal::NotYet) => {}
                Err(Refusal::NoMarkers) => {
                    self.unreadable_files += 1;
                    self.rings.insert(name, None);
                }
                Err(Refusal::Stranger) => {
                    self.strangers += 1;
                    self.rings.insert(name, None);
                }
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to who cleans the place up.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes the folder; gives back the user that it belongs to.
fn make(path: &Path, owner: Option<(u32, u32)>) -> io::Result<u32> {
    DirBuilder::new().mode(0o700).create(path)?;
    let made = fs::symlink_metadata(path)?;
    if let Some((uid, gid)) = owner.filter(|(uid, _)| *uid != made.uid()) {
        lchown(path, Some(uid), Some(gid))?;
        return Ok(uid);
    }
    Ok(made.uid())
}
