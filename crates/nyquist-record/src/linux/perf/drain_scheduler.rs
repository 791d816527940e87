//! Rounds over all rings: each is drained, and what was copied out is handed over with how far the past is complete then.
//!
//! The rings of many CPUs are shared out among several threads, a few CPUs each. One of them waits for all rings and begins each
//! round; the others sleep until much is found.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use nyquist_convert::event::Timestamp;

use super::drain::{DrainStatistics, Drainer};
use super::losses::Losses;
use super::ring_source::RingSource;
use super::totals::EndedThreads;
use crate::linux::pool::BUFFERS;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::process::Preference;

/// How long records may take from their time stamp to the ring: a virtual CPU can lose its core in between.
const SETTLING_NS: u64 = 20_000_000;
/// How long there is at least from one round to the next.
const BETWEEN_ROUNDS_NS: u64 = 1_000_000;
/// The bytes in the rings of one drainer from which on copying them takes far longer than waking another thread for it.
const WORTH_HELP: u64 = 2 << 20;

/// How often it is handed over that the past is complete up to some time, and nothing else, before somebody takes it. While there
/// is no memory, the records that stay are soon older than what has settled, and then there is no news.
const MOST_NEWS: usize = 64;

/// How much so many readers hand over at most before somebody takes it: each of their buffers for itself, and news.
pub(crate) fn handed_over_at_most(readers: usize) -> usize {
    readers * BUFFERS + MOST_NEWS
}

/// Shares out rings, of each of which the CPU is known, among so many readers, or as many as there are CPUs: each gets all rings of
/// some neighbouring CPUs.
pub(crate) fn share_out<T>(rings: Vec<T>, cpu: impl Fn(&T) -> u32, readers: usize) -> Vec<Vec<T>> {
    let cpus: BTreeSet<u32> = rings.iter().map(&cpu).collect();
    let readers = readers.clamp(1, cpus.len().max(1));
    let count = cpus.len().max(1);
    let reader_of: BTreeMap<u32, usize> =
        cpus.into_iter().zip((0..).map(|number| number * readers / count)).collect();
    let mut shares: BTreeMap<usize, Vec<T>> = BTreeMap::new();
    for ring in rings {
        shares.entry(reader_of[&cpu(&ring)]).or_default().push(ring);
    }
    shares.into_values().collect()
}

/// How far the rounds have come.
pub(crate) struct DrainScheduler {
    /// None while a helper has it.
    drainers: Vec<Option<Drainer>>,
    /// The threads of all drainers but the first, as far as they could be started.
    helpers: Vec<Helper>,
    /// When the last round began in which every ring was drained.
    started: u64,
    complete_before: u64,
    found: DrainStatistics,
}

impl DrainScheduler {
    /// Begins with these drainers, each of which gets a thread beside the one that calls where there may be so many threads.
    pub(crate) fn new(drainers: Vec<Drainer>) -> Self {
        let helpers = drainers.iter().skip(1).map_while(|_| Helper::start().ok()).collect();
        Self {
            drainers: drainers.into_iter().map(Some).collect(),
            helpers,
            started: 0,
            complete_before: 0,
            found: DrainStatistics::default(),
        }
    }

    /// All rings, in an order that stays the same.
    pub(crate) fn rings(&self) -> impl Iterator<Item = &RingSource> {
        self.drainers().flat_map(|drainer| &drainer.rings)
    }

    fn drainers(&self) -> impl Iterator<Item = &Drainer> {
        self.drainers.iter().flatten()
    }

    /// How many bytes have been written to all rings so far.
    pub(crate) fn written(&self) -> u64 {
        self.rings().map(|source| source.ring.head()).sum()
    }

    /// Waits where the last round began just now. A storm of short processes writes many small records, each of
    /// which wakes the reader.
    pub(crate) fn spread(&self) {
        let since = monotonic_ns().saturating_sub(self.started);
        if since < BETWEEN_ROUNDS_NS {
            std::thread::sleep(Duration::from_nanos(BETWEEN_ROUNDS_NS - since));
        }
    }

