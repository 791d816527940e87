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
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};
use nyquist_perf::Budget;
use nyquist_tracing::protocol::DIR_VARIABLE;

use control::ControlFile;
use folder::MarkerFolder;
use rings::Rings;

pub use summary::MarkerSummary;

use crate::linux::Companion;
use crate::linux::sys::poll::{PollSet, event_counter, signal};

/// How often rings are read while markers arrive.
const BUSY: Duration = Duration::from_millis(10);

/// How often rings are checked while no markers arrive.
const IDLE: Duration = Duration::from_millis(50);

/// Reads the markers of the recorded programs.
#[derive(Debug)]
pub struct MarkerReader {
    shared: Arc<Mutex<ReaderState>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
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
        let shared =
            Arc::new(Mutex::new(ReaderState { source, rings: Rings::new(budget), events: Vec::new() }));
        let stop = Arc::new(event_counter()?);
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("nyquist-markers".to_owned());
        let thread = thread.spawn(move || read_on(&theirs, &stopped))?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// The environment variable that passes the folder to the command.
    pub fn variable(&self) -> Option<(OsString, OsString)> {
        match &lock(&self.shared).source {
            RingLocation::Folder(folder) => Some((DIR_VARIABLE.into(), folder.path().into())),
            RingLocation::Control(_) => None,
        }
    }

    /// Appends the remaining markers when the recording has ended, and returns the counts. Markers that ended
    /// before `since` are not part of the recording.
    pub fn finish(mut self, events: &mut Vec<Event>) -> MarkerSummary {
        self.end();
        let mut shared = lock(&self.shared);
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
        lock(&self.shared).rings.begin_at(since);
    }

    fn end(&mut self) {
        if let RingLocation::Control(control) = &lock(&self.shared).source {
            control.stop();
        }
        signal(self.stop.as_fd());
        if let Some(thread) = self.thread.take() {
            // It holds nothing that would be lost if it had panicked.
            let _ = thread.join();
        }
    }
}

impl Companion for MarkerReader {
    /// Notes the mappings of the recorded processes: a file of samply's protocol is found by its mapping.
    fn notice(&mut self, event: &Event) {
        if let EventKind::Map(mapping) = &event.kind {
            lock(&self.shared).rings.notice(mapping);
        }
    }

    fn collect(&mut self, events: &mut Vec<Event>) {
        let mut shared = lock(&self.shared);
        shared.read(false);
        events.append(&mut shared.events);
    }
}

impl Drop for MarkerReader {
    fn drop(&mut self) {
        self.end();
    }
}

impl ReaderState {
    /// Reads what is available; returns whether there was anything.
    fn read(&mut self, last: bool) -> bool {
        let before = self.events.len();
        match &mut self.source {
            RingLocation::Folder(folder) => folder.scan(&mut self.rings, last),
            RingLocation::Control(control) => control.poll(&mut self.rings, last),
        }
        self.rings.read(&mut self.events, last);
        self.events.len() > before
    }

    /// A descriptor that becomes readable when there is something to read, while there is nothing.
    fn awaited(&mut self) -> Option<RawFd> {
        match &mut self.source {
            RingLocation::Folder(folder) => folder.awaited(),
            RingLocation::Control(_) => None,
        }
    }
}

/// Drains the rings until it is stopped. It sleeps until a folder has a file.
fn read_on(shared: &Mutex<ReaderState>, stop: &OwnedFd) {
    let mut poll = PollSet::default();
    let stop = poll.add(stop.as_raw_fd());
    let first_file = poll.add(-1);
    let mut pause = IDLE;
    while !poll.ready(stop).readable {
        let awaited = lock(shared).awaited();
        poll.replace(first_file, awaited);
        let timeout = awaited.is_none().then_some(pause.as_millis() as u32);
        // A wait that fails would fail again at once.
        if poll.wait(timeout).is_err() {
            std::thread::sleep(IDLE);
        }
        pause = if lock(shared).read(false) { BUSY } else { IDLE };
    }
}

fn lock(shared: &Mutex<ReaderState>) -> MutexGuard<'_, ReaderState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
