//! Which events are counted: those that were named, or a usual set.

use crate::args::{NOT_UNDERSTOOD, StatArgs};
use crate::failure::Failure;
use nyquist_record::linux::event_names::{Event, EventNameError, EventSources, parse};

/// What is counted where no event is named.
const USUAL: &str =
    "task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses";

/// The events.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) events: Vec<Event>,
    /// Whether they were named: then one that cannot be counted is shown.
    pub(super) are_named: bool,
}

/// Reads the names of the events.
pub(super) fn wanted(args: &StatArgs) -> Result<Wanted, Failure> {
    let sources = EventSources::of_machine();
    let are_named = !args.events.is_empty();
    let mut events = Vec::new();
    for text in args.events.iter().map(String::as_str).chain((!are_named).then_some(USUAL)) {
        events.extend(parse(text, &sources).map_err(|error| failure(&error))?);
    }
    Ok(Wanted { events, are_named })
}

/// What is wrong with the name of an event, with the place and what to do.
pub(crate) fn failure(error: &EventNameError) -> Failure {
    error.hints().into_iter().fold(Failure::new(error.to_string()).status(NOT_UNDERSTOOD), Failure::hint)
}
