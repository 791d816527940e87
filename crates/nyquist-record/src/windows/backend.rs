//! The backends of Windows behind one type: suspending threads, or the kernel's events.

use std::io;
use std::sync::Arc;

use super::etw::{EtwRecording, EtwSession};
use super::sampling_method::SamplingMethod;
use super::sys::timer::Flag;
use super::{Options, RecordingTarget, StopHandle};
use crate::end_reason::EndReason;
use crate::suspend::backend as suspend;
pub use crate::suspend::backend::RecordingSummary;
use crate::suspend::outcome::SampledBy;
pub use crate::suspend::outcome::{Notice, OpenError, RecordingOutcome};
use crate::{Chunk, ChunkSource};

/// A backend that is ready to record. Dropping it leaves the processes as they are.
#[derive(Debug)]
pub struct Backend(OpenedBackend);

#[derive(Debug)]
enum OpenedBackend {
    Suspend(Box<suspend::Backend>),
    Etw { opened: Box<EtwSession>, outcome: RecordingOutcome, stop: StopHandle },
}

impl Backend {
    /// Opens what is to be recorded. It runs on meanwhile.
    pub fn open(target: &RecordingTarget, options: &Options) -> Result<Self, OpenError> {
        match options.method {
            SamplingMethod::Suspend => {
                suspend::Backend::open(target, options).map(Box::new).map(OpenedBackend::Suspend)
            }
            SamplingMethod::Etw { waits } => open_etw(target, options, waits),
        }
        .map(Self)
    }

    /// What is recorded, and how.
    pub fn outcome(&self) -> RecordingOutcome {
        match &self.0 {
            OpenedBackend::Suspend(backend) => backend.outcome(),
            OpenedBackend::Etw { outcome, .. } => outcome.clone(),
        }
    }

    /// Starts recording. A child is sampled from its start on.
    pub fn record(self) -> Result<Recording, OpenError> {
        match self.0 {
            OpenedBackend::Suspend(backend) => backend.record().map(RunningRecording::Suspend),
            OpenedBackend::Etw { opened, stop, .. } => {
                let recording =
                    opened.record().map_err(|source| system("no thread can be started", source))?;
                Ok(RunningRecording::Etw { recording, stop })
            }
        }
        .map(Recording)
    }
}

fn open_etw(target: &RecordingTarget, options: &Options, waits: bool) -> Result<OpenedBackend, OpenError> {
    let flag = Flag::new().map_err(|source| system("no event can be made", source))?;
    let stop = StopHandle { flag: Arc::new(flag) };
    let opened = EtwSession::open(target, (options, waits), Arc::clone(&stop.flag))?;
    let (requested_hz, rate_hz, interval_ns) = (options.rate_hz, opened.rate_hz, opened.interval_ns);
    let lowered = Notice::LeastInterval { requested_hz, allowed_hz: rate_hz, least_ns: interval_ns };
    let notices = (rate_hz < requested_hz).then_some(lowered).into_iter().collect();
    let outcome = RecordingOutcome { rate_hz, interval_ns, sampled: SampledBy::KernelEvents, notices };
    Ok(OpenedBackend::Etw { opened: Box::new(opened), outcome, stop })
}

fn system(what: &'static str, source: io::Error) -> OpenError {
    OpenError::System { what, source }
}

/// A running recording: an iterator over the recorded chunks. Dropping it ends it.
#[derive(Debug)]
pub struct Recording(RunningRecording);

#[derive(Debug)]
enum RunningRecording {
    Suspend(suspend::Recording),
    Etw { recording: EtwRecording, stop: StopHandle },
}

impl Iterator for Recording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        match &mut self.0 {
            RunningRecording::Suspend(recording) => recording.next(),
            RunningRecording::Etw { recording, .. } => recording.next(),
        }
    }
}

impl ChunkSource for Recording {}

impl Recording {
    /// A handle that ends the recording before the process ends.
    pub fn stop_handle(&self) -> StopHandle {
        match &self.0 {
            RunningRecording::Suspend(recording) => recording.stop_handle(),
            RunningRecording::Etw { stop, .. } => stop.clone(),
        }
    }

    /// Ends the recording if it has not ended, and returns its summary. Chunks that were not taken are lost.
    pub fn finish(self) -> RecordingSummary {
        match self.0 {
            RunningRecording::Suspend(recording) => recording.finish(),
            RunningRecording::Etw { recording, stop } => finish_etw(recording, &stop),
        }
    }
}

fn finish_etw(mut recording: EtwRecording, stop: &StopHandle) -> RecordingSummary {
    stop.stop();
    let end = recording.join().unwrap_or_default();
    let reason = end.reason.unwrap_or(EndReason::Stopped);
    let lost = (end.lost_buffers > 0).then_some(Notice::BuffersLost { count: end.lost_buffers });
    let cut =
        end.was_cut.then(|| Notice::SessionEnded { reason: end.failure.map(|failure| failure.to_string()) });
    RecordingSummary {
        reason,
        total_cpu_time_ns: None,
        left_running: end.left_running && reason == EndReason::Exited,
        holds: None,
        notices: lost.into_iter().chain(cut).collect(),
    }
}
