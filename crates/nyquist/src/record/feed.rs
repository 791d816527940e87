//! Feeds the events of a run to the converter, and to what else needs them.

use super::family::Family;
use crate::control::Control;
use crate::live_page::SnapshotSender;
use crate::record::drive::ChunkSink;
use crate::spool::Spool;
use crate::system::launch::EndReason;
use crate::system::signals::now;
use bytes::Bytes;
use nyquist_convert::Converter;
use nyquist_convert::event::{Event, EventKind, Timestamp};
use std::time::Duration;

/// The receivers of a run's events.
pub(crate) struct Feed<'a> {
    pub(crate) converter: &'a mut Converter,
    /// The forks so far.
    pub(crate) family: Family,
    /// The receiver of snapshots, and the start of the run, if a page shows them.
    snapshots: Option<(&'a SnapshotSender, Timestamp)>,
    /// The recording on disk.
    spool: Option<&'a Spool>,
}

impl<'a> Feed<'a> {
    /// Feeds a converter, and a page that shows snapshots of it.
    pub(crate) fn new(
        converter: &'a mut Converter,
        snapshots: Option<(&'a SnapshotSender, Timestamp)>,
    ) -> Self {
        Self { converter, family: Family::default(), snapshots, spool: None }
    }

    /// The same, which also keeps the recording on disk.
    #[allow(dead_code, reason = "for Linux")]
    pub(crate) fn with_spool(self, spool: Option<&'a Spool>) -> Self {
        Self { spool, ..self }
    }
}

impl ChunkSink for Feed<'_> {
    fn take(&mut self, events: &mut Vec<Event>, _records: Option<Bytes>, complete_before: Timestamp) {
        for event in events.drain(..) {
            self.family.notice(&event);
            self.converter.push(event);
        }
        // Another run may follow, with events later than now.
        self.converter.advance(complete_before.min(now()));
    }

    fn with_converter(&mut self, call: impl FnOnce(&mut Converter)) {
        call(self.converter);
    }

    fn show(&mut self, complete_before: Timestamp) {
        if let Some((snapshots, start)) = self.snapshots {
            snapshots.offer(self.converter, start, complete_before.min(now()));
        }
        if let Some(spool) = self.spool {
            spool.offer(self.converter, complete_before.min(now()));
        }
    }
}

/// The CPU time of everything that was recorded, if it was counted. It is a sum, and has no time.
pub(crate) fn total_event(cpu_time_ns: Option<u64>) -> Option<Event> {
    let kind = EventKind::TotalInAll { cpu_time_ns: cpu_time_ns? };
    Some(Event { time: Timestamp(0), cpu: None, kind })
}

/// The end of a run that did not end with the recorded processes. A sleeping program has no last event then.
pub(crate) fn end_of(
    reason: EndReason,
    (began, duration): (Timestamp, Option<Duration>),
    control: &Control,
) -> Option<Timestamp> {
    match reason {
        EndReason::Exited => None,
        EndReason::Stopped => control.end_requested(),
        EndReason::Duration => {
            duration.map(|duration| Timestamp(began.0.saturating_add(duration.as_nanos() as u64)))
        }
    }
}
