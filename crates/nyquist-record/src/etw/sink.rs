//! Where a session's events are copied to: buffers of a bounded pool. The thread that delivers them never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use nyquist_etw::Event;
use nyquist_etw::kernel::classes::{IMAGE, PROCESS, THREAD};

use super::record_format;
use crate::pool::{BUFFERS, BufferWriter, Need, Pool};

/// The types of a thread's events that are as frequent as samples: context switches, and threads that become
/// ready ("Event Tracing MOF Classes": `CSwitch`, `ReadyThread`).
const SWITCHES: [u8; 2] = [36, 50];

/// The end to which events are copied.
#[derive(Debug)]
pub(crate) struct EventSink {
    pool: Pool,
    filling: Option<BufferWriter>,
    full: SyncSender<Bytes>,
    dropped: Arc<AtomicU64>,
}

/// The end from which they are taken.
#[derive(Debug)]
pub(crate) struct SunkEvents {
    /// Buffers with events.
    pub(crate) buffers: Receiver<Bytes>,
    /// The number of events for which there was no buffer.
    pub(crate) dropped: Arc<AtomicU64>,
}

impl EventSink {
    /// A sink, and what comes out of it.
    pub(crate) fn new() -> (Self, SunkEvents) {
        Self::with(Pool::new())
    }

    fn with(pool: Pool) -> (Self, SunkEvents) {
        // There are never more buffers than the pool has.
        let (full, buffers) = sync_channel(BUFFERS);
        let dropped = Arc::<AtomicU64>::default();
        (Self { pool, filling: None, full, dropped: Arc::clone(&dropped) }, SunkEvents { buffers, dropped })
    }

    /// Copies an event. If there is no memory for it, it is counted and dropped.
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        let need = need_of(event);
        if self.put(event, need).is_some() {
            return;
        }
        self.flush();
        self.filling = self.pool.take(need);
        if self.put(event, need).is_none() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn put(&mut self, event: &Event<'_>, need: Need) -> Option<()> {
        let filling = self.filling.as_mut().filter(|filling| !filling.is_kept_from(need))?;
        let len = record_format::write(event, filling.room())?;
        filling.advance(len);
        Some(())
    }

    /// Hands over what was copied.
    pub(crate) fn flush(&mut self) {
        if let Some(filling) = self.filling.take().filter(|filling| !filling.is_empty()) {
            // If the recording has ended, nobody needs the events.
            let _ = self.full.try_send(filling.into_bytes());
        }
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        self.flush();
    }
}

/// How much an event is needed. Without processes, threads and images, samples have no names.
fn need_of(event: &Event<'_>) -> Need {
    let is_life = match event.provider {
        PROCESS | IMAGE => true,
        THREAD => !SWITCHES.contains(&event.opcode),
        _ => false,
    };
    if is_life { Need::Sideband } else { Need::Samples }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_etw::Guid;
    use nyquist_etw::kernel::classes::PERF_INFO;

    fn event(provider: Guid, opcode: u8, payload: &[u8]) -> Event<'_> {
        let pointer_size = nyquist_etw::PointerSize::Eight;
        let (process, thread) = (None, None);
        Event { provider, opcode, version: 2, pointer_size, process, thread, time: 5, cpu: 0, payload }
    }

    fn opcodes(buffers: &[Bytes]) -> Vec<u8> {
        let mut found = Vec::new();
        for buffer in buffers {
            let mut rest = &buffer[..];
            while let Some((event, behind)) = record_format::read(rest) {
                found.push(event.opcode);
                rest = behind;
            }
        }
        found
    }

    #[test]
    fn events_come_out_in_order() {
        let (mut sink, sunk) = EventSink::new();
        let long = vec![0; 60_000];
        for opcode in 0..9 {
            sink.push(&event(THREAD, opcode, &long));
        }
        drop(sink);
        let buffers: Vec<Bytes> = sunk.buffers.iter().collect();
        assert!(buffers.len() > 1);
        assert_eq!(opcodes(&buffers), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(sunk.dropped.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_burst_of_samples_leaves_room_for_images() {
        let (mut sink, sunk) = EventSink::with(Pool::of(30, 200));
        for _ in 0..40 {
            sink.push(&event(PERF_INFO, 46, &[0; 120]));
        }
        let dropped = sunk.dropped.load(Ordering::Relaxed);
        assert_eq!(dropped, 40 - 6, "24 buffers are kept for others");
        sink.push(&event(IMAGE, 10, &[0; 120]));
        sink.push(&event(THREAD, 1, &[0; 20]));
        sink.push(&event(THREAD, 36, &[0; 120]));
        assert_eq!(sunk.dropped.load(Ordering::Relaxed), dropped + 1, "a switch is as a sample");
        drop(sink);
        let buffers: Vec<Bytes> = sunk.buffers.iter().collect();
        assert_eq!(opcodes(&buffers), [46, 46, 46, 46, 46, 46, 10, 1]);
    }

    #[test]
    fn an_event_that_fits_in_no_buffer_is_counted() {
        let (mut sink, sunk) = EventSink::with(Pool::of(30, 200));
        sink.push(&event(IMAGE, 10, &[0; 300]));
        assert_eq!(sunk.dropped.load(Ordering::Relaxed), 1);
        drop(sink);
        assert_eq!(sunk.buffers.iter().count(), 0);
    }
}
