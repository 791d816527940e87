//! The thread that reads the outer parts of stacks, shortly after samples whose stack copies were truncated.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};

use super::duty_cycle::DutyCycle;
use super::pages::PageBuffers;
use super::read_request::{FRESH_NS, ReadRequest, add};
use super::ring_scanner::RingScanner;
use super::stack_bases::StackBases;
use super::thread::DeepStackThread;
use super::truncated_stack::TruncatedStack;
use crate::linux::perf::outer_stacks::MemoryReading;
use crate::linux::sys::clock::{monotonic_ns, thread_cpu_ns};
use crate::linux::sys::process::Preference;
use crate::linux::target_access;
use crate::random::Random;

/// How long a thread's stack is read after a truncated copy, without further truncated copies. Many stacks
/// are deep for moments only, and a reading from before such a moment is as useful as one from within it.
const WARM_NS: u64 = 100_000_000;
/// The time between two such readings.
const BETWEEN_READINGS_NS: u64 = 3_000_000;
/// How long the reader scans the rings itself after it has seen a deep stack.
const ATTENTIVE_NS: u64 = 300_000_000;
/// The minimum time between two scans of the rings while stacks are deep.
const MIN_WAIT_NS: u64 = 2_000_000;
/// The maximum of the random delay that is added to each wait. Without it, a program that alternates between
/// functions in step with the readings would always be read at the same place.
const MAX_RANDOM_WAIT_NS: u64 = 2_000_000;
/// The longest rest before the reader checks whether the recording has ended.
const MAX_REST_NS: u64 = 10_000_000;
/// The same if it rests nearly always.
const MAX_SPARING_REST_NS: u64 = 100_000_000;
/// The most threads that are tracked. If there are more, those without truncated copies for `FORGOTTEN_NS` are
/// forgotten.
const MAX_THREADS: usize = 512;
const FORGOTTEN_NS: u64 = 1_000_000_000;

/// The state of the reading thread.
pub(crate) struct LiveReader {
    truncated: Receiver<TruncatedStack>,
    /// Feedback on the copies from the unwinder.
    feedback: Receiver<StackCopyFeedback>,
    out: Sender<Event>,
    /// The rings, which are scanned while stacks are deep.
    scanner: RingScanner,
    attentive_until: u64,
    /// The CPU time that this thread had used at the start of its last rest.
    used: u64,
    bases: Arc<StackBases>,
    threads: HashMap<u32, DeepStackThread>,
    /// What to read after the rest.
    requested: HashMap<u32, ReadRequest>,
    /// The processes that deny access to their memory, and when that was last reported.
    denied: HashMap<u32, u64>,
    /// The buffer that stacks are read into.
    memory: PageBuffers,
    duty_cycle: DutyCycle,
    /// Whether threads are read only for samples that are there.
    is_sparing: bool,
    random: Random,
}

impl LiveReader {
    pub(crate) fn new(
        (truncated, feedback, out): (Receiver<TruncatedStack>, Receiver<StackCopyFeedback>, Sender<Event>),
        scanner: RingScanner,
        bases: Arc<StackBases>,
        reading: MemoryReading,
    ) -> Self {
        Self {
            truncated,
            feedback,
            out,
            scanner,
            attentive_until: 0,
            used: 0,
            bases,
            threads: HashMap::new(),
            requested: HashMap::new(),
            denied: HashMap::new(),
            memory: PageBuffers::new(),
            duty_cycle: DutyCycle::of(reading),
            is_sparing: matches!(reading, MemoryReading::Sparing { .. }),
            random: Random::new(monotonic_ns()),
        }
    }

    /// Reads the missing parts of the stacks of reported samples, until the senders are gone.
    pub(crate) fn run(mut self) {
        // A late reading is useless, and the thread rests far longer than it reads.
        let _preference = Preference::of_this_thread();
        while self.wait() {
            let now = monotonic_ns();
            self.apply_feedback(now);
            if self.is_sparing && self.duty_cycle.remaining_ns(now) > FRESH_NS {
                // They are too old before they could be read.
                self.requested.clear();
            }
            self.note_requested(now);
            if self.duty_cycle.remaining_ns(now) == 0 {
                self.read_requested();
            }
        }
    }

