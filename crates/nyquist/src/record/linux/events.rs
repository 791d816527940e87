//! The events that are recorded in addition to the samples.

use crate::args::{EventArgs, NOT_UNDERSTOOD, SymbolArgs};
use crate::failure::Failure;
use crate::record::linux::event_failure::event_failure;
use nyquist_record::linux::RecordedEvent;
use nyquist_record::linux::event_names::{EventSources, SampleInterval, parse};

/// The names of the events that were asked for. Those that show waiting were not.
pub(crate) fn requested_names(events: &[RecordedEvent]) -> impl Iterator<Item = String> {
    let requested = events.iter().filter(|recorded| !recorded.is_optional());
    requested.map(|recorded| recorded.event.name.clone())
}

/// Reads the names of the events, each of which is recorded once. With `waits`, adds the events that show where
/// threads wait.
pub(crate) fn recorded_events(
    args: &EventArgs,
    symbols: &SymbolArgs,
    rate: u32,
    waits: bool,
) -> Result<Vec<RecordedEvent>, Failure> {
    let sources = EventSources::of_machine().within_memory(symbols.modules().most());
    let interval = args.count.map(SampleInterval::Period);
    let mut recorded_events: Vec<RecordedEvent> = Vec::new();
    for requested in &args.requested {
        let events = parse(&requested.text, &sources).map_err(|error| event_failure(&error))?;
        for event in events {
            if requested.filter.is_some() && !event.is_tracepoint() {
                let text = format!("--filter is for tracepoints, and `{}` is none", event.name);
                return Err(Failure::new(text).status(NOT_UNDERSTOOD));
            }
            let is_new = !recorded_events.iter().any(|other| other.event.name == event.name);
            let mut recorded = RecordedEvent::new(event, interval, rate, &sources);
            recorded.filter.clone_from(&requested.filter);
            recorded_events.extend(is_new.then_some(recorded));
        }
    }
    if waits {
        recorded_events.extend(RecordedEvent::of_waits(&sources));
    }
    Ok(recorded_events)
}
