//! A running recording by ptrace: its chunks, its end, and its summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use nyquist_convert::StackCopyFeedback;

use super::outcome::Notice;
use super::tracer::TracerResult;
use crate::linux::pause::{PauseHandle, PausedBackend};
use crate::linux::signal_stacks::SignalStacks;
use crate::linux::stop::{EndReason, StopHandle};
use crate::pace::HoldSummary;
use crate::{Chunk, ChunkSource};

/// A running recording: an iterator over the recorded chunks. Dropping it ends it.
#[derive(Debug)]
pub struct PtraceRecording {
    pub(crate) chunks: Receiver<Chunk>,
    /// The number of chunks that wait to be received.
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) tracer: Option<JoinHandle<TracerResult>>,
    pub(crate) stop: StopHandle,
    /// Whether nothing is sampled at present.
    pub(crate) paused: Arc<AtomicBool>,
    pub(crate) signal_stacks: Arc<SignalStacks>,
    pub(crate) end: Option<TracerResult>,
}

/// The summary of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtraceSummary {
    /// Why it ended.
    pub reason: EndReason,
    /// The CPU time of all threads together, user and kernel, in nanoseconds.
    pub total_cpu_time_ns: u64,
    /// How long threads were stopped.
    pub holds: HoldSummary,
    /// Whether descendants of the recorded processes live on.
    pub left_running: bool,
    /// The programs that lost privileges, except the command.
    pub lost_privileges: Vec<Notice>,
}

impl Iterator for PtraceRecording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(chunk)
    }
}

impl ChunkSource for PtraceRecording {
    fn apply_feedback(&self, feedback: &StackCopyFeedback) {
        self.signal_stacks.apply(feedback);
    }
}

impl PtraceRecording {
    /// A handle that ends the recording before the process ends.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// A handle that pauses and resumes the recording.
    pub fn pause_handle(&self) -> PauseHandle {
        PauseHandle { backend: PausedBackend::Ptrace(Arc::clone(&self.paused)) }
    }

    /// Ends the recording if it has not ended, and returns its summary. Chunks that were not taken are lost.
    pub fn finish(mut self) -> PtraceSummary {
        self.join();
        let end = self.end.take().unwrap_or_default();
        let reason = end.reason.unwrap_or(EndReason::Stopped);
        let lost = end.lost_privileges.into_iter();
        PtraceSummary {
            reason,
            total_cpu_time_ns: end.total_cpu_time_ns,
            holds: end.holds,
            left_running: end.left_running && reason == EndReason::Exited,
            lost_privileges: lost.map(|program| Notice::LosesPrivileges { program }).collect(),
        }
    }

    fn join(&mut self) {
        let Some(tracer) = self.tracer.take() else { return };
        self.stop.stop();
        self.end = tracer.join().ok();
    }
}

impl Drop for PtraceRecording {
    fn drop(&mut self) {
        self.join();
    }
}
