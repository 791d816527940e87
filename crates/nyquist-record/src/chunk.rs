//! What a backend returns: records or events of some time span, and the time before which they are complete.

use bytes::Bytes;
use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_convert::perf::PerfDecoder;
use nyquist_perf::Header;

/// A recording backend: an iterator over chunks. It blocks until the next chunk, and ends when the recording
/// has ended and everything was returned.
pub trait ChunkSource: Iterator<Item = Chunk> + Send {
    /// Uses the converter's feedback on stack copies, if the backend can.
    fn apply_feedback(&self, _feedback: &StackCopyFeedback) {}
}

/// Records or events in the order of arrival: those of one CPU are in order of time, those of several CPUs
/// are mixed.
#[derive(Debug)]
pub struct Chunk {
    content: ChunkContent,
    complete_before: Timestamp,
}

#[derive(Debug)]
enum ChunkContent {
    Records { bytes: Bytes, format: PerfDecoder },
    Events(Vec<Event>),
}

impl Chunk {
    /// The kernel's records, one after the other.
    pub fn records(bytes: Bytes, format: PerfDecoder, complete_before: Timestamp) -> Self {
        Self { content: ChunkContent::Records { bytes, format }, complete_before }
    }

    pub(crate) fn events(events: Vec<Event>, complete_before: Timestamp) -> Self {
        Self { content: ChunkContent::Events(events), complete_before }
    }

    /// Every event older than this is in this chunk or in an earlier one.
    pub fn complete_before(&self) -> Timestamp {
        self.complete_before
    }

    /// The kernel's records, if the chunk contains these and not events.
    pub fn raw_records(&self) -> Option<Bytes> {
        match &self.content {
            ChunkContent::Records { bytes, .. } => Some(bytes.clone()),
            ChunkContent::Events(_) => None,
        }
    }

    /// Appends the events to `events`, and returns how many records could not be decoded.
    ///
    /// Their stack copies share the chunk's memory, which returns to the recorder when the last of them is
    /// dropped. Keeping them for long therefore stops the recorder from reading more.
    pub fn decode(self, events: &mut Vec<Event>) -> u64 {
        match self.content {
            ChunkContent::Events(mut made) => {
                events.append(&mut made);
                0
            }
            ChunkContent::Records { bytes, format } => decode_records(&bytes, &format, events),
        }
    }
}

fn decode_records(bytes: &Bytes, format: &PerfDecoder, events: &mut Vec<Event>) -> u64 {
    let mut not_understood = 0;
    let mut at = 0;
    while let Some(len) = record_len(&bytes[at..]) {
        match format.event(bytes, &bytes[at..at + len]) {
            Ok(event) => events.extend(event),
            Err(_) => not_understood += 1,
        }
        at += len;
    }
    not_understood + u64::from(at < bytes.len())
}

/// The length of the record at the start of `bytes`, if it is complete.
fn record_len(bytes: &[u8]) -> Option<usize> {
    let len = usize::from(Header::parse(bytes).ok()?.size);
    (Header::LEN..=bytes.len()).contains(&len).then_some(len)
}
