//! The backend: it samples processes by suspending their threads for a moment.

use std::sync::Arc;

use nyquist_convert::event::Pid;

use super::here::{Flag, Preference, StopHandle, ThisSystem, cpus};
use super::options::{Options, RecordingTarget};
use super::outcome::SampledBy;
pub use super::outcome::{Notice, OpenError, RecordingOutcome};
use super::recording::{PreparedSampler, Sampling};
use super::{SamplerResult, SamplingPlan};
use crate::end_reason::EndReason;
use crate::pace::HoldSummary;
use crate::{Chunk, ChunkSource};

/// At a higher rate than this, a running thread would be suspended for much of its time.
const MAX_RATE_HZ: u32 = 10_000;

/// A backend that is ready to record. Dropping it leaves the processes as they are.
#[derive(Debug)]
pub struct Backend {
    outcome: RecordingOutcome,
    ready: PreparedSampler<ThisSystem>,
    stop: StopHandle,
}

impl Backend {
    /// Opens all processes of the target. They keep running meanwhile.
    pub fn open(target: &RecordingTarget, options: &Options) -> Result<Self, OpenError> {
        let own_pid = std::process::id();
        if target.named().contains(&Pid(own_pid)) {
            return Err(OpenError::Itself { pid: Pid(own_pid) });
        }
        let flag = Flag::new().map_err(|source| system("no event can be made", source))?;
        let stop = StopHandle { flag: Arc::new(flag) };
        let this = ThisSystem::new(Arc::clone(&stop.flag));
        let this = this.map_err(|source| system("no timer can be made", source))?;
        let rate_hz = options.rate_hz.clamp(1, MAX_RATE_HZ);
        let plan = SamplingPlan {
            pids: target.named().iter().map(|pid| pid.0).collect(),
            is_new: matches!(target, RecordingTarget::Child(_)),
            own_pid,
            interval_ns: 1_000_000_000 / u64::from(rate_hz),
            duration: options.duration,
            cpus: cpus(),
            most_copied: options.stack_bytes.map_or(usize::MAX, |bytes| bytes as usize),
        };
        let ready = PreparedSampler::open(this, plan).map_err(OpenError::of)?;
        let lowered = Notice::RateLowered { requested_hz: options.rate_hz, allowed_hz: rate_hz };
        let lowered = (options.rate_hz > rate_hz).then_some(lowered);
        let notices = lowered.into_iter().chain(Notice::of(&ready.left_out())).collect();
        let interval_ns = 1_000_000_000 / u64::from(rate_hz);
        let outcome = RecordingOutcome { rate_hz, interval_ns, sampled: SampledBy::Suspending, notices };
        Ok(Self { outcome, ready, stop })
    }

    /// What is recorded, and how.
    pub fn outcome(&self) -> RecordingOutcome {
        self.outcome.clone()
    }

    /// Starts recording. A child is sampled from its start on.
    pub fn record(self) -> Result<Recording, OpenError> {
        let sampling = self.ready.record(Preference::at_once);
        let sampling = sampling.map_err(|source| system("no thread can be started", source))?;
        Ok(Recording { sampling, stop: self.stop })
    }
}

fn system(what: &'static str, source: std::io::Error) -> OpenError {
    OpenError::System { what, source }
}

/// A running recording: an iterator over the recorded chunks. Dropping it ends it.
#[derive(Debug)]
pub struct Recording {
    sampling: Sampling,
    stop: StopHandle,
}

/// The summary of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSummary {
    /// Why it ended.
    pub reason: EndReason,
    /// The CPU time of all recorded threads together, user and kernel, in nanoseconds.
    pub total_cpu_time_ns: Option<u64>,
    /// Whether descendants of the recorded processes live on.
    pub left_running: bool,
    /// How long threads were suspended.
    pub holds: Option<HoldSummary>,
    /// What is missing, such as processes that cannot be sampled, with those from the beginning.
    pub notices: Vec<Notice>,
}

impl Iterator for Recording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        self.sampling.next()
    }
}

impl ChunkSource for Recording {}

impl Recording {
    /// A handle that ends the recording before the process ends.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Ends the recording if it has not ended, and returns its summary. Chunks that were not taken are lost.
    pub fn finish(mut self) -> RecordingSummary {
        self.stop.stop();
        let SamplerResult { reason, total_cpu_time_ns, holds, left_running, left_out } =
            self.sampling.join().unwrap_or_default();
        let reason = reason.unwrap_or(EndReason::Stopped);
        RecordingSummary {
            reason,
            total_cpu_time_ns: Some(total_cpu_time_ns),
            left_running: left_running && reason == EndReason::Exited,
            holds: Some(holds),
            notices: Notice::of(&left_out).into_iter().collect(),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop.stop();
        self.sampling.join();
    }
}
