//! The thread that drains the rings. It copies records out and frees the rings, and nothing else: it shares no
//! lock with later stages, and allocates nothing while it runs but the buffers of its pool, each once, and the short lists
//! that it hands them over in.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use nyquist_convert::event::{Event, Timestamp};
use nyquist_convert::sys::CACHE_LINE;
use nyquist_perf::Header;
use nyquist_perf::abi::record;

use super::batch::Batching;
use super::cut::CutTeller;
use super::events::Events;
use super::jitter::Jitter;
use super::lineage::Lineage;
use super::losses::Losses;
use super::pace::Pace;
use super::pool::{Filling, Need, Pool};
use super::roots::Roots;
use super::skim::{SampleLayout, Skimmed, skim, time};
use super::totals::ThreadTotals;
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::poll::{PollSet, process_descriptor};
use crate::linux::sys::process::Preference;
use crate::linux::sys::ring::Ring;

/// What the reader hands over: filled memory, and how far the past is complete.
#[derive(Debug)]
pub(crate) struct Filled {
    /// Nothing where only the past has become complete.
    pub(crate) buffer: Option<Filling>,
    pub(crate) complete_before: Timestamp,
}

/// What the reader says when it has ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) reason: EndReason,
    /// What threads had used, and what was dropped, that no record tells.
    pub(crate) untold: Vec<Event>,
    /// Whether threads lived on when the recording ended whose events were opened one by one.
    pub(crate) threads_live: bool,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The command, or every process that was attached to, ended.
    Exited,
    /// It was stopped.
    Stopped,
    /// The time that was asked for was over.
    Duration,
}

/// How long records may take from their time stamp to the ring: a virtual CPU can lose its core in between.
const SETTLING_NS: u64 = 20_000_000;
/// How long there is at least from one round of draining the rings to the next.
const BETWEEN_ROUNDS_NS: u64 = 1_000_000;
/// For how long samples are kept back while the rings are looked at often. Whoever is woken for a few of them takes more of
/// the CPU by waking up than by what he does.
const KEPT_BACK_NS: u64 = 25_000_000;
/// How many buffers are filled before they are handed over, also in the midst of a round.
const HANDED_OVER_AT_ONCE: usize = 16;
/// How long to wait for memory to come back before the rings are looked at again.
const POOL_RETRY_MS: u32 = 2;
/// How often a process is looked at where the kernel has no descriptors for processes.
const EXIT_CHECK_MS: u32 = 100;

/// How much is copied out of the ring with the oldest record before the others are compared again.
const PIECE_BYTES: u64 = 128 << 10;

/// How much of a record is fetched while the one before is copied: its fixed fields, a call chain, registers, and the innermost part of
/// a stack. What comes after that, the processor foresees.
const FETCHED_AHEAD: u64 = 1536;

/// The longest record: its size is a `u16`.
const LONGEST_RECORD: usize = 1 << 16;

/// The state of the reading thread.
pub(crate) struct Reader {
    pub(crate) events: Arc<Events>,
    /// The rings of each CPU, those for the sideband first.
    pub(crate) rings: Vec<RingSource>,
    pub(crate) pool: Pool,
    pub(crate) out: SyncSender<Vec<Filled>>,
    pub(crate) layout: SampleLayout,
    pub(crate) stop: Arc<OwnedFd>,
    /// The processes with whose end the recording ends; none where it goes on without them.
    pub(crate) watched: Vec<u32>,
    pub(crate) duration: Option<Duration>,
    pub(crate) hand_over_every: Option<Duration>,
    pub(crate) totals: ThreadTotals,
    pub(crate) losses: Losses,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) lineage: Option<Lineage>,
    /// Where the sideband can be taken in batches.
    pub(crate) batching: Option<Batching>,
    /// Where rings for samples can be left alone for a while.
    pub(crate) pace: Option<Pace>,
    /// Whom to tell of copies that do not hold the whole stack, where somebody wants to know.
    pub(crate) cuts: Option<CutTeller>,
    /// Where stacks have their roots, as far as that is known.
    pub(crate) roots: Arc<Roots>,
}

/// A ring, and the events that its records wake, by their places in [`Events`].
#[derive(Debug)]
pub(crate) struct RingSource {
    pub(crate) ring: Ring,
    /// What its records are; a ring that both share is one for the sideband.
    pub(crate) need: Need,
    pub(crate) wakers: Vec<usize>,
}