    /// Waits for the report of a truncated copy, or until it is time to read. While stacks are deep, it scans
    /// the rings by the clock instead. A wake-up for each copy would cost more than all readings, and the
    /// reader would come too late. Returns whether a sender is left.
    fn wait(&mut self) -> bool {
        let now = monotonic_ns();
        let longest = if self.is_sparing { MAX_SPARING_REST_NS } else { MAX_REST_NS };
        let rest = self.duty_cycle.remaining_ns(now).min(longest);
        if !self.requested.is_empty() {
            std::thread::sleep(Duration::from_nanos(rest));
        } else if now < self.attentive_until {
            let wait = MIN_WAIT_NS + self.random.below(MAX_RANDOM_WAIT_NS);
            std::thread::sleep(Duration::from_nanos(rest.max(wait)));
        } else if let Ok(copy) = self.truncated.recv() {
            self.note_truncated(copy);
            self.duty_cycle.extend_to(monotonic_ns() + self.random.below(MAX_RANDOM_WAIT_NS));
        } else {
            return false;
        }
        // What the ring reader has reported is older than what is in the rings.
        let can_go_on = loop {
            match self.truncated.try_recv() {
                Ok(copy) => self.note_truncated(copy),
                Err(end) => break end == TryRecvError::Empty,
            }
        };
        self.scan();
        can_go_on
    }

    /// Scans the rings.
    fn scan(&mut self) {
        let Self { scanner, threads, requested, .. } = self;
        scanner.scan(|copy| note_truncated(threads, requested, copy));
    }

    fn note_truncated(&mut self, copy: TruncatedStack) {
        note_truncated(&mut self.threads, &mut self.requested, copy);
    }

    fn apply_feedback(&mut self, now: u64) {
        for feedback in self.feedback.try_iter() {
            for tid in feedback.truncated {
                let thread = self.threads.entry(tid.0).or_default();
                (thread.was_truncated, thread.noted_at) = (true, now);
            }
        }
        if self.threads.len() > MAX_THREADS {
            self.threads.retain(|_, thread| now.saturating_sub(thread.noted_at) < FORGOTTEN_NS);
        }
    }

    /// Drops requests that need not be read after all. If any remain, keeps scanning the rings for a while.
    fn note_requested(&mut self, now: u64) {
        let Self { threads, bases, denied, out, .. } = self;
        self.requested.retain(|tid, requested| {
            if threads.len() > MAX_THREADS && !threads.contains_key(tid) {
                return false;
            }
            let thread = threads.entry(*tid).or_default();
            if !requested.is_reported {
                return true;
            }
            thread.noted_at = now;
            thread.base = bases.get(*tid).unwrap_or_default();
            let is_deep = thread.find_stack(*requested);
            if is_deep {
                thread.warm_until = now + WARM_NS;
                (thread.pid, thread.last_copy) = (requested.pid, (requested.start, requested.end));
            } else if thread.stack.is_empty() {
                report_denied(requested.pid, now, denied, out);
            } else {
                bases.note_complete(*tid);
            }
            is_deep
        });
        if self.requested.values().any(|requested| requested.is_reported) {
            // Also if all samples are too old, because the next ones will not be.
            self.attentive_until = now + ATTENTIVE_NS;
        }
        if self.is_sparing {
            return;
        }
        let is_due = |thread: &DeepStackThread| {
            thread.warm_until > now && now.saturating_sub(thread.read_at) >= BETWEEN_READINGS_NS
        };
        for (tid, thread) in self.threads.iter().filter(|(_, thread)| is_due(thread)) {
            let (pid, (start, end)) = (thread.pid, thread.last_copy);
            let (oldest_ns, newest_ns) = (now, now);
            let requested = ReadRequest { pid, start, end, oldest_ns, newest_ns, is_reported: false };
            self.requested.entry(*tid).or_insert(requested);
        }
    }

