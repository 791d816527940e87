//! One thread: its name, its row, and its time.

use super::thread_time::ThreadTime;
use super::unseen_waits::UnseenWaits;
use crate::event::Timestamp;
use nyquist_profile::ThreadIndex;

/// One thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<Timestamp>,
    /// Its index in the profile, once it has a sample.
    pub(crate) index: Option<ThreadIndex>,
    /// Whether this row was another thread's before.
    pub(crate) reuses_row: bool,
    /// The time that it has used and waited.
    pub(crate) time: ThreadTime,
    /// The waits that were not seen and are in no sample yet.
    pub(crate) unseen_waits: UnseenWaits,
}

impl Thread {
    pub(super) fn new(name: &str, start: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            start,
            end: None,
            index: None,
            reuses_row: false,
            time: ThreadTime::new(start),
            unseen_waits: UnseenWaits::default(),
        }
    }
}