/// The places of what the reader waits for.
struct Waiting {
    poll: PollSet,
    stop: usize,
    /// The processes that have not ended yet.
    living: Vec<Living>,
    /// For every ring its place, and which of its wakers is waited for there.
    rings: Vec<(usize, usize)>,
    /// Whether the rings for samples are waited for.
    samples: bool,
    /// How long the rings may stay without a look, in ms.
    look_every: Option<u32>,
}

/// A process that is watched.
struct Living {
    pid: u32,
    /// Its place and its descriptor, which must stay open; `None` where the kernel has no descriptors for processes.
    descriptor: Option<(usize, OwnedFd)>,
}

impl Living {
    fn has_ended(&self, poll: &PollSet) -> bool {
        match &self.descriptor {
            Some((place, _)) => poll.ready(*place).readable,
            None => proc::has_ended(self.pid),
        }
    }
}

impl Waiting {
    /// How long to wait at most, up to some moments in ns, and no longer than some times in ms; `None` for ever.
    fn timeout_ms(&self, until: [Option<u64>; 4], at_most: [Option<u32>; 3]) -> Option<u32> {
        let left = until.into_iter().flatten().min();
        let left = left.map(|until| until.saturating_sub(monotonic_ns()).div_ceil(1_000_000) as u32);
        let check = self.living.iter().any(|process| process.descriptor.is_none()).then_some(EXIT_CHECK_MS);
        at_most.into_iter().chain([left, check, self.look_every]).flatten().min()
    }

    /// Forgets the processes that have ended. Returns whether they were the last ones.
    fn forget_ended(&mut self) -> bool {
        let before = self.living.len();
        let (ended, living) = std::mem::take(&mut self.living)
            .into_iter()
            .partition::<Vec<_>, _>(|process| process.has_ended(&self.poll));
        for (place, _) in ended.iter().filter_map(|process| process.descriptor.as_ref()) {
            self.poll.replace(*place, None);
        }
        self.living = living;
        before > 0 && self.living.is_empty()
    }
}

impl Reader {
    /// Drains the rings until the recording ends, then switches the events off and drains what is left.
    pub(crate) fn run(mut self) -> End {
        // A reader that comes too late loses samples, and it needs the CPU for a moment only.
        let _preference = Preference::at_once();
        let mut waiting = self.prepare_to_wait();
        let deadline =
            self.duration.map(|duration| monotonic_ns().saturating_add(duration.as_nanos() as u64));
        let mut progress = Progress::default();
        let reason = loop {
            let change = self.jitter.as_ref().map(Jitter::next_ns);
            let often = self.cuts.as_ref().and_then(|cuts| cuts.attention.look_every_ms(monotonic_ns()));
            let pause = self.pace.as_ref().and_then(|pace| pace.pauses_until(monotonic_ns()));
            self.wait_for_samples(&mut waiting, pause.is_none());
            let until = [deadline, change, progress.keeps_until(), pause];
            let batch = self.batching.as_ref().and_then(Batching::look_every_ms);
            let timeout = waiting.timeout_ms(until, [often, batch, progress.retries_after()]);
            // A wait that fails would fail again at once, so the rings are then looked at from time to time.
            if waiting.poll.wait(timeout).is_err() {
                std::thread::sleep(Duration::from_millis(u64::from(POOL_RETRY_MS)));
            }
            progress.spread_rounds();
            if let Some(jitter) = &mut self.jitter {
                jitter.change(&self.events, monotonic_ns());
            }
            let ended = end_reason(&mut waiting, deadline);
            progress.is_urgent = often.is_none() || ended.is_some();
            if let Some(batching) = &mut self.batching {
                batching.note_round(batching.is_in(&self.rings), monotonic_ns(), &self.events);
            }
            self.drain(&mut progress);
            if let Some(pace) = &mut self.pace {
                pace.note_round(progress.most_sampled, monotonic_ns());
            }
            self.replace_ended_wakers(&mut waiting);
            if let Some(reason) = ended {
                break reason;
            }
        };
        let living = self.totals.of_living(&self.events);
        let threads_live = !self.events.all_have_ended();
        self.events.disable();
        progress.is_urgent = true;
        while !self.drain(&mut progress) {
            std::thread::sleep(Duration::from_millis(u64::from(POOL_RETRY_MS)));
        }
        let now = Timestamp(monotonic_ns());
        // What was lost comes first: it is a part of what threads have used.
        let mut untold: Vec<_> = self.losses.untold(self.events.lost_by_cpu(), now).collect();
        untold.extend(self.totals.finish(&self.events, living, now));
        End { reason, untold, threads_live }
    }

