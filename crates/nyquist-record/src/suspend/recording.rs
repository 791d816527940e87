//! A running recording: the sampling thread, its chunks, and its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle};

use nyquist_convert::event::Pid;

use super::sampler::{End, LeftOut, Plan, Sampler};
use super::system::{Refusal, System};
use crate::Chunk;

/// Processes that are ready to be sampled.
#[derive(Debug)]
pub(crate) struct Ready<S: System> {
    sampler: Sampler<S>,
    chunks: Receiver<Chunk>,
    waiting: Arc<AtomicUsize>,
}

/// The sampling thread and its chunks.
#[derive(Debug)]
pub(crate) struct Sampling {
    chunks: Receiver<Chunk>,
    /// The number of chunks that wait to be received.
    waiting: Arc<AtomicUsize>,
    sampler: Option<JoinHandle<End>>,
}

impl<S: System + Send + 'static> Ready<S>
where
    S::Process: Send,
    S::Thread: Send,
{
    /// Opens the processes of the plan and their descendants.
    pub(crate) fn open(system: S, plan: Plan) -> Result<Self, (Pid, Refusal)> {
        let (sender, chunks) = channel();
        let waiting = Arc::default();
        let sampler = Sampler::open(system, plan, sender, Arc::clone(&waiting))?;
        Ok(Self { sampler, chunks, waiting })
    }

    /// The descendants that cannot be sampled.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        self.sampler.left_out()
    }

    /// Starts the sampling thread. `prefer` is called there first, and its result is dropped at the end.
    pub(crate) fn record<P>(self, prefer: impl FnOnce() -> P + Send + 'static) -> io::Result<Sampling> {
        let sampler = self.sampler;
        let run = move || {
            let _preference = prefer();
            sampler.run()
        };
        let sampler = Builder::new().name("nyquist-sampler".into()).spawn(run)?;
        Ok(Sampling { chunks: self.chunks, waiting: self.waiting, sampler: Some(sampler) })
    }
}

impl Sampling {
    /// Waits for the next chunk; `None` if the recording has ended.
    pub(crate) fn next(&self) -> Option<Chunk> {
        let chunk = self.chunks.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(chunk)
    }

    /// Waits for the end of the thread, which was asked to end.
    pub(crate) fn join(&mut self) -> Option<End> {
        self.sampler.take()?.join().ok()
    }
}
