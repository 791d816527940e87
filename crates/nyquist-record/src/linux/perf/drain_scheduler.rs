//! Rounds over all rings: each is drained, and the records are sent with the time before which they are
//! complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nyquist_convert::event::Timestamp;

use super::drain::Drainer;
use super::ended_threads::EndedThreads;
use super::ring_source::RingSource;
use super::unreported_losses::UnreportedLosses;
use crate::linux::sys::clock::monotonic_ns;

/// How long a record may take from its time stamp to the ring: a virtual CPU can be preempted in between.
const SETTLING_NS: u64 = 20_000_000;
/// The minimum time between two rounds.
const BETWEEN_ROUNDS_NS: u64 = 1_000_000;

/// How many updates of the completion time alone may be queued. While there is no memory, the records that
/// stay are soon older than the settled time, and then the completion time stays the same.
const MAX_QUEUED_TIMES: usize = 64;

/// The most messages that a reader with this many buffers queues: one for each buffer, and the time updates.
pub(crate) fn handed_over_at_most(buffers: usize) -> usize {
    buffers + MAX_QUEUED_TIMES
}

/// The progress of the rounds.
pub(crate) struct DrainScheduler {
    drainer: Drainer,
    /// The start of the last round that drained every ring.
    started: u64,
    complete_before: u64,
    /// The time of the oldest record that had to stay in the last round, because there was no memory to copy
    /// it.
    oldest_left: Option<u64>,
    /// The time before which all records have been sent, for the receiver.
    settled: Arc<AtomicU64>,
}

impl DrainScheduler {
    /// Starts with a drainer.
    pub(crate) fn new(drainer: Drainer) -> Self {
        Self { drainer, started: 0, complete_before: 0, oldest_left: None, settled: Arc::default() }
    }

