//! Pauses of a recording by perf events: the events that sample and count are disabled meanwhile. Those that report
//! mappings and names stay, and with them the price that switches of threads with events have.

use std::sync::Arc;

use super::events::OpenedEvents;
use super::totals::ThreadTotals;

/// Pauses and resumes the events of a recording.
#[derive(Clone, Debug)]
pub(crate) struct EventPause {
    events: Arc<OpenedEvents>,
    totals: Arc<ThreadTotals>,
}

impl EventPause {
    pub(crate) fn new(events: &Arc<OpenedEvents>, totals: &Arc<ThreadTotals>) -> Self {
        Self { events: Arc::clone(events), totals: Arc::clone(totals) }
    }

    /// Pauses a recording that samples.
    pub(crate) fn pause(&self) {
        self.events.set_sampling(false);
        self.totals.pause();
    }

    /// Resumes a recording that pauses.
    pub(crate) fn resume(&self) {
        self.totals.resume();
        self.events.set_sampling(true);
    }
}
