//! A thread that reads what recorded programs write into files, while they run.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::sys::poll::{PollSet, event_counter, signal};

/// What such a thread reads, and the state of the reading.
pub(super) trait ReadInBackground: Send + 'static {
    /// The name of the thread, in at most 15 characters.
    const THREAD_NAME: &str;

    /// How long to wait before reading again if there was something.
    const BUSY: Duration;

    /// The same if there was nothing.
    const IDLE: Duration;

    /// Reads what is available; returns whether there was anything. `last` is whether nothing is read afterwards.
    fn read(&mut self, last: bool) -> bool;

    /// A descriptor that becomes readable when there is something to read, while there is nothing.
    fn awaited(&mut self) -> Option<RawFd>;
}

/// The thread, and the state that it shares with its owner.
#[derive(Debug)]
pub(super) struct BackgroundReader<T> {
    shared: Arc<Mutex<T>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl<T: ReadInBackground> BackgroundReader<T> {
    /// Starts reading.
    ///
    /// # Errors
    /// If the system cannot make a thread or a descriptor.
    pub(super) fn start(state: T) -> io::Result<Self> {
        let (shared, stop) = (Arc::new(Mutex::new(state)), Arc::new(event_counter()?));
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name(T::THREAD_NAME.to_owned());
        let thread = thread.spawn(move || read_on(&theirs, &stopped))?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }
}

impl<T> BackgroundReader<T> {
    /// The state, which nothing reads into meanwhile.
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.shared)
    }

    /// Ends the thread.
    pub(super) fn end(&mut self) {
        signal(self.stop.as_fd());
        if let Some(thread) = self.thread.take() {
            // It holds nothing that would be lost if it had panicked.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for BackgroundReader<T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads until it is stopped. It sleeps until there is a file.
fn read_on<T: ReadInBackground>(shared: &Mutex<T>, stop: &OwnedFd) {
    let mut poll = PollSet::default();
    let stop = poll.add(stop.as_raw_fd());
    let first_file = poll.add(-1);
    let mut pause = T::IDLE;
    while !poll.ready(stop).readable {
        let awaited = lock(shared).awaited();
        poll.replace(first_file, awaited);
        let timeout = awaited.is_none().then_some(pause.as_millis() as u32);
        // A wait that fails would fail again at once.
        if poll.wait(timeout).is_err() {
            std::thread::sleep(T::IDLE);
        }
        pause = if lock(shared).read(false) { T::BUSY } else { T::IDLE };
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