    /// The time before which all records have been sent, in ns. It is stored after they were sent.
    pub(crate) fn settled(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.settled)
    }

    /// All rings, in a fixed order.
    pub(crate) fn rings(&self) -> impl Iterator<Item = &RingSource> {
        self.drainer.rings.iter()
    }

    /// How many bytes have been written to all rings so far.
    pub(crate) fn written(&self) -> u64 {
        self.rings().map(|source| source.ring.head()).sum()
    }

    /// Waits if the last round began just now. A storm of short processes writes many small records, and each
    /// wakes the reader.
    pub(crate) fn spread(&self) {
        let since = monotonic_ns().saturating_sub(self.started);
        if since < BETWEEN_ROUNDS_NS {
            std::thread::sleep(Duration::from_nanos(BETWEEN_ROUNDS_NS - since));
        }
    }

    /// Whether the last round ran out of memory to copy into.
    pub(crate) fn are_blocked(&self) -> bool {
        self.oldest_left.is_some()
    }

    /// Copies out what the rings held when the round began, at `started`, and sends it on. Returns whether
    /// all of it found room.
    pub(crate) fn round(&mut self, started: u64) -> bool {
        self.oldest_left = self.drainer.drain();
        let settled = started.saturating_sub(SETTLING_NS);
        let complete = match self.oldest_left {
            None => self.started.min(settled),
            Some(oldest) => oldest.saturating_sub(1).min(settled),
        };
        let is_later = complete > self.complete_before;
        self.complete_before = self.complete_before.max(complete);
        if !self.are_blocked() {
            self.started = started;
        }
        self.drainer.hand_over(Timestamp(self.complete_before), is_later && self.are_blocked());
        self.settled.store(self.complete_before, Ordering::Release);
        !self.are_blocked()
    }

    /// The ends of threads and the losses that records have reported.
    pub(crate) fn into_reports(self) -> (EndedThreads, UnreportedLosses) {
        self.drainer.into_reports()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use bytes::Bytes;
    use nyquist_convert::perf::AdditionalEvents;
    use nyquist_perf::abi::record;
    use nyquist_perf::{RecordFormat, SampleLayout};

    use super::*;
    use crate::linux::arch;
    use crate::linux::perf::active_outer_stacks::Observer;
    use crate::linux::perf::attr::tests::common;
    use crate::linux::perf::attr::{Features, Reach, Trigger};
    use crate::linux::perf::drain::{DrainParameters, FilledBuffer};
    use crate::linux::sys::ring;
    use crate::pool::{BUFFER_BYTES, BUFFERS, BufferWriter, Need};

    const RECORD: usize = 32 << 10;
    /// A ring that holds twice as much as the pool.
    const RING: usize = 2 * BUFFERS * BUFFER_BYTES;
    /// More than enough rounds, if each makes progress.
    const ROUNDS: usize = 4 * RING / BUFFER_BYTES;

    /// A ring full of records with these times.
    fn ring_of(kind: u32, times: impl Iterator<Item = u64>) -> RingSource {
        let (source, mut kernel) = empty_ring();
        kernel.write(kind, times.take(RING / RECORD));
        source
    }

    /// Writes records to a ring.
    struct Kernel(ring::tests::Kernel);

    fn empty_ring() -> (RingSource, Kernel) {
        let (ring, kernel) = ring::tests::empty_ring(RING);
        (RingSource { ring, need: Need::Samples, wakers: Vec::new() }, Kernel(kernel))
    }

    impl Kernel {
        /// Writes records with these times. Only their headers and times use memory.
        fn write(&mut self, kind: u32, times: impl Iterator<Item = u64>) {
            let time_at = SampleLayout::new(&format(), arch::perf::STACK_POINTER).time_at() as u64;
            let header = [&kind.to_le_bytes()[..], &[0; 2], &(RECORD as u16).to_le_bytes()].concat();
            for time in times {
                self.0.write_at(0, &header);
                self.0.write_at(time_at, &time.to_le_bytes());
                self.0.advance(RECORD as u64);
            }
        }
    }

    /// The receiver of the records: it keeps those that an older record could still precede.
    #[derive(Default)]
    struct Taker {
        retained: Vec<(u64, Bytes)>,
        taken: usize,
        released_up_to: u64,
    }

    impl Taker {
        fn take(&mut self, filled: &Receiver<Vec<FilledBuffer>>, time_at: usize) {
            for FilledBuffer { buffer, complete_before } in filled.try_iter().flatten() {
                let bytes = buffer.map(BufferWriter::into_bytes).unwrap_or_default();
                for at in (0..bytes.len()).step_by(RECORD) {
                    let time = u64::from_le_bytes(bytes[at + time_at..][..8].try_into().unwrap());
                    assert!(time >= self.released_up_to, "{time} comes after all before it was complete");
                    self.taken += 1;
                    self.retained.push((time, bytes.slice(at..at + RECORD)));
                }
                self.released_up_to = complete_before.0;
                self.retained.retain(|(time, _)| *time >= complete_before.0);
            }
        }
    }

    fn format() -> RecordFormat {
        let features = Features { trigger: Trigger::CpuClock, ..Features::ALL };
        let reach = Reach::Thread { from_exec: true };
        common(features, reach).format()
    }

    /// Rounds over rings, without a receiver of truncated stacks and without a thread filter; and the channel
    /// of their output.
    fn scheduler(rings: Vec<RingSource>) -> (DrainScheduler, Receiver<Vec<FilledBuffer>>) {
        let (out, filled) = sync_channel(handed_over_at_most(BUFFERS));
        let format = format();
        let draining = DrainParameters {
            counts_threads: false,
            format,
            additional_events: AdditionalEvents::default(),
            buffers: BUFFERS,
            out,
            observer: Observer::default(),
        };
        (DrainScheduler::new(Drainer::new(rings, draining, None)), filled)
    }

    /// Drains rings that hold more than the reader's pool, until all records have come out.
    fn expect_drained(rings: Vec<RingSource>) {
        let held: u64 = rings.iter().map(|source| source.ring.head()).sum();
        let (mut scheduler, filled) = scheduler(rings);
        let (mut taker, mut all_found_room) = (Taker::default(), false);
        for _ in 0..ROUNDS {
            all_found_room = scheduler.round(u64::MAX);
            taker.take(&filled, SampleLayout::new(&format(), arch::perf::STACK_POINTER).time_at());
            if all_found_room {
                break;
            }
        }
        assert!(all_found_room, "{} records came out, and then nothing more", taker.taken);
        assert_eq!(taker.taken as u64, held / RECORD as u64);
    }

    #[test]
    fn rings_holding_more_than_the_pool_are_drained() {
        // The first ring has newer records than most of the others.
        for rings in [2, 6] {
            let first = |at: u32| if at == 0 { 5_000.. } else { 1 + u64::from(at % 3) * 700.. };
            expect_drained((0..rings).map(|at| ring_of(record::SAMPLE, first(at))).collect());
        }
    }

    #[test]
    fn rings_of_many_cpus_drain_with_little_memory() {
        // Each CPU has some of the oldest records, in total more than the last buffers hold.
        let check = |cpus: u32| {
            let records = (0..100).map(|tick| 1 + 1000 * tick);
            let of_cpu = |cpu: u32, need, every: usize| {
                let (source, mut kernel) = empty_ring();
                let kind = if need == Need::Samples { record::SAMPLE } else { record::MMAP2 };
                kernel.write(kind, records.clone().step_by(every).map(|time| time + u64::from(cpu)));
                RingSource { need, ..source }
            };
            let rings =
                (0..cpus).flat_map(|cpu| [of_cpu(cpu, Need::Sideband, 20), of_cpu(cpu, Need::Samples, 1)]);
            expect_drained(rings.collect());
        };
        check(24);
        check(40);
    }

    #[test]
    fn drained_batches_say_how_far_time_is_complete() {
        let (source, mut kernel) = empty_ring();
        let (mut scheduler, filled) = scheduler(vec![source]);
        let mut taker = Taker::default();
        for round in 1..10 {
            // More than is kept until a round ends, in rounds that follow each other closely.
            kernel.write(record::SAMPLE, (0..150).map(|tick| 1_000_000_000 * round + tick));
            assert!(scheduler.round(1_000_000_000 * round + 1000));
            taker.take(&filled, SampleLayout::new(&format(), arch::perf::STACK_POINTER).time_at());
            assert_eq!(taker.taken as u64, 150 * round);
        }
    }

    #[test]
    fn nothing_is_complete_while_a_ring_holds_some() {
        const MS: u64 = 1_000_000;
        /// More than is kept until a round ends.
        const BUSY: u64 = 150;
        let (sources, mut kernels): (Vec<_>, Vec<_>) = (0..3).map(|_| empty_ring()).unzip();
        let (mut scheduler, filled) = scheduler(sources);
        let mut taker = Taker::default();
        let mut written = 0;
        for round in 1..100_u64 {
            let now = 1000 * MS + 5 * MS * round;
            for (kernel, busy_in) in kernels.iter_mut().zip(0..) {
                let count = if round % 3 == busy_in { BUSY } else { round % 2 };
                kernel.write(record::SAMPLE, now - count..now);
                written += count;
            }
            assert!(scheduler.round(now), "round {round}");
            taker.take(&filled, SampleLayout::new(&format(), arch::perf::STACK_POINTER).time_at());
        }
        assert!(scheduler.round(2000 * MS));
        taker.take(&filled, SampleLayout::new(&format(), arch::perf::STACK_POINTER).time_at());
        assert_eq!(taker.taken as u64, written);
        assert!(taker.released_up_to > 1400 * MS, "{} ms", taker.released_up_to / MS);
    }
}
