//! Allocations of the recorded programs: the library that is preloaded into them, and a thread that reads the
//! files that it writes.

mod file;
mod files;
mod preload;
mod program;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nyquist_alloc::protocol::{FOLDER_VARIABLE, RATE_VARIABLE};
use nyquist_convert::event::Event;

use self::files::AllocationFiles;
use super::Companion;
use super::markers::folder::MarkerFolder;
use super::sys::poll::{PollSet, event_counter, signal};

pub use files::AllocationSummary;
pub use nyquist_alloc::protocol::DEFAULT_RATE;
pub use preload::{LibraryError, PreloadedLibrary};
pub use program::{AllocationMethod, NoAllocations, allocation_method};

/// How often files are read while there is something in them.
const BUSY: Duration = Duration::from_millis(2);

/// How often they are read otherwise.
const IDLE: Duration = Duration::from_millis(20);

/// Reads the allocations of a command.
#[derive(Debug)]
pub struct AllocationReader {
    shared: Arc<Mutex<ReaderState>>,
    rate: u64,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ReaderState {
    folder: MarkerFolder,
    files: AllocationFiles,
    events: Vec<Event>,
}

impl AllocationReader {
    /// Makes a folder for the allocations of a command, of which one in `rate` bytes is sampled. The folder
    /// belongs to the user (uid and gid) that the command runs as.
    pub fn for_command(owner: Option<(u32, u32)>, rate: u64) -> io::Result<Self> {
        let folder = MarkerFolder::create(owner)?;
        let state = ReaderState { folder, files: AllocationFiles::new(), events: Vec::new() };
        let shared = Arc::new(Mutex::new(state));
        let stop = Arc::new(event_counter()?);
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("nyquist-allocs".to_owned());
        let thread = thread.spawn(move || read_on(&theirs, &stopped))?;
        Ok(Self { shared, rate, stop, thread: Some(thread) })
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        lock(&self.shared).folder.path().to_owned()
    }

    /// The environment variables of the command.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let folder = self.folder().into();
        vec![(FOLDER_VARIABLE.into(), folder), (RATE_VARIABLE.into(), self.rate.to_string().into())]
    }

    /// Appends the remaining allocations when the recording has ended, and what is left of each heap.
    pub fn finish(mut self, events: &mut Vec<Event>) -> AllocationSummary {
        self.end();
        let mut shared = lock(&self.shared);
        shared.read(true);
        let ReaderState { files, events: read, .. } = &mut *shared;
        let summary = files.finish(read);
        events.append(read);
        summary
    }

    fn end(&mut self) {
        signal(self.stop.as_fd());
        if let Some(thread) = self.thread.take() {
            // It holds nothing that would be lost if it had panicked.
            let _ = thread.join();
        }
    }
}

impl Companion for AllocationReader {
    fn notice(&mut self, _: &Event) {}

    fn collect(&mut self, events: &mut Vec<Event>) {
        let mut shared = lock(&self.shared);
        shared.read(false);
        events.append(&mut shared.events);
    }
}

impl Drop for AllocationReader {
    fn drop(&mut self) {
        self.end();
    }
}

impl ReaderState {
    /// Reads what is available; returns whether there was anything.
    fn read(&mut self, last: bool) -> bool {
        self.folder.scan(&mut self.files, last);
        self.files.read(&mut self.events, last)
    }
}

/// Reads the files until it is stopped. It sleeps until there is one.
fn read_on(shared: &Mutex<ReaderState>, stop: &OwnedFd) {
    let mut poll = PollSet::default();
    let stop = poll.add(stop.as_raw_fd());
    let first_file = poll.add(-1);
    let mut pause = IDLE;
    while !poll.ready(stop).readable {
        let awaited = lock(shared).folder.awaited();
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
