//! A recording by ptrace that runs: its chunks, its end, and what it came to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use super::outcome::Notice;
use super::pace::HoldSummary;
use super::tracer::End;
use crate::linux::stop::{EndReason, StopHandle};
use crate::{Chunk, Source};

/// A recording that runs: an iterator over what it records. Dropping it ends it.
#[derive(Debug)]
pub struct Recording {
    pub(crate) chunks: Receiver<Chunk>,
    /// The chunks that nobody has taken yet.
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) tracer: Option<JoinHandle<End>>,
    pub(crate) stop: StopHandle,
    pub(crate) end: Option<End>,
}

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Why it ended.
    pub reason: EndReason,
    /// The CPU time of all threads together, user and kernel, in nanoseconds.
    pub total_cpu_time_ns: u64,
    /// For how long threads were held.
    pub holds: HoldSummary,
    /// Whether processes that descend from what was recorded live on.
    pub left_running: bool,
    /// The programs that lost privileges, but for the command.
    pub lost_privileges: Vec<Notice>,
}

impl Iterator for Recording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(chunk)
    }
}

impl Source for Recording {}

impl Recording {
    /// What ends the recording before the process does.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Ends the recording, if it has not ended, and says what it came to. Chunks that were not taken are lost.
    pub fn finish(mut self) -> Summary {
        self.join();
        let end = self.end.take().unwrap_or_default();
        let reason = end.reason.unwrap_or(EndReason::Stopped);
        let lost = end.lost_privileges.into_iter();
        Summary {
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

impl Drop for Recording {
    fn drop(&mut self) {
        self.join();
    }
}
