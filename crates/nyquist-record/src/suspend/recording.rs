//! Processes that are ready to be sampled, and the thread that does it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, channel};

use nyquist_convert::event::Pid;

use super::process::LeftOut;
use super::sampler::{Sampler, SamplerResult, SamplingPlan};
use super::system::{SamplingDenied, System};
use crate::Chunk;
use crate::recording_thread::RecordingThread;

/// Processes that are ready to be sampled.
#[derive(Debug)]
pub(crate) struct PreparedSampler<S: System> {
    sampler: Sampler<S>,
    chunks: Receiver<Chunk>,
    waiting: Arc<AtomicUsize>,
}

/// The sampling thread and its chunks.
pub(crate) type Sampling = RecordingThread<SamplerResult>;

impl<S: System + Send + 'static> PreparedSampler<S>
where
    S::Process: Send,
    S::Thread: Send,
{
    /// Opens the processes of the plan and their descendants.
    pub(crate) fn open(system: S, plan: SamplingPlan) -> Result<Self, (Pid, SamplingDenied)> {
        let (sender, chunks) = channel();
        let waiting = Arc::default();
        let sampler = Sampler::open(system, plan, sender, Arc::clone(&waiting))?;
        Ok(Self { sampler, chunks, waiting })
    }

    /// The descendants that cannot be sampled.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.sampler.left_out()
    }

    /// Starts the sampling thread. `prefer` is called there first, and its result is dropped at the end.
    pub(crate) fn record<P>(self, prefer: impl FnOnce() -> P + Send + 'static) -> io::Result<Sampling> {
        let sampler = self.sampler;
        RecordingThread::start("nyquist-sampler", (self.chunks, self.waiting), move || {
            let _preference = prefer();
            sampler.run()
        })
    }
}
