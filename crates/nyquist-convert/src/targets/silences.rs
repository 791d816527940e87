//! Which processes gave no answer, how long the next one may take, and whether another delegate may be started.

use crate::event::Pid;
use crate::files::view::MountView;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the first request may take that gets no answer. Each further one may take half as long as the one before,
/// so that all together take less than twelve seconds.
const PATIENCE: Duration = Duration::from_secs(5);
const MIN_PATIENCE: Duration = Duration::from_millis(250);

/// The most silences of a user's processes, and of all. After these, no other delegate is started for them.
const MAX_OF_USER: u32 = 2;
const MAX_SILENCES: u32 = 8;

/// The most processes and views that are remembered.
const MAX_SUBJECTS: usize = 1 << 12;

/// The silences of a recording.
#[derive(Debug)]
pub(super) struct Silences {
    noted: Mutex<Noted>,
    /// How long the first one may take.
    patience: Duration,
}

impl Default for Silences {
    fn default() -> Self {
        Self::after(PATIENCE)
    }
}

#[derive(Debug, Default)]
struct Noted {
    of_users: FxHashMap<u32, u32>,
    all: u32,
    pids: FxHashSet<Pid>,
    views: FxHashSet<MountView>,
    sentences: Vec<String>,
    cannot_start: bool,
}

impl Silences {
    /// No silences yet. The first one is noted after this time.
    pub(super) fn after(patience: Duration) -> Self {
        Self { noted: Mutex::default(), patience }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a request may take.
    pub(super) fn patience(&self) -> Duration {
        (self.patience / 2_u32.saturating_pow(self.lock().all.min(MAX_SILENCES)))
            .max(MIN_PATIENCE.min(self.patience))
    }

    /// Whether a process, or another with its view, gave no answer before.
    pub(super) fn have(&self, pid: Pid, view: Option<MountView>) -> bool {
        let noted = self.lock();
        noted.pids.contains(&pid) || view.is_some_and(|view| noted.views.contains(&view))
    }

    /// Whether another delegate may be started for a user's processes.
    pub(super) fn may_start(&self, user: u32) -> bool {
        let noted = self.lock();
        noted.all < MAX_SILENCES && noted.of_users.get(&user).is_none_or(|count| *count < MAX_OF_USER)
    }

    /// Notes that a request about a process of a user was not answered.
    pub(super) fn note(&self, user: u32, pid: Pid, view: Option<MountView>) {
        let mut noted = self.lock();
        noted.all += 1;
        *noted.of_users.entry(user).or_default() += 1;
        if noted.pids.len() < MAX_SUBJECTS {
            noted.pids.insert(pid);
            noted.views.extend(view.filter(|view| *view != MountView::Ours));
        }
        noted.sentences.push(format!(
            "process {} of user {user} gives no access to its files or memory: a file system of its own does not \
             answer, so functions of this user's programs may have no names",
            pid.0
        ));
    }

    /// Notes that no delegate can be started.
    pub(super) fn note_failed_start(&self, error: &std::io::Error) {
        let mut noted = self.lock();
        if !std::mem::replace(&mut noted.cannot_start, true) {
            noted.sentences.push(format!(
                "files of programs cannot be opened, because the process that opens them cannot be started: {error}"
            ));
        }
    }

    /// A sentence for each.
    pub(super) fn sentences(&self) -> Vec<String> {
        self.lock().sentences.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_waiting_together_is_bounded() {
        let silences = Silences::default();
        let mut waited = Duration::ZERO;
        let mut started = 0;
        for user in 0..100 {
            while silences.may_start(user) {
                waited += silences.patience();
                silences.note(user, Pid(user), None);
                started += 1;
            }
        }
        assert_eq!(started, MAX_SILENCES);
        assert!(waited < Duration::from_secs(12), "{waited:?}");
    }

    #[test]
    fn one_users_silence_is_not_anothers() {
        let silences = Silences::default();
        let other = MountView::Other { mount: 1, folder: 2 };
        silences.note(7, Pid(1), Some(other));
        silences.note(7, Pid(2), Some(MountView::Ours));
        assert!(!silences.may_start(7) && silences.may_start(8));
        assert!(silences.have(Pid(1), None) && silences.have(Pid(9), Some(other)));
        assert!(!silences.have(Pid(9), Some(MountView::Ours)));
        assert_eq!(silences.sentences().len(), 2);
    }
}
