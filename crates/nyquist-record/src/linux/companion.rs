//! A companion of a recording: it receives the events, and adds its own.

use nyquist_convert::event::Event;

/// A companion of a recording, such as markers and counters. It learns of processes from the recorded events,
/// and produces events that the backend does not.
pub trait Companion {
    /// Receives an event of the backend. It is called for every sample, so it must be cheap for irrelevant
    /// events.
    fn notice(&mut self, event: &Event);

    /// Appends all its own events whose time is before now, and that were not appended before.
    fn collect(&mut self, events: &mut Vec<Event>);
}
