//! How far a recording is whose pages are open, and whether one of them is watched.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nyquist_server::{Answer, Refusal};
use serde::Serialize;

use crate::parameters::Parameters;
use crate::refusal::internal;

/// A page that has not asked for updates for so long is closed, hidden or paused.
const WATCHED_FOR: Duration = Duration::from_secs(3);

/// Shared by the pages of a recording and the maker of their profiles.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    version: u64,
    phase: Phase,
    /// When a page last asked for updates.
    asked: Option<Instant>,
    /// How long answers about the present profile took.
    answering: Duration,
}

/// How far the recording is, in the order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    #[default]
    Running,
    /// The recording gets its names and is saved.
    Saving,
    /// The profile that is shown is the whole.
    Ended,
}

/// The answer to `live`.
#[derive(Debug, Serialize)]
struct Update {
    version: u64,
    state: Phase,
}

impl Progress {
    /// Answers a page that asks for updates. One that is paused wants no new profiles.
    pub(crate) fn answer(&self, query: &str) -> Result<Answer, Refusal> {
        let is_paused = Parameters::parse(query).is_set("paused");
        let mut state = self.lock();
        if !is_paused {
            state.asked = Some(Instant::now());
        }
        let update = Update { version: state.version, state: state.phase };
        serde_json::to_vec(&update).map(Answer::json).map_err(|_| internal())
    }

    /// From now on, answers are about another profile. Returns how long those about the last one took.
    pub(crate) fn count_version(&self) -> Duration {
        let mut state = self.lock();
        state.version += 1;
        std::mem::take(&mut state.answering)
    }

    /// Takes note of how long an answer took.
    pub(crate) fn add_answering(&self, time: Duration) {
        self.lock().answering += time;
    }

    /// Whether a page is open, visible and not paused.
    pub(crate) fn is_watched(&self) -> bool {
        self.lock().asked.is_some_and(|asked| asked.elapsed() < WATCHED_FOR)
    }

    /// The recording has come so far. Threads of their own report its end and its last profile, in any order,
    /// so that an earlier phase after a later one changes nothing.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
