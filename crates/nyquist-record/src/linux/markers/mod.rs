//! Markers of the recorded programs: their rings, and a thread that drains the rings while the programs run.
//!
//! A command has a folder for files with rings. For a process that ran before, the rings are in its control
//! file. Rings are small, so they must be drained all the time. A separate thread does this. Neither the
//! reader of samples nor the converter waits for it.

mod control;
pub(super) mod folder;
pub(super) mod folder_reader;
mod held_folder;
pub(super) mod ids;
mod ring;
mod rings;
mod stale;
mod summary;
mod text;

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};
use nyquist_perf::Budget;
use nyquist_tracing::protocol::DIR_VARIABLE;

use control::ControlFile;
use folder::MarkerFolder;
use rings::Rings;

pub use summary::MarkerSummary;

use crate::linux::Companion;
use crate::linux::background_reader::{BackgroundReader, ReadInBackground};

/// Reads the markers of the recorded programs.
#[derive(Debug)]
pub struct MarkerReader {
    reader: BackgroundReader<ReaderState>,
}

#[derive(Debug)]
struct ReaderState {
    source: RingLocation,
    rings: Rings,
    events: Vec<Event>,
}

/// Where rings are found.
#[derive(Debug)]
enum RingLocation {
    Folder(MarkerFolder),
    Control(ControlFile),
}

impl MarkerReader {
    /// Makes a folder for the markers of a command. It belongs to the user (uid and gid) that the command
    /// runs as. The memory of the markers is charged to `budget`.
    pub fn for_command(owner: Option<(u32, u32)>, budget: &Budget) -> io::Result<Self> {
        Self::start(RingLocation::Folder(MarkerFolder::create(owner)?), budget)
    }

    /// Enables the markers of a running process. Returns `None` if it has none.
    pub fn attach(pid: Pid, budget: &Budget) -> io::Result<Option<Self>> {
        ControlFile::switch_on(pid)?
            .map(|control| Self::start(RingLocation::Control(control), budget))
            .transpose()
    }

    fn start(source: RingLocation, budget: &Budget) -> io::Result<Self> {
        let state = ReaderState { source, rings: Rings::new(budget), events: Vec::new() };
        Ok(Self { reader: BackgroundReader::start(state)? })
    }

    /// The environment variable that passes the folder to the command.
    pub fn variable(&self) -> Option<(OsString, OsString)> {
        match &self.reader.lock().source {
            RingLocation::Folder(folder) => Some((DIR_VARIABLE.into(), folder.path().into())),
            RingLocation::Control(_) => None,
        }
    }

    /// Appends the remaining markers when the recording has ended, and returns the counts. Markers that ended
    /// before `since` are not part of the recording.
    pub fn finish(mut self, events: &mut Vec<Event>) -> MarkerSummary {
        self.end();
        let mut shared = self.reader.lock();
        shared.read(true);
        let ReaderState { source, rings, events: read } = &mut *shared;
        let mut summary = rings.finish(read);
        if let RingLocation::Control(control) = source {
            summary.cut += u64::from(control.is_cut);
        }
        events.append(read);
        summary
    }

    /// Drops markers that ended before `since`.
    pub fn begin_at(&mut self, since: Timestamp) {
        self.reader.lock().rings.begin_at(since);
    }

    fn end(&mut self) {
        if let RingLocation::Control(control) = &self.reader.lock().source {
            control.stop();
        }
        self.reader.end();
    }
}

impl Companion for MarkerReader {
    /// Notes the mappings of the recorded processes: a file of samply's protocol is found by its mapping.
    fn notice(&mut self, event: &Event) {
        if let EventKind::Map(mapping) = &event.kind {
            self.reader.lock().rings.notice(mapping);
        }
    }

    fn collect(&mut self, events: &mut Vec<Event>) {
        let mut shared = self.reader.lock();
        shared.read(false);
        events.append(&mut shared.events);
    }
}

impl Drop for MarkerReader {
    fn drop(&mut self) {
        self.end();
    }
}

impl ReadInBackground for ReaderState {
    const THREAD_NAME: &str = "nyquist-markers";
    const BUSY: Duration = Duration::from_millis(10);
    const IDLE: Duration = Duration::from_millis(50);

    fn read(&mut self, last: bool) -> bool {
        let before = self.events.len();
        match &mut self.source {
            RingLocation::Folder(folder) => folder.scan(&mut self.rings, last),
            RingLocation::Control(control) => control.poll(&mut self.rings, last),
        }
        self.rings.read(&mut self.events, last);
        self.events.len() > before
    }

    fn awaited(&mut self) -> Option<RawFd> {
        match &mut self.source {
            RingLocation::Folder(folder) => folder.awaited(),
            RingLocation::Control(_) => None,
        }
    }
}