    fn prepare_to_wait(&self) -> Waiting {
        let mut poll = PollSet::default();
        let stop = poll.add(self.stop.as_fd().as_raw_fd());
        let living = self.watched.iter().map(|pid| {
            let descriptor = process_descriptor(*pid).ok();
            Living { pid: *pid, descriptor: descriptor.map(|fd| (poll.add(fd.as_raw_fd()), fd)) }
        });
        let living = living.collect();
        let first = |ring: &RingSource| ring.wakers.first().and_then(|waker| self.events.raw_fd(*waker));
        let rings = self.rings.iter().map(|ring| (poll.add(first(ring).unwrap_or(-1)), 0)).collect();
        let look_every = self.hand_over_every.map(|every| every.as_millis().max(1) as u32);
        Waiting { poll, stop, living, rings, samples: true, look_every }
    }

    /// Sees to it that the rings for samples are waited for, or are not.
    fn wait_for_samples(&self, waiting: &mut Waiting, samples: bool) {
        if waiting.samples == samples {
            return;
        }
        waiting.samples = samples;
        for (ring, (place, waker)) in self.rings.iter().zip(&waiting.rings) {
            if ring.need == Need::Samples {
                let event = ring.wakers.get(*waker).and_then(|waker| self.events.raw_fd(*waker));
                waiting.poll.replace(*place, event.filter(|_| samples));
            }
        }
    }

    /// An event whose threads have all ended is hung up for good, and would wake the reader without end. Another
    /// one that writes to the same ring takes its place.
    fn replace_ended_wakers(&self, waiting: &mut Waiting) {
        for (ring, (place, waker)) in self.rings.iter().zip(&mut waiting.rings) {
            if waiting.poll.ready(*place).hung_up {
                *waker += 1;
                let next = ring.wakers.get(*waker).and_then(|waker| self.events.raw_fd(*waker));
                waiting.poll.replace(*place, next);
            }
        }
    }

    /// Copies out what the rings hold. Returns whether all of it found room.
    fn drain(&mut self, progress: &mut Progress) -> bool {
        let mut drain = Drain {
            layout: &self.layout,
            pool: &self.pool,
            out: &self.out,
            progress,
            totals: &mut self.totals,
            losses: &mut self.losses,
            lineage: self.lineage.as_mut(),
            cuts: self.cuts.as_ref(),
            roots: &self.roots,
        };
        drain.round(&mut self.rings, monotonic_ns())
    }
}

fn end_reason(waiting: &mut Waiting, deadline: Option<u64>) -> Option<EndReason> {
    if waiting.forget_ended() {
        Some(EndReason::Exited)
    } else if waiting.poll.ready(waiting.stop).readable {
        Some(EndReason::Stopped)
    } else if deadline.is_some_and(|deadline| monotonic_ns() >= deadline) {
        Some(EndReason::Duration)
    } else {
        None
    }
}

/// How far the reader has come.
#[derive(Default)]
struct Progress {
    filling: Option<Filling>,
    /// What is filled and was not handed over yet: whoever takes it may get this thread's CPU at once.
    filled: Vec<Filled>,
    handed_over_at: u64,
    /// Whether what is found must not be kept back.
    is_urgent: bool,
    /// When the last round began in which every ring was drained.
    round_started: u64,
    complete_before: u64,
    /// The most bytes that a ring for samples has given in the last round.
    most_sampled: u64,
    /// Whether there was no memory to copy into.
    blocked: bool,
}

impl Progress {
    /// Waits where the last round began just now. A storm of short processes writes many small records, each of
    /// which wakes the reader.
    fn spread_rounds(&self) {
        let since = monotonic_ns().saturating_sub(self.round_started);
        if since < BETWEEN_ROUNDS_NS {
            std::thread::sleep(Duration::from_nanos(BETWEEN_ROUNDS_NS - since));
        }
    }

