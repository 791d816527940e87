//! Pausing and resuming a recording, for every backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nyquist_convert::event::{Event, EventKind, Timestamp};

use super::perf::EventPause;
use super::sys::clock::monotonic_ns;

/// Pauses and resumes a recording. It is for one thread, which knows which of the two is next.
#[derive(Clone, Debug)]
pub struct PauseHandle {
    pub(crate) backend: PausedBackend,
}

/// What is paused.
#[derive(Clone, Debug)]
pub(crate) enum PausedBackend {
    Perf(EventPause),
    /// The tracer reads it before each round.
    Ptrace(Arc<AtomicBool>),
}

impl PauseHandle {
    /// Pauses the recording. The converter needs the returned event.
    pub fn pause(&self) -> Event {
        match &self.backend {
            PausedBackend::Perf(events) => events.pause(),
            PausedBackend::Ptrace(paused) => paused.store(true, Ordering::Relaxed),
        }
        now(EventKind::Paused)
    }

    /// What the converter needs of a recording that began paused.
    #[must_use]
    pub fn begun_paused(&self) -> Event {
        now(EventKind::Paused)
    }

    /// Resumes the recording. The converter needs the returned event.
    pub fn resume(&self) -> Event {
        let event = now(EventKind::Resumed);
        match &self.backend {
            PausedBackend::Perf(events) => events.resume(),
            PausedBackend::Ptrace(paused) => paused.store(false, Ordering::Relaxed),
        }
        event
    }
}

fn now(kind: EventKind) -> Event {
    Event { time: Timestamp(monotonic_ns()), cpu: None, kind }
}
