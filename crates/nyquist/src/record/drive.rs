//! Drives a recording: a sink takes what its chunks have, and the recording gets the converter's feedback.

use crate::system::recorder::Preference;
use bytes::Bytes;
use nyquist_convert::Converter;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_record::ChunkSource;

/// Takes the chunks of a recording, one after the other.
pub(crate) trait ChunkSink {
    /// Whether it wants the records as the kernel has written them.
    fn wants_records(&self) -> bool {
        false
    }

    /// Takes all events of a chunk, and its records, if it wants them. All events older than
    /// `complete_before` have now been taken.
    fn take(&mut self, events: &mut Vec<Event>, records: Option<Bytes>, complete_before: Timestamp);

    /// Calls a function with the converter of the events.
    fn with_converter(&mut self, call: impl FnOnce(&mut Converter));

    /// Shows what was taken so far, if something shows it.
    fn show(&mut self, _complete_before: Timestamp) {}
}

/// Passes all that is recorded to the sink, until the recording ends.
pub(crate) fn drive(recording: &mut impl ChunkSource, sink: &mut impl ChunkSink) {
    let _preference = Preference::of_this_thread();
    let mut events = Vec::new();
    while let Some(chunk) = recording.next() {
        let records = if sink.wants_records() { chunk.raw_records() } else { None };
        let complete_before = chunk.complete_before();
        chunk.decode(&mut events);
        sink.take(&mut events, records, complete_before);
        sink.with_converter(|converter| recording.apply_feedback(&converter.take_stack_copy_feedback()));
        sink.show(complete_before);
    }
}
