//! Builds the chunks of events for the consumer. Their stacks are in memory that is bounded and reused.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use nyquist_convert::event::{Event, EventKind, Timestamp, UserStack};

use crate::Chunk;
use crate::pool::{BufferWriter, Need, Pool};

/// The most chunks that may wait in the queue before samples are dropped.
const MAX_QUEUED_CHUNKS: usize = 512;

/// The events since the last chunk was sent.
#[derive(Debug)]
pub(crate) struct ChunkBuilder {
    pool: Pool,
    filling: Option<BufferWriter>,
    /// How many bytes of `filling` are used.
    filled: usize,
    events: Vec<Event>,
    /// The events whose stacks are in `filling`, with their ranges.
    copies: Vec<(usize, Range<usize>)>,
    chunks: Sender<Chunk>,
    waiting: Arc<AtomicUsize>,
    /// The samples that were dropped since the last chunk.
    dropped: u64,
}

impl ChunkBuilder {
    /// Sends to `chunks`. The receiver decrements `waiting` for each chunk that it takes.
    pub(crate) fn new(chunks: Sender<Chunk>, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            pool: Pool::new(),
            filling: None,
            filled: 0,
            events: Vec::new(),
            copies: Vec::new(),
            chunks,
            waiting,
            dropped: 0,
        }
    }

    /// Whether there is room for a stack of `len` bytes, or will be after [`Self::prepare`]. If not, the
    /// pending events must be sent first.
    pub(crate) fn has_room(&mut self, len: usize) -> bool {
        self.filling.as_mut().is_none_or(|filling| filling.room().len() >= len)
    }

    /// Takes a buffer if there is none.
    pub(crate) fn prepare(&mut self) {
        if self.filling.is_none() {
            self.filling = self.pool.take(Need::Samples);
        }
    }

    /// The room for a stack; empty if there is none.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.filling.as_mut().map(BufferWriter::room).unwrap_or_default()
    }

    /// Whether a sample with a stack of `len` bytes can be added now.
    #[cfg(any(test, target_os = "macos", windows))]
    pub(crate) fn takes_sample(&mut self, len: usize) -> bool {
        !self.is_full() && self.room().len() >= len
    }

    /// Adds an event on an unknown CPU.
    pub(crate) fn push(&mut self, time: u64, kind: EventKind) {
        self.push_event(Event { time: Timestamp(time), cpu: None, kind });
    }

    /// Adds an event.
    pub(crate) fn push_event(&mut self, event: Event) {
        if matches!(event.kind, EventKind::Sample(_)) && self.is_full() {
            return self.drop_sample();
        }
        self.events.push(event);
    }

    /// Adds a sample whose stack is the first `len` bytes of the room.
    pub(crate) fn push_sample(&mut self, time: u64, kind: EventKind, len: usize) {
        let Some(filling) =
            self.filling.as_mut().filter(|_| self.waiting.load(Ordering::Relaxed) < MAX_QUEUED_CHUNKS)
        else {
            return self.drop_sample();
        };
        filling.advance(len);
        self.copies.push((self.events.len(), self.filled..self.filled + len));
        self.filled += len;
        self.events.push(Event { time: Timestamp(time), cpu: None, kind });
    }

    /// Whether so much waits to be received that samples are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= MAX_QUEUED_CHUNKS
    }

    /// Counts a sample for which there is no room.
    pub(crate) fn drop_sample(&mut self) {
        self.dropped += 1;
    }

    /// Sends the pending events, which are all events before `now`.
    pub(crate) fn send(&mut self, now: u64) {
        if self.dropped > 0 {
            let records = std::mem::take(&mut self.dropped);
            self.push(now, EventKind::Lost { records });
        }
        let mut events = std::mem::take(&mut self.events);
        if let Some(filling) = self.filling.take_if(|filling| !filling.is_empty()) {
            let bytes = filling.into_bytes();
            for (event, range) in self.copies.drain(..) {
                if let Some(EventKind::Sample(sample)) = events.get_mut(event).map(|event| &mut event.kind)
                    && let UserStack::Copied { stack, .. } = &mut sample.user
                {
                    *stack = bytes.slice(range);
                }
            }
        }
        self.filled = 0;
        self.copies.clear();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // If the receiver is gone, the events are not needed.
        let _ = self.chunks.send(Chunk::events(events, Timestamp(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use nyquist_convert::event::{Pid, Registers, Sample, SampleState, Tid};
    use std::sync::mpsc::{Receiver, channel};

    fn out() -> (ChunkBuilder, Receiver<Chunk>) {
        let (sender, chunks) = channel();
        (ChunkBuilder::new(sender, Arc::default()), chunks)
    }

    fn sample(stack: &'static [u8]) -> EventKind {
        EventKind::Sample(Sample {
            pid: Pid(1),
            tid: Tid(1),
            in_kernel: false,
            state: SampleState::Running { waited_ns: 0 },
            period_ns: 0,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: Vec::new(),
            user: UserStack::Copied {
                registers: Box::new(Registers::X86_64([0; 17])),
                stack: Bytes::from_static(stack),
                limited: false,
            },
        })
    }

    fn stacks(chunk: Chunk) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        chunk.decode(&mut events);
        let stack = |event: Event| match event.kind {
            EventKind::Sample(Sample { user: UserStack::Copied { stack, .. }, .. }) => stack.to_vec(),
            other => panic!("{other:?}"),
        };
        events.into_iter().map(stack).collect()
    }

    #[test]
    fn stacks_are_those_that_were_read_into_the_room() {
        let (mut out, chunks) = out();
        for text in ["one", "three"] {
            out.prepare();
            out.room()[..text.len()].copy_from_slice(text.as_bytes());
            out.push_sample(5, sample(b""), text.len());
        }
        out.push(6, sample(b"own"));
        out.send(7);
        let chunk = chunks.try_recv().unwrap();
        assert_eq!(chunk.complete_before(), Timestamp(7));
        assert_eq!(stacks(chunk), [&b"one"[..], b"three", b"own"]);
    }

    #[test]
    fn a_full_buffer_is_to_be_sent() {
        let (mut out, chunks) = out();
        out.prepare();
        let all = out.room().len();
        out.push_sample(5, sample(b""), all - 10);
        assert!(out.has_room(10) && !out.has_room(11));
        out.send(6);
        assert!(out.has_room(11));
        out.prepare();
        assert_eq!(stacks(chunks.try_recv().unwrap())[0].len(), all - 10);
        assert_eq!(out.room().len(), all);
    }

    #[test]
    fn samples_nobody_takes_are_dropped_and_counted() {
        let (mut out, chunks) = out();
        for _ in 0..MAX_QUEUED_CHUNKS {
            out.send(1);
        }
        out.prepare();
        out.push_sample(2, sample(b""), 3);
        out.push(2, sample(b"own"));
        out.send(3);
        let mut events = Vec::new();
        chunks.try_iter().last().unwrap().decode(&mut events);
        let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Lost { records: 2 }]);
    }
}