    /// Until when there is something that is kept back.
    fn keeps_until(&self) -> Option<u64> {
        let keeps =
            !self.filled.is_empty() || self.filling.as_ref().is_some_and(|filling| !filling.is_empty());
        keeps.then_some(self.handed_over_at + KEPT_BACK_NS)
    }

    /// After how many ms the rings are looked at again where there was no memory to copy into.
    fn retries_after(&self) -> Option<u32> {
        self.blocked.then_some(POOL_RETRY_MS)
    }

    /// Takes what is being filled for filled; or the news alone that more of the past is complete.
    fn end_filling(&mut self, is_news: bool) {
        let buffer = self.filling.take().filter(|buffer| !buffer.is_empty());
        if buffer.is_some() || is_news {
            self.filled.push(Filled { buffer, complete_before: Timestamp(self.complete_before) });
        }
    }

    /// Hands over what is filled, all at once: who takes it is woken once and not for every buffer.
    fn hand_over(&mut self, out: &SyncSender<Vec<Filled>>) {
        self.handed_over_at = monotonic_ns();
        if !self.filled.is_empty() {
            let next = Vec::with_capacity(HANDED_OVER_AT_ONCE);
            // The channel has room for every buffer that there is. Where nobody listens any more, the buffers go
            // back to the pool.
            let _ = out.try_send(std::mem::replace(&mut self.filled, next));
        }
    }

    /// Memory with room for a record of any length.
    fn room(&mut self, pool: &Pool, need: Need, out: &SyncSender<Vec<Filled>>) -> Option<&mut Filling> {
        if self.filling.as_mut().is_some_and(|filling| filling.room().len() < LONGEST_RECORD) {
            self.end_filling(false);
        }
        if self.filled.len() >= HANDED_OVER_AT_ONCE {
            self.hand_over(out);
        }
        if self.filling.is_none() {
            self.filling = pool.take(need);
        }
        self.filling.as_mut()
    }
}

/// What it takes to drain a ring.
struct Drain<'a> {
    layout: &'a SampleLayout,
    pool: &'a Pool,
    out: &'a SyncSender<Vec<Filled>>,
    progress: &'a mut Progress,
    totals: &'a mut ThreadTotals,
    losses: &'a mut Losses,
    lineage: Option<&'a mut Lineage>,
    cuts: Option<&'a CutTeller>,
    roots: &'a Roots,
}

impl Drain<'_> {
    /// Copies out what the rings held when the round began, at `started`, and hands it over. Returns whether all of
    /// it found room.
    fn round(&mut self, rings: &mut [RingSource], started: u64) -> bool {
        (self.progress.blocked, self.progress.most_sampled) = (false, 0);
        for RingSource { ring, need, .. } in &mut *rings {
            let before = ring.tail();
            self.ring(ring, *need, u64::MAX);
            if *need == Need::Samples {
                let given = ring.tail().saturating_sub(before);
                self.progress.most_sampled = self.progress.most_sampled.max(given);
            }
        }
        let oldest = if self.progress.blocked { self.oldest_first(rings) } else { None };
        let progress = &mut *self.progress;
        let settled = started.saturating_sub(SETTLING_NS);
        let complete = match oldest {
            None => progress.round_started.min(settled),
            Some(oldest) => oldest.saturating_sub(1).min(settled),
        };
        let is_news = complete > progress.complete_before;
        progress.complete_before = progress.complete_before.max(complete);
        if !progress.blocked {
            progress.round_started = started;
        }
        let is_due = started >= progress.handed_over_at.saturating_add(KEPT_BACK_NS);
        if progress.is_urgent || progress.blocked || is_due {
            progress.end_filling(is_news && progress.blocked);
            progress.hand_over(self.out);
        }
        !progress.blocked
    }

    /// Copies out what is in a ring, up to the first record beyond `most` bytes.
    fn ring(&mut self, ring: &mut Ring, need: Need, most: u64) {
        let head = ring.head();
        let mut at = ring.tail();
        let enough = at.saturating_add(most);
        while at < head && at < enough {
            let mut header = [0; Header::LEN];
            ring.copy(at, &mut header);
            let header = Header::parse(&header).ok().filter(|header| usize::from(header.size) >= Header::LEN);
            // The kernel writes whole records only; should that ever fail, what it wrote is given up.
            let Some(header) = header else {
                ring.release(head);
                return;
            };
            self.progress.is_urgent |= header.kind != record::SAMPLE;
            let Some(filling) = self.progress.room(self.pool, need, self.out) else {
                self.progress.blocked = true;
                return;
            };
            fetch_next(ring, at, header, head);
            let room = filling.room();
            let Skimmed { len, may_go_on } =
                skim(|position, out| ring.copy(position, out), at, header, (self.layout, self.roots), room);
            let copied = room.get(..len).unwrap_or_default();
            match header.kind {
                record::READ => self.totals.add_ended(copied),
                record::LOST => self.losses.note(copied),
                _ => {}
            }
            let task = || self.totals.task(copied);
            if self.lineage.as_mut().is_none_or(|lineage| lineage.keeps(header, copied, task)) {
                if let Some(cuts) = self.cuts.filter(|_| may_go_on) {
                    cuts.notice(copied, self.layout);
                }
                filling.advance(len);
            }
            at += u64::from(header.size);
            ring.release(at);
        }
    }

    /// Goes on where there is hardly any memory left: with what is oldest in all rings, piece by piece. Gives back the
    /// time of the oldest record that stays.
    ///
    /// What was copied out of one ring waits until nothing older can come from another. Were the memory filled with the
    /// new records of some rings while old ones stay in others, nothing would ever come back.
    fn oldest_first(&mut self, rings: &mut [RingSource]) -> Option<u64> {
        loop {
            let times = rings
                .iter()
                .enumerate()
                .filter_map(|(at, source)| Some((first_time(&source.ring, self.layout)?, at)));
            let (time, at) = times.min()?;
            self.progress.blocked = false;
            self.ring(&mut rings.get_mut(at)?.ring, Need::Oldest, PIECE_BYTES);
            if self.progress.blocked {
                return Some(time);
            }
        }
    }
}