    /// Whether there was no memory to copy into in the last round.
    pub(crate) fn are_blocked(&self) -> bool {
        self.found.oldest_left.is_some()
    }

    /// The most bytes that a ring for samples has given in the last round.
    pub(crate) fn most_sampled(&self) -> u64 {
        self.found.most_sampled
    }

    /// Copies out what the rings held when the round began, at `started`, and hands it over. Returns whether all of it found
    /// room.
    pub(crate) fn round(&mut self, started: u64) -> bool {
        self.found = self.drain();
        let settled = started.saturating_sub(SETTLING_NS);
        let complete = match self.found.oldest_left {
            None => self.started.min(settled),
            Some(oldest) => oldest.saturating_sub(1).min(settled),
        };
        let is_news = complete > self.complete_before;
        self.complete_before = self.complete_before.max(complete);
        if !self.are_blocked() {
            self.started = started;
        }
        self.hand_over(is_news && self.are_blocked());
        !self.are_blocked()
    }

    /// Drains all rings, those of a drainer in its own thread where much is in them.
    fn drain(&mut self) -> DrainStatistics {
        for (helper, slot) in self.helpers.iter_mut().zip(self.drainers.iter_mut().skip(1)) {
            let drainer = slot.take_if(|drainer| drainer.waiting_bytes() >= WORTH_HELP);
            helper.is_busy = drainer.is_some();
            if let Some(drainer) = drainer {
                helper.todo.send(drainer).expect("a reader has panicked");
            }
        }
        let mut found = self
            .drainers
            .iter_mut()
            .flatten()
            .map(Drainer::drain)
            .fold(DrainStatistics::default(), DrainStatistics::and);
        for (helper, slot) in self.helpers.iter_mut().zip(self.drainers.iter_mut().skip(1)) {
            if std::mem::take(&mut helper.is_busy) {
                let (drainer, others) = helper.done.recv().expect("a reader has panicked");
                *slot = Some(drainer);
                found = found.and(others);
            }
        }
        found
    }

    /// Hands over all that was copied out. Only with the last of it the past is complete as far as that; where there is nothing,
    /// and `is_news`, that is handed over alone.
    fn hand_over(&mut self, is_news: bool) {
        let complete_before = Timestamp(self.complete_before);
        let keeps_any = |drainer: &Option<Drainer>| drainer.as_ref().is_some_and(Drainer::keeps_any);
        let last = self.drainers.iter().rposition(keeps_any);
        for (at, drainer) in self.drainers.iter_mut().flatten().enumerate() {
            if last.is_none_or(|last| at >= last) {
                drainer.complete(complete_before);
            }
            drainer.hand_over();
            drainer.complete(complete_before);
        }
        if let Some(first) = self.drainers.iter_mut().flatten().next().filter(|_| is_news && last.is_none()) {
            first.hand_over_news();
        }
    }

    /// What records have told of the ends of threads, and of losses.
    pub(crate) fn into_told(self) -> (EndedThreads, Losses) {
        let told = self.drainers.into_iter().flatten().map(Drainer::into_told);
        told.reduce(|(ended, losses), (others, more)| (ended.and(others), losses.and(more)))
            .expect("there is a drainer")
    }
}

/// A thread that drains some rings in rounds in which much is in them.
struct Helper {
    todo: SyncSender<Drainer>,
    done: Receiver<(Drainer, DrainStatistics)>,
    /// Whether it drains.
    is_busy: bool,
}