    /// Reads the requested stacks of all threads, then rests according to the CPU time used since the last
    /// rest: with many CPUs there may be many rings to scan. No thread is skipped, because a sample without a
    /// reading loses its outer frames. The thread that was read longest ago comes first.
    fn read_requested(&mut self) {
        let read_at = |tid: &u32| self.threads.get(tid).map_or(0, |thread| thread.read_at);
        let mut turn: Vec<_> =
            self.requested.drain().map(|(tid, requested)| (read_at(&tid), tid, requested)).collect();
        turn.sort_unstable_by_key(|(read_at, ..)| *read_at);
        for (_, tid, requested) in turn {
            let now = monotonic_ns();
            let is_fresh = now.saturating_sub(requested.newest_ns) < FRESH_NS;
            let Some(thread) = self.threads.get_mut(&tid).filter(|_| is_fresh) else { continue };
            thread.base = self.bases.get(tid).unwrap_or_default();
            match thread.read(tid, requested, &mut self.memory) {
                // If the receiver is gone, the recording has ended.
                Some(event) => drop(self.out.send(event)),
                None => thread.warm_until = 0,
            }
        }
        let before = std::mem::replace(&mut self.used, thread_cpu_ns());
        self.duty_cycle.note_used(self.used.saturating_sub(before), monotonic_ns());
    }
}

/// Reports a process that denies access to its memory. It may become another program that does not, and later one
/// that does, so this is reported again.
fn report_denied(pid: u32, now: u64, denied: &mut HashMap<u32, u64>, out: &Sender<Event>) {
    let is_recent = denied.get(&pid).is_some_and(|at| now.saturating_sub(*at) < FORGOTTEN_NS);
    if is_recent || !target_access::denies_memory(pid) {
        return;
    }
    if denied.len() >= MAX_THREADS {
        denied.clear();
    }
    denied.insert(pid, now);
    let (time, kind) = (Timestamp(monotonic_ns()), EventKind::MemoryDenied { pid: Pid(pid) });
    // If the receiver is gone, the recording has ended.
    let _ = out.send(Event { time, cpu: None, kind });
}

/// Notes a truncated copy, unless it was already reported. A copy can be found in a ring first and then be
/// reported by the ring reader, which comes later.
fn note_truncated(
    threads: &mut HashMap<u32, DeepStackThread>,
    requested: &mut HashMap<u32, ReadRequest>,
    copy: TruncatedStack,
) {
    if let Some(thread) = threads.get_mut(&copy.tid) {
        if copy.time_ns <= thread.reported_at {
            return;
        }
        thread.reported_at = copy.time_ns;
    }
    add(requested, copy);
}

#[cfg(test)]
mod tests {
    use nyquist_convert::event::Tid;
    use nyquist_perf::RecordFormat;

    use super::*;

    fn truncated(time_ns: u64, end: u64) -> TruncatedStack {
        TruncatedStack { pid: 1, tid: 2, time_ns, start: end - 0x1000, end }
    }

    #[test]
    fn a_copy_with_its_base_ends_no_deeper_reading() {
        let memory = vec![7_u8; 1 << 20];
        let begin = memory.as_ptr() as u64;
        let (mut reader, reports, _feedback, _events) = reader();
        reader.bases.set(2, Some((begin + 0x4_0000) & !7));
        // No time passes from copy to copy, however long the machine stalls.
        let now = monotonic_ns();
        let mut is_read_after = |start: u64| {
            let (start, end) = (begin + start, begin + start + 0x1_0000);
            reports
                .send(TruncatedStack { pid: std::process::id(), tid: 2, time_ns: now, start, end })
                .unwrap();
            assert!(reader.wait());
            reader.note_requested(now);
            let requested = reader.requested.remove(&2).map(|requested| requested.end - begin);
            (requested, reader.threads[&2].warm_until > now)
        };
        assert_eq!(is_read_after(0x3_8000), (None, false));
        assert_eq!(is_read_after(0x1_0000), (Some(0x2_0000), true));
        let (requested, is_warm) = is_read_after(0x3_8000);
        assert!(is_warm && requested.is_none_or(|end| end == 0x2_0000), "{requested:x?}");
    }

