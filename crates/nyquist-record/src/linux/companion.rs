//! What goes along with a recording: it hears of the events, and adds events of its own.

use nyquist_convert::event::Event;

/// A companion of a recording, as markers and counters: it learns of processes from the events that come, and has events that the
/// backend does not know.
pub trait Companion {
    /// Takes note of an event of the backend. Called for every sample, so it must be cheap for those that say nothing to it.
    fn notice(&mut self, event: &Event);

    /// Appends all of its own events whose time is before now, and which were not appended before.
    fn collect(&mut self, events: &mut Vec<Event>);
}
