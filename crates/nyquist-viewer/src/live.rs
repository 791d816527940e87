//! A recording that goes on: its pages are shown one profile after another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nyquist_profile::{Profile, StableNumbers};
use nyquist_server::{Answer, Refusal};
use serde::Serialize;

use crate::parameters::Parameters;
use crate::refusal::internal;
use crate::worker::{Subject, Worker};

/// A page that has not asked what is new for so long is closed, hidden or paused.
const WATCHED_FOR: Duration = Duration::from_secs(3);

/// What the pages of a recording ask, and what makes the profiles for them.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    version: u64,
    phase: Phase,
    /// When a page last asked what is new.
    asked: Option<Instant>,
    /// How long answers about the present profile took.
    answering: Duration,
}

/// How far the recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    #[default]
    Running,
    /// What was recorded gets its names and is saved.
    Saving,
    /// The profile that is shown is the whole.
    Ended,
}

/// The answer to `live`.
#[derive(Debug, Serialize)]
struct News {
    version: u64,
    state: Phase,
}

impl Progress {
    /// Answers a page that asks what is new. One that is paused wants no new profiles.
    pub(crate) fn answer(&self, query: &str) -> Result<Answer, Refusal> {
        let is_paused = Parameters::parse(query).is_set("paused");
        let mut state = self.lock();
        if !is_paused {
            state.asked = Some(Instant::now());
        }
        let news = News { version: state.version, state: state.phase };
        serde_json::to_vec(&news).map(Answer::json).map_err(|_| internal())
    }

    /// From now on, answers are about another profile. Gives back how long those about the last one took.
    pub(crate) fn count_version(&self) -> Duration {
        let mut state = self.lock();
        state.version += 1;
        std::mem::take(&mut state.answering)
    }

    /// Takes note of how long an answer took.
    pub(crate) fn add_answering(&self, time: Duration) {
        self.lock().answering += time;
    }

    fn is_watched(&self) -> bool {
        self.lock().asked.is_some_and(|asked| asked.elapsed() < WATCHED_FOR)
    }

    fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What gives the viewer of a recording its profiles.
#[derive(Debug)]
pub struct ProfileFeed {
    worker: Arc<Worker>,
    progress: Arc<Progress>,
    /// Numbers of functions and threads in the addresses of pages mean the same in all profiles.
    numbers: Mutex<StableNumbers>,
}

impl ProfileFeed {
    pub(crate) fn new(worker: Arc<Worker>, progress: Arc<Progress>) -> Self {
        Self { worker, progress, numbers: Mutex::default() }
    }

    /// Whether somebody looks: a page that is open, seen and not paused.
    pub fn is_watched(&self) -> bool {
        self.progress.is_watched()
    }

    /// Shows a profile of what was recorded until `until_ns` since its zero. Waits until it is in the place of the one before, and
    /// gives back what it took to take it in, and to answer what was asked about the one before.
    pub fn show(&self, profile: Profile, until_ns: u64) -> Duration {
        let began = Instant::now();
        let profile = self.numbered(profile);
        let numbering = began.elapsed();
        numbering + self.worker.replace(Subject { profile, before: None, until_ns: Some(until_ns) })
    }

    /// Says until when there is nothing new, and gives back what answers took since something was said.
    pub fn pass_time(&self, until_ns: u64) -> Duration {
        self.worker.pass_time(until_ns)
    }

    /// The recording has ended, and its profile is being made.
    pub fn note_saving(&self) {
        self.progress.enter(Phase::Saving);
    }

    /// Shows the profile of the whole recording.
    pub fn end(&self, profile: Profile) {
        let profile = self.numbered(profile);
        self.worker.replace(Subject { profile, before: None, until_ns: None });
        self.progress.enter(Phase::Ended);
    }

    fn numbered(&self, mut profile: Profile) -> Profile {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut profile);
        profile
    }
}