/// Has the processor fetch of the record after the one at `at` what will be looked at first: its beginning, and the last word, if it is
/// as long as this one. Another CPU has written it, and it would be waited for several times.
fn fetch_next(ring: &Ring, at: u64, header: Header, head: u64) {
    let len = u64::from(header.size);
    let next = at + len;
    if header.kind == record::SAMPLE && next < head {
        (next..next + FETCHED_AHEAD).step_by(CACHE_LINE).for_each(|position| ring.fetch(position));
        ring.fetch(next + len - 8);
    }
}

/// The time of the first record in a ring.
fn first_time(ring: &Ring, layout: &SampleLayout) -> Option<u64> {
    let (at, head) = (ring.tail(), ring.head());
    let mut header = [0; Header::LEN];
    if at >= head {
        return None;
    }
    ring.copy(at, &mut header);
    let header = Header::parse(&header).ok()?;
    // A record without a time is as old as can be.
    Some(time(|position, out| ring.copy(position, out), at, header, layout).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Receiver, sync_channel};

    use bytes::Bytes;
    use nyquist_perf::RecordFormat;

    use super::*;
    use crate::linux::perf::attr::{CallGraph, Common, Features, Reach, Trigger};
    use crate::linux::perf::pool::{BUFFER_BYTES, BUFFERS};
    use crate::linux::sys::limits::page_size;

    /// The place of `data_head` in the control page (`struct perf_event_mmap_page`).
    const DATA_HEAD: u64 = 1024;
    const RECORD: usize = 32 << 10;
    /// A ring that holds twice what the pool does.
    const RING: usize = 2 * BUFFERS * BUFFER_BYTES;
    /// More than enough rounds, if each gets something done.
    const ROUNDS: usize = 4 * RING / BUFFER_BYTES;

    /// A ring full of samples with these times.
    fn ring(layout_time: u64, times: impl Iterator<Item = u64>) -> RingSource {
        ring_of(record::SAMPLE, layout_time, times)
    }

    /// A ring full of records with these times. Nothing but their headers and times takes up memory.
    fn ring_of(kind: u32, layout_time: u64, times: impl Iterator<Item = u64>) -> RingSource {
        static RINGS: AtomicU32 = AtomicU32::new(0);
        let number = RINGS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nyquist-ring-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let control = page_size() as u64;
        file.set_len(control + RING as u64).unwrap();
        let mut head = 0;
        for time in times.take(RING / RECORD) {
            let header = [&kind.to_le_bytes()[..], &[0; 2], &(RECORD as u16).to_le_bytes()].concat();
            file.write_all_at(&header, control + head).unwrap();
            file.write_all_at(&time.to_le_bytes(), control + head + layout_time).unwrap();
            head += RECORD as u64;
        }
        file.write_all_at(&head.to_le_bytes(), DATA_HEAD).unwrap();
        let ring = Ring::map(file.as_fd(), RING / page_size()).unwrap();
        RingSource { ring, need: Need::Samples, wakers: Vec::new() }
    }

    /// Whoever takes the records: it keeps those that something older could still come before.
    #[derive(Default)]
    struct Taker {
        kept: Vec<(u64, Bytes)>,
        taken: usize,
        released_up_to: u64,
    }

    impl Taker {
        fn take(&mut self, filled: &Receiver<Vec<Filled>>, time_at: usize) {
            for Filled { buffer, complete_before } in filled.try_iter().flatten() {
                let bytes = buffer.map(Filling::into_bytes).unwrap_or_default();
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
        Common { features, reach, switches: false, call_graph: CallGraph::Auto }.format()
    }

    fn sums(format: RecordFormat) -> (ThreadTotals, Losses) {
        (ThreadTotals::new(&[], format), Losses::new(format))
    }

    /// One round of draining, with nobody to tell of cut stacks and no thread to leave out.
    fn plain_drain<'a>(
        layout: &'a SampleLayout,
        pool: &'a Pool,
        out: &'a SyncSender<Vec<Filled>>,
        progress: &'a mut Progress,
        (totals, losses): &'a mut (ThreadTotals, Losses),
    ) -> Drain<'a> {
        static NO_ROOTS: std::sync::LazyLock<Roots> = std::sync::LazyLock::new(Roots::default);
        Drain { layout, pool, out, progress, totals, losses, lineage: None, cuts: None, roots: &NO_ROOTS }
    }

    #[test]
    fn samples_are_kept_back_for_a_while_and_nothing_else() {
        const LAST: u64 = 1_000_000_000;
        let check = |kind, is_urgent, later: u64, is_handed_over: bool| {
            let format = format();
            let layout = SampleLayout::new(&format);
            let mut rings = [ring_of(kind, layout.time_at() as u64, 1..4)];
            let (out, filled) = sync_channel(BUFFERS);
            let (pool, mut sums) = (Pool::new(), sums(format));
            let mut progress = Progress { handed_over_at: LAST, is_urgent, ..Progress::default() };
            let mut drain = plain_drain(&layout, &pool, &out, &mut progress, &mut sums);
            assert!(drain.round(&mut rings, LAST + later));
            let bytes: usize =
                filled.try_iter().flatten().map(|filled| filled.buffer.unwrap().into_bytes().len()).sum();
            assert_eq!(bytes, if is_handed_over { 3 * RECORD } else { 0 }, "{kind} {is_urgent} {later}");
            assert_eq!(progress.keeps_until(), (!is_handed_over).then_some(LAST + KEPT_BACK_NS));
        };
        check(record::SAMPLE, false, 1, false);
        check(record::SAMPLE, false, KEPT_BACK_NS, true);
        check(record::SAMPLE, true, 1, true);
        check(record::EXIT, false, 1, true);
    }

    #[test]
    fn rings_that_hold_more_than_the_pool_are_drained_whole() {
        let format = format();
        let layout = SampleLayout::new(&format);
        let time_at = layout.time_at();
        // The first ring alone fills the pool, with records that are newer than most of the second's.
        let mut rings = [ring(time_at as u64, 5_000..), ring(time_at as u64, 1..)];
        let (out, filled) = sync_channel(BUFFERS + 1);
        let pool = Pool::new();
        let (mut progress, mut sums) = (Progress::default(), sums(format));
        let (mut taker, mut all_found_room) = (Taker::default(), false);
        for _ in 0..ROUNDS {
            let mut drain = plain_drain(&layout, &pool, &out, &mut progress, &mut sums);
            all_found_room = drain.round(&mut rings, u64::MAX);
            taker.take(&filled, time_at);
            if all_found_room {
                break;
            }
        }
        assert!(all_found_room, "{} records came out, and then nothing more", taker.taken);
        assert_eq!(taker.taken, 2 * RING / RECORD);
    }
}
