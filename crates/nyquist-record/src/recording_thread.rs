//! A thread that records, and the chunks that it sends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::{Builder, JoinHandle};

use crate::Chunk;

/// The recording thread and its chunks. `E` is its result.
#[derive(Debug)]
pub(crate) struct RecordingThread<E> {
    chunks: Receiver<Chunk>,
    /// The number of chunks that wait to be received.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<E>>,
}

impl<E: Send + 'static> RecordingThread<E> {
    /// Starts the thread. It sends chunks and increments `waiting` for each.
    pub(crate) fn start(
        name: &str,
        (chunks, waiting): (Receiver<Chunk>, Arc<AtomicUsize>),
        run: impl FnOnce() -> E + Send + 'static,
    ) -> io::Result<Self> {
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { chunks, waiting, thread: Some(thread) })
    }

    /// Waits for the next chunk; `None` if the recording has ended.
    pub(crate) fn next(&self) -> Option<Chunk> {
        let chunk = self.chunks.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(chunk)
    }

    /// Waits for the end of the thread, which was requested to end.
    pub(crate) fn join(&mut self) -> Option<E> {
        self.thread.take()?.join().ok()
    }
}