    type Reports = std::sync::mpsc::SyncSender<TruncatedStack>;

    /// A reader, and the channels that report copies to it.
    fn reader() -> (LiveReader, Reports, Sender<StackCopyFeedback>, Receiver<Event>) {
        reader_of(MemoryReading::Full)
    }

    fn reader_of(
        reading: MemoryReading,
    ) -> (LiveReader, Reports, Sender<StackCopyFeedback>, Receiver<Event>) {
        let (reports, truncated) = std::sync::mpsc::sync_channel(8);
        let (feedback_sender, feedback) = std::sync::mpsc::channel();
        let (out, events) = std::sync::mpsc::channel();
        let scanner = RingScanner::new([].iter(), &RecordFormat::default(), Default::default());
        let live = LiveReader::new((truncated, feedback, out), scanner, Arc::default(), reading);
        (live, reports, feedback_sender, events)
    }

    #[test]
    fn a_sparing_reader_reads_for_samples_alone() {
        let here = [7_u8; 64];
        let (mut reader, reports, _feedback, _events) = reader_of(MemoryReading::Sparing { samples: 38 });
        let now = monotonic_ns();
        let end = here.as_ptr() as u64 + 64;
        let copy =
            |time_ns| TruncatedStack { pid: std::process::id(), tid: 2, time_ns, start: end - 64, end };
        reports.send(copy(now)).unwrap();
        assert!(reader.wait());
        for (ms, readings) in [(0, 1), (4, 0), (8, 0)] {
            reader.note_requested(now + ms * 1_000_000);
            assert_eq!(reader.requested.len(), readings, "{ms}");
            reader.requested.clear();
        }
    }

    #[test]
    fn a_stack_that_was_deep_is_read_on_for_a_while() {
        let here = [7_u8; 64];
        let (mut reader, reports, _feedback, events) = reader();
        let now = monotonic_ns();
        let end = here.as_ptr() as u64 + 64;
        let start = end - 64;
        reports.send(TruncatedStack { pid: std::process::id(), tid: 2, time_ns: now, start, end }).unwrap();
        assert!(reader.wait());
        for (ms, readings) in [(0, 1), (1, 0), (4, 1), (8, 1), (99, 1), (103, 0)] {
            let now = now + ms * 1_000_000;
            reader.note_requested(now);
            assert_eq!(reader.requested.len(), readings, "{ms}");
            // Kept fresh, however long the machine stalls until it is read.
            reader.requested.values_mut().for_each(|requested| requested.newest_ns = u64::MAX);
            reader.read_requested();
            assert_eq!(events.try_iter().count(), readings, "{ms}");
            reader.threads.values_mut().for_each(|thread| thread.read_at = now);
        }
        drop(reports);
        assert!(!reader.wait());
    }

    #[test]
    fn a_copy_is_reported_once() {
        let (mut threads, mut requested) = (HashMap::new(), HashMap::new());
        threads.insert(2, DeepStackThread::default());
        let mut is_new = |time_ns: u64| {
            note_truncated(&mut threads, &mut requested, truncated(time_ns, 0x5000));
            requested.remove(&2).is_some()
        };
        assert_eq!([10, 12, 10, 12, 13].map(&mut is_new), [true, true, false, false, true]);
    }

    #[test]
    fn truncated_copies_are_remembered_by_thread() {
        let (mut reader, _reports, feedback, _events) = reader();
        let truncated = vec![Tid(2)];
        feedback.send(StackCopyFeedback { truncated, ..StackCopyFeedback::default() }).unwrap();
        reader.apply_feedback(7);
        let threads: Vec<_> =
            reader.threads.iter().map(|(tid, thread)| (*tid, thread.was_truncated)).collect();
        assert_eq!(threads, [(2, true)]);
    }
}
