//! A running recording, whose pages show one profile after another.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nyquist_profile::{Profile, StableNumbers};

use crate::progress::{Phase, Progress};
use crate::viewed_profile::ViewedProfile;
use crate::worker::Worker;

/// Passes the profiles of a recording to the viewer.
#[derive(Debug)]
pub struct ProfileFeed {
    worker: Arc<Worker>,
    progress: Arc<Progress>,
    /// The numbers of functions and threads in the addresses of pages mean the same in all profiles.
    numbers: Mutex<StableNumbers>,
}

impl ProfileFeed {
    pub(crate) fn new(worker: Arc<Worker>, progress: Arc<Progress>) -> Self {
        Self { worker, progress, numbers: Mutex::default() }
    }

    /// Whether a page is open, visible and not paused.
    pub fn is_watched(&self) -> bool {
        self.progress.is_watched()
    }

    /// Shows a profile of the recording up to `until_ns` since its zero. Waits until it has replaced the
    /// previous one. Returns the time that this took, plus that of requests about the previous one.
    pub fn show(&self, profile: Profile, until_ns: u64) -> Duration {
        let began = Instant::now();
        let profile = self.numbered(profile);
        let numbering = began.elapsed();
        numbering
            + self.worker.replace(ViewedProfile { until_ns: Some(until_ns), ..ViewedProfile::new(profile) })
    }

    /// Reports the time up to which there are no new samples, and returns the time spent on requests since
    /// the last call.
    pub fn pass_time(&self, until_ns: u64) -> Duration {
        self.worker.pass_time(until_ns)
    }

    /// Reports that the recording has ended, and that its profile is being made.
    pub fn note_saving(&self) {
        self.progress.enter(Phase::Saving);
    }

    /// Shows the profile of the whole recording.
    pub fn end(&self, profile: Profile) {
        let profile = self.numbered(profile);
        self.worker.replace(ViewedProfile::new(profile));
        self.progress.enter(Phase::Ended);
    }

    fn numbered(&self, mut profile: Profile) -> Profile {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut profile);
        profile
    }
}