impl Helper {
    fn start() -> io::Result<Self> {
        let (todo, drainers) = sync_channel::<Drainer>(1);
        let (out, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("nyquist-reader".into());
        // It ends when nobody can send it anything any more.
        thread.spawn(move || {
            let _preference = Preference::at_once();
            for mut drainer in drainers {
                let found = drainer.drain();
                if out.send((drainer, found)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { todo, done, is_busy: false })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use nyquist_perf::abi::record;
    use nyquist_perf::{RecordFormat, SampleLayout};

    use super::*;
    use crate::linux::options::CallGraph;
    use crate::linux::perf::attr::{Common, Features, Reach, Trigger};
    use crate::linux::perf::drain::{Draining, FilledBuffer};
    use crate::linux::pool::{BUFFER_BYTES, BufferWriter, Need};
    use crate::linux::sys::ring;

    const RECORD: usize = 32 << 10;
    /// A ring that holds twice what the pool does.
    const RING: usize = 2 * BUFFERS * BUFFER_BYTES;
    /// More than enough rounds, if each gets something done.
    const ROUNDS: usize = 4 * RING / BUFFER_BYTES;

    /// A CPU's ring full of samples with these times.
    fn ring(cpu: u32, times: impl Iterator<Item = u64>) -> RingSource {
        RingSource { cpu, ..ring_of(record::SAMPLE, times) }
    }

    /// A ring full of records with these times.
    fn ring_of(kind: u32, times: impl Iterator<Item = u64>) -> RingSource {
        let (source, mut kernel) = empty_ring(0);
        kernel.write(kind, times.take(RING / RECORD));
        source
    }

    /// Writes records to a ring.
    struct Kernel(ring::tests::Kernel);

    fn empty_ring(cpu: u32) -> (RingSource, Kernel) {
        let (ring, kernel) = ring::tests::empty_ring(RING);
        (RingSource { ring, cpu, need: Need::Samples, wakers: Vec::new() }, Kernel(kernel))
    }

    impl Kernel {
        /// Writes records with these times. Nothing but their headers and times takes up memory.
        fn write(&mut self, kind: u32, times: impl Iterator<Item = u64>) {
            let time_at = SampleLayout::new(&format()).time_at() as u64;
            let header = [&kind.to_le_bytes()[..], &[0; 2], &(RECORD as u16).to_le_bytes()].concat();
            for time in times {
                self.0.write_at(0, &header);
                self.0.write_at(time_at, &time.to_le_bytes());
                self.0.advance(RECORD as u64);
            }
        }
    }

    /// Whoever takes the records: it keeps those that something older could still come before.
    #[derive(Default)]
    struct Taker {
        kept: Vec<(u64, Bytes)>,
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
                    self.kept.push((time, bytes.slice(at..at + RECORD)));
                }
                self.released_up_to = complete_before.0;
                self.kept.retain(|(time, _)| *time >= complete_before.0);
            }
        }
    }

    fn format() -> RecordFormat {
        let features = Features { trigger: Trigger::CpuClock, ..Features::ALL };
        let reach = Reach::Thread { from_exec: true };
        Common { features, reach, switches: false, call_graph: CallGraph::Auto, events_beside: false }
            .format()
    }

    /// Rounds of so many readers, with nobody to tell of cut stacks and no thread to leave out; and what they hand over.
    fn rounds(rings: Vec<RingSource>, readers: usize) -> (DrainScheduler, Receiver<Vec<FilledBuffer>>) {
        let (out, filled) = sync_channel(handed_over_at_most(readers));
        let draining = Draining { format: format(), out, cuts: None, roots: Arc::default() };
        let shares = share_out(rings, |source| source.cpu, readers);
        assert_eq!(shares.len(), readers);
        let drainers = shares.into_iter().map(|rings| Drainer::new(rings, draining.clone(), None));
        (DrainScheduler::new(drainers.collect()), filled)
    }

    #[test]
    fn neighbouring_cpus_share_a_reader() {
        let check = |cpus: &[u32], readers: usize, expected: &[std::ops::RangeInclusive<u32>]| {
            // Several rings each.
            let rings = cpus.iter().flat_map(|cpu| [*cpu; 3]).collect();
            let shares = share_out(rings, |cpu| *cpu, readers);
            let ends = |share: &Vec<u32>| share[0]..=share[share.len() - 1];
            assert_eq!(shares.iter().map(ends).collect::<Vec<_>>(), expected, "{readers} readers");
            assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), 3 * cpus.len());
        };
        let many: Vec<u32> = (0..128).collect();
        check(&many, 4, &[0..=31, 32..=63, 64..=95, 96..=127]);
        check(&many, 1, &[0..=127]);
        check(&many[..66], 3, &[0..=21, 22..=43, 44..=65]);
        check(&[3, 5, 64, 65, 200], 2, &[3..=64, 65..=200]);
        check(&[1, 2, 3, 4, 5], 4, &[1..=2, 3..=3, 4..=4, 5..=5]);
        check(&[3], 4, &[3..=3]);
    }

