//! Allocations of the recorded programs: the library that is preloaded into them, and a thread that reads the
//! files that it writes.

mod file;
mod files;
mod preload;
mod program;

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use nyquist_alloc::protocol::{FOLDER_VARIABLE, RATE_VARIABLE};
use nyquist_convert::event::Event;

use self::files::AllocationFiles;
use super::Companion;
use super::background_reader::{BackgroundReader, ReadInBackground};
use super::markers::folder::MarkerFolder;

pub use files::AllocationSummary;
pub use nyquist_alloc::protocol::{DEFAULT_RATE, MAX_HASHED_RATE};
pub use preload::{LibraryError, LibraryVariant, PreloadedLibrary};
pub use program::{AllocationMethod, NoAllocations, allocation_method};

/// Reads the allocations of a command.
#[derive(Debug)]
pub struct AllocationReader {
    reader: BackgroundReader<ReaderState>,
    rate: u64,
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
        Ok(Self { reader: BackgroundReader::start(state)?, rate })
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.reader.lock().folder.path().to_owned()
    }

    /// The environment variables of the command.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let folder = self.folder().into();
        vec![(FOLDER_VARIABLE.into(), folder), (RATE_VARIABLE.into(), self.rate.to_string().into())]
    }

    /// Appends which blocks each program has not freed that has lost records of frees since the last call, so that
    /// these blocks are not live for ever. Nothing where each allocation is recorded.
    pub fn contents_after_losses(&self, events: &mut Vec<Event>) {
        self.reader.lock().files.contents_after_losses(events);
    }

    /// Appends the remaining allocations when the recording has ended, and what is left of each heap.
    pub fn finish(mut self, events: &mut Vec<Event>) -> AllocationSummary {
        self.reader.end();
        let mut shared = self.reader.lock();
        shared.hand_over(events);
        shared.read(true);
        let ReaderState { files, events: read, .. } = &mut *shared;
        let summary = files.finish(read);
        events.append(read);
        summary
    }
}

impl Companion for AllocationReader {
    fn notice(&mut self, _: &Event) {}

    fn collect(&mut self, events: &mut Vec<Event>) {
        let mut shared = self.reader.lock();
        shared.read(false);
        shared.hand_over(events);
    }
}

impl ReaderState {
    /// Gives what was read to the converter.
    fn hand_over(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
        self.files.taken();
    }
}

impl ReadInBackground for ReaderState {
    const THREAD_NAME: &str = "nyquist-allocs";
    const BUSY: Duration = Duration::from_millis(2);
    const IDLE: Duration = Duration::from_millis(20);

    fn read(&mut self, last: bool) -> bool {
        if last {
            self.files.begin_scan();
        }
        self.folder.scan(&mut self.files, last);
        self.files.read(&mut self.events)
    }

    fn awaited(&mut self) -> Option<RawFd> {
        self.folder.awaited()
    }
}
