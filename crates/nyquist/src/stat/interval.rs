//! The counts of an interval between two readings of the same counters.

use nyquist_record::linux::counting::{EventReading, MissingCount};
use nyquist_record::linux::event_names::RequestedEvent;

/// The count of an event in an interval.
#[derive(Debug)]
pub(super) struct IntervalCount<'a> {
    pub(super) event: &'a RequestedEvent,
    pub(super) value: Result<f64, MissingCount>,
    pub(super) user_only: bool,
}

/// The counts between two readings of the same counters.
pub(super) fn counts<'a>(
    events: &'a [RequestedEvent],
    before: &[EventReading],
    now: &[EventReading],
) -> Vec<IntervalCount<'a>> {
    let count = |(before, now): (&EventReading, &EventReading)| {
        let before = before.count.map_or(0.0, |count| count.value);
        // An estimate can decrease.
        let value = now.count.map(|count| (count.value - before).max(0.0));
        Some(IntervalCount { event: events.get(now.event)?, value, user_only: now.user_only })
    };
    before.iter().zip(now).filter_map(count).collect()
}
