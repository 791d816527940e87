//! The events to count: those that were named, or a default set.

use crate::args::StatArgs;
use crate::failure::Failure;
use crate::memory;
use crate::record::linux::event_failure::event_failure;
use nyquist_record::linux::event_names::{EventSources, RequestedEvent, parse};

/// The events that are counted by default.
const USUAL: &str =
    "task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses";

/// The events.
#[derive(Debug)]
pub(super) struct CountedEvents {
    pub(super) events: Vec<RequestedEvent>,
    /// Whether the user named them. Then events that cannot be counted are shown, too.
    pub(super) are_named: bool,
}

/// Reads the names of the events.
pub(super) fn requested(args: &StatArgs) -> Result<CountedEvents, Failure> {
    let sources = EventSources::of_machine().within_memory(memory::side_files(None).most());
    let are_named = !args.events.is_empty();
    let mut events = Vec::new();
    for text in args.events.iter().map(String::as_str).chain((!are_named).then_some(USUAL)) {
        events.extend(parse(text, &sources).map_err(|error| event_failure(&error))?);
    }
    Ok(CountedEvents { events, are_named })
}