    /// Drains rings that hold more than the pool of their reader, until all records have come out.
    fn expect_drained(rings: Vec<RingSource>, readers: usize) {
        let held: u64 = rings.iter().map(|source| source.ring.head()).sum();
        let (mut rounds, filled) = rounds(rings, readers);
        let (mut taker, mut all_found_room) = (Taker::default(), false);
        for _ in 0..ROUNDS {
            all_found_room = rounds.round(u64::MAX);
            taker.take(&filled, SampleLayout::new(&format()).time_at());
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
        let check = |readers: u32, rings_each: u32| {
            let first = |at: u32| if at == 0 { 5_000.. } else { 1 + u64::from(at % 3) * 700.. };
            let rings = (0..readers * rings_each).map(|at| ring(at, first(at)));
            expect_drained(rings.collect(), readers as usize);
        };
        check(1, 2);
        check(2, 1);
        check(3, 2);
    }

    #[test]
    fn rings_of_many_cpus_drain_with_little_memory() {
        // Each CPU has some of the oldest records, more of them together than the last buffers hold.
        let check = |cpus: u32| {
            let records = (0..100).map(|tick| 1 + 1000 * tick);
            let of_cpu = |cpu: u32, need, every: usize| {
                let (source, mut kernel) = empty_ring(cpu);
                let kind = if need == Need::Samples { record::SAMPLE } else { record::MMAP2 };
                kernel.write(kind, records.clone().step_by(every).map(|time| time + u64::from(cpu)));
                RingSource { need, ..source }
            };
            let rings =
                (0..cpus).flat_map(|cpu| [of_cpu(cpu, Need::Sideband, 20), of_cpu(cpu, Need::Samples, 1)]);
            expect_drained(rings.collect(), 1);
        };
        check(24);
        check(40);
    }

    #[test]
    fn drained_batches_say_how_far_time_is_complete() {
        let (source, mut kernel) = empty_ring(0);
        let (mut rounds, filled) = rounds(vec![source], 1);
        let mut taker = Taker::default();
        for round in 1..10 {
            // More than is kept until a round ends, in rounds that follow each other closely.
            kernel.write(record::SAMPLE, (0..150).map(|tick| 1_000_000_000 * round + tick));
            assert!(rounds.round(1_000_000_000 * round + 1000));
            taker.take(&filled, SampleLayout::new(&format()).time_at());
            assert_eq!(taker.taken as u64, 150 * round);
        }
    }

    #[test]
    fn nothing_is_complete_while_a_reader_holds_some() {
        const MS: u64 = 1_000_000;
        /// More than is kept until a round ends.
        const BUSY: u64 = 150;
        let (sources, mut kernels): (Vec<_>, Vec<_>) = (0..3).map(empty_ring).unzip();
        let (mut rounds, filled) = rounds(sources, 3);
        let mut taker = Taker::default();
        let mut written = 0;
        for round in 1..100_u64 {
            let now = 1000 * MS + 5 * MS * round;
            for (kernel, busy_in) in kernels.iter_mut().zip(0..) {
                let count = if round % 3 == busy_in { BUSY } else { round % 2 };
                kernel.write(record::SAMPLE, now - count..now);
                written += count;
            }
            assert!(rounds.round(now), "round {round}");
            taker.take(&filled, SampleLayout::new(&format()).time_at());
        }
        assert!(rounds.round(2000 * MS));
        taker.take(&filled, SampleLayout::new(&format()).time_at());
        assert_eq!(taker.taken as u64, written);
        assert!(taker.released_up_to > 1400 * MS, "{} ms", taker.released_up_to / MS);
    }
}
