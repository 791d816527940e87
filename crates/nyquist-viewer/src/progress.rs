//! The progress of a recording with open pages, and whether one of them is visible.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nyquist_server::{ViewerError, ViewerResponse};
use serde::Serialize;

use crate::errors::internal;
use crate::parameters::Parameters;

/// A page that has not requested updates for this time is closed, hidden or paused.
const WATCHED_FOR: Duration = Duration::from_secs(3);

/// Shared between the pages of a recording and the thread that makes their profiles.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    version: u64,
    phase: Phase,
    /// The time of the last request for updates.
    requested: Option<Instant>,
    /// The time spent on requests about the current profile.
    answering: Duration,
}

/// The progress of the recording, in order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    #[default]
    Running,
    /// Names are looked up, and the recording is saved.
    Saving,
    /// The shown profile is complete.
    Ended,
}

/// The response to `live`.
#[derive(Debug, Serialize)]
struct Update {
    version: u64,
    state: Phase,
}

impl Progress {
    /// Handles a page's request for updates. A paused page needs no new profiles.
    pub(crate) fn answer(&self, query: &str) -> Result<ViewerResponse, ViewerError> {
        let is_paused = Parameters::parse(query).is_set("paused");
        let mut state = self.lock();
        if !is_paused {
            state.requested = Some(Instant::now());
        }
        let update = Update { version: state.version, state: state.phase };
        serde_json::to_vec(&update).map(ViewerResponse::json).map_err(|_| internal())
    }

    /// Counts a new profile. Returns the time spent on requests about the previous one.
    pub(crate) fn count_version(&self) -> Duration {
        let mut state = self.lock();
        state.version += 1;
        std::mem::take(&mut state.answering)
    }

    /// Adds the time of a request.
    pub(crate) fn add_answering(&self, time: Duration) {
        self.lock().answering += time;
    }

    /// Whether a page is open, visible and not paused.
    pub(crate) fn is_watched(&self) -> bool {
        self.lock().requested.is_some_and(|requested| requested.elapsed() < WATCHED_FOR)
    }

    /// Enters a phase. Different threads report the end and the last profile, in any order. So an earlier
    /// phase after a later one changes nothing.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
