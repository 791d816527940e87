//! The outer parts of stacks that were read from living processes: the latest readings of each thread, and
//! whether they are trusted.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use nyquist_object::Avma;
use nyquist_unwind::StackCopy;
use rustc_hash::FxHashMap;

use crate::event::{LiveStack, Pid, Tid, Timestamp};

/// How many readings of a thread are kept: one from after a sample, and some from before it.
const MAX_READINGS: usize = 4;
/// Readings further from a sample than this are not used for it, in nanoseconds. Earlier readings are valid
/// longer if the thread has hardly run since, because its stack does not change while others have the CPU.
const MAX_DISTANCE_NS: u64 = 10_000_000;
/// The longest time for which a reading is valid if the thread has hardly run, in nanoseconds.
const MAX_WAITING_DISTANCE_NS: u64 = 500_000_000;
/// The most CPU time that the thread's samples since an earlier reading may stand for, in nanoseconds. It is
/// less than [`MAX_DISTANCE_NS`], because a sample may stand for more than an interval.
const MAX_RUN_NS: u64 = 8_000_000;
/// For how long, in nanoseconds, a thread's outer frames are not used after two readings that fit the same
/// sample had different ones: at first, and at most after repeated contradictions. They change faster than
/// they are read.
const DISTRUST: [u64; 2] = [100_000_000, 5_000_000_000];
/// How many readings must agree with those before them until they are trusted: at first, and at most. The
/// number doubles after each contradiction, because even frames that change often agree by chance sometimes.
const AGREEMENTS: [u32; 2] = [16, 128];
/// After this many agreements, former contradictions are forgotten.
const MANY_AGREEMENTS: u32 = 200;
/// Readings older than this are forgotten.
const MAX_AGE_NS: u64 = 1_000_000_000;
/// How far the time of a reading that was made at the moment of a sample is from that of the sample. A hypervisor may
/// pause the CPU between the two.
const MAX_MOMENT_NS: u64 = 500_000;
/// How many such readings of a thread are kept: the events of some come before the samples before theirs.
const MAX_EXACT: usize = 16;
/// The most bytes of such readings that wait for their samples, with pages that they share counted for each.
const MAX_EXACT_BYTES: usize = 64 << 20;
/// When more threads than this are remembered, old readings are removed.
const MANY_THREADS: usize = 64;

/// The readings, by thread.
#[derive(Debug, Default)]
pub(crate) struct LiveStacks {
    threads: FxHashMap<Tid, Thread>,
    /// The last readings that were made at the moment of a sample.
    exact: FxHashMap<Tid, VecDeque<Arc<LiveStack>>>,
    /// The bytes of these.
    exact_bytes: usize,
    /// Whether any reading was added.
    has_any: bool,
}

#[derive(Debug, Default)]
struct Thread {
    /// The latest readings, in the order in which they came, with the number of the thread's samples since.
    read: VecDeque<(Arc<LiveStack>, u64)>,
    /// How many readings have agreed with those before them since the last contradiction.
    agreements: u32,
    /// How many agreements are needed, after a contradiction.
    needed: u32,
    /// When the last agreeing reading was read.
    agreed_at: Timestamp,
    distrusted_until: Timestamp,
    /// The length of the last distrust, in nanoseconds.
    distrust: u64,
}

impl LiveStacks {
    /// Adds a reading.
    pub(crate) fn add(&mut self, live: Arc<LiveStack>) {
        let now = live.read_at.0;
        self.has_any = true;
        if live.stack_pointer.is_some() {
            return self.add_exact(live);
        }
        if self.threads.len() >= MANY_THREADS {
            let is_new = |thread: &Thread| {
                thread.read.back().is_some_and(|(last, _)| last.read_at.0.saturating_add(MAX_AGE_NS) > now)
            };
            self.threads.retain(|_, thread| is_new(thread));
        }
        let read = &mut self.threads.entry(live.tid).or_default().read;
        // The former thread of that number was another one.
        read.retain(|(other, _)| other.pid == live.pid);
        read.push_back((live, 0));
        if read.len() > MAX_READINGS {
            read.pop_front();
        }
    }

    /// Adds a reading that was made at the moment of a sample. Nearly all are taken soon. If samples do not need
    /// theirs, those that wait are forgotten.
    fn add_exact(&mut self, live: Arc<LiveStack>) {
        self.exact_bytes += bytes_of(&live);
        if self.exact_bytes > MAX_EXACT_BYTES {
            self.exact.clear();
            self.exact_bytes = bytes_of(&live);
        }
        let read = self.exact.entry(live.tid).or_default();
        read.push_back(live);
        if read.len() > MAX_EXACT {
            self.exact_bytes -= read.pop_front().map_or(0, |first| bytes_of(&first));
        }
    }

    /// The reading that was made at the moment of a sample. It is for one sample alone. `interval` is the time between
    /// two samples of a thread.
    pub(crate) fn take_exact(
        &mut self,
        (pid, tid): (Pid, Tid),
        (time, interval): (Timestamp, u64),
        stack_pointer: Avma,
    ) -> Option<Arc<LiveStack>> {
        let read = self.exact.get_mut(&tid)?;
        let apart = |live: &Arc<LiveStack>| time.0.abs_diff(live.read_at.0);
        let nearest = (0..read.len()).min_by_key(|at| apart(&read[*at]))?;
        self.exact_bytes -= read.iter().take(nearest + 1).map(|live| bytes_of(live)).sum::<usize>();
        let live = read.drain(..=nearest).next_back()?;
        let is_same_moment = apart(&live) <= MAX_MOMENT_NS.min(interval / 2);
        (live.pid == pid && is_same_moment && live.stack_pointer == Some(stack_pointer)).then_some(live)
    }

    /// Whether any reading of any thread was added so far.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any
    }

    /// Whether readings of a thread are not trusted at a time.
    pub(crate) fn is_distrusted(&self, tid: Tid, time: Timestamp) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.distrusted_until > time)
    }

    /// A thread was sampled.
    pub(crate) fn note_sample(&mut self, tid: Tid, time: Timestamp) {
        for (live, samples) in self.threads.get_mut(&tid).into_iter().flat_map(|thread| &mut thread.read) {
            *samples += u64::from(live.read_at < time);
        }
    }

    /// The readings of a thread near a sample, the last one first. `interval` is the CPU time that a sample
    /// stands for.
    pub(crate) fn near(&self, tid: Tid, time: Timestamp, interval: u64) -> impl Iterator<Item = &LiveStack> {
        let thread = self.threads.get(&tid);
        let read = thread.into_iter().flat_map(|thread| thread.read.iter().rev());
        let is_near = move |(live, samples): &&(Arc<LiveStack>, u64)| {
            let apart = live.read_at.0.abs_diff(time.0);
            let has_waited = live.read_at < time && samples.saturating_mul(interval) <= MAX_RUN_NS;
            apart <= MAX_DISTANCE_NS || (has_waited && apart <= MAX_WAITING_DISTANCE_NS)
        };
        read.filter(is_near).map(|(live, _)| &**live)
    }

    /// Notes that readings that fit the same sample had different frames.
    pub(crate) fn contradict(&mut self, tid: Tid, time: Timestamp) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            let [least, most] = DISTRUST;
            thread.distrust = (thread.distrust * 2).clamp(least, most);
            thread.distrusted_until = Timestamp(time.0.saturating_add(thread.distrust));
            thread.agreements = 0;
            let [first, most] = AGREEMENTS;
            thread.needed = (thread.needed.max(first) * 2).min(most);
        }
    }

    /// Notes that readings that fit the same sample had the same frames. The last of them was read at
    /// `read_at`. Returns whether enough of them have agreed by now to trust them. A reading only counts if
    /// the thread has run since the last counted one, because all readings are the same while the thread
    /// waits for a CPU.
    pub(crate) fn agree(&mut self, tid: Tid, sampled_at: Timestamp, read_at: Timestamp) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        if thread.agreed_at < sampled_at && sampled_at < read_at {
            thread.agreed_at = read_at;
            thread.agreements = thread.agreements.saturating_add(1);
        }
        if thread.agreements >= MANY_AGREEMENTS {
            thread.distrust = 0;
            thread.needed = 0;
        }
        thread.agreements >= thread.needed.max(AGREEMENTS[0])
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.threads.remove(&tid);
        let waiting = self.exact.remove(&tid).unwrap_or_default();
        self.exact_bytes -= waiting.iter().map(|live| bytes_of(live)).sum::<usize>();
    }
}

/// How many bytes of a copy and a reading are compared at the end of the copy.
const COMPARED: u64 = 4096;
/// The fraction that may differ: one word in sixteen. Local variables change while inner functions run, but
/// frames do not.
const MAY_DIFFER: u64 = 16;

/// Whether a reading fits a copy: nearly all bytes that both have at the copy's end are the same.
pub(crate) fn fits(live: &LiveStack, copy: StackCopy<'_>) -> bool {
    let end = copy.start.0.saturating_add(copy.bytes.len() as u64) & !7;
    let start = live.start.0.max(end.saturating_sub(COMPARED));
    let Some(start) = start.checked_next_multiple_of(8).filter(|start| *start < end) else { return false };
    let all = (end - start) / 8;
    let mut at = start;
    let parts = std::iter::from_fn(|| {
        let part = at..end.min(LiveStack::page_of(Avma(at)).0 + LiveStack::PAGE as u64);
        at = part.end;
        (!part.is_empty()).then_some(part)
    });
    let same: usize = parts.filter_map(|part| same_words(live, copy, part)).sum();
    (all - same as u64) * MAY_DIFFER <= all
}

/// How many words of a part of a page are the same in both. `None` if one of the two does not have that part.
fn same_words(live: &LiveStack, copy: StackCopy<'_>, part: Range<u64>) -> Option<usize> {
    let start = part.start.max(copy.start.0.checked_next_multiple_of(8)?);
    let len = part.end.checked_sub(start)? as usize;
    let copied = copy.bytes.get((start - copy.start.0) as usize..)?.get(..len)?;
    let page = live.pages.get(start.checked_sub(live.start.0)? as usize / LiveStack::PAGE)?;
    let read = page.get(start as usize % LiveStack::PAGE..)?.get(..len)?;
    let words = copied.as_chunks::<8>().0.iter().zip(read.as_chunks::<8>().0);
    Some(words.filter(|(copied, read)| copied == read).count())
}

/// The bytes of a reading.
fn bytes_of(live: &LiveStack) -> usize {
    live.pages.len() * LiveStack::PAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use nyquist_unwind::StackMemory;

    const MS: u64 = 1_000_000;

    fn live(pid: u32, read_at_ms: u64) -> LiveStack {
        LiveStack {
            pid: Pid(pid),
            tid: Tid(1),
            read_at: Timestamp(read_at_ms * MS),
            start: Avma(0x1000),
            pages: vec![Bytes::from(vec![7; LiveStack::PAGE])],
            stack_pointer: None,
        }
    }

    fn near(stacks: &LiveStacks, ms: u64) -> Vec<u64> {
        stacks.near(Tid(1), Timestamp(ms * MS), u64::MAX / 2).map(|live| live.read_at.0 / MS).collect()
    }

    #[test]
    fn only_readings_near_a_sample_count_for_it() {
        let mut stacks = LiveStacks::default();
        for ms in [100, 103, 106, 109, 112] {
            stacks.add(live(1, ms).into());
        }
        stacks.note_sample(Tid(1), Timestamp(113 * MS));
        assert_eq!(near(&stacks, 110), [112, 109, 106, 103]);
        assert_eq!(near(&stacks, 95), [103]);
        assert_eq!(near(&stacks, 130), [0; 0]);
        stacks.add(live(2, 113).into());
        assert_eq!(near(&stacks, 112), [113], "the number is another process's");
        stacks.forget(Tid(1));
        assert_eq!(near(&stacks, 112), [0; 0]);
    }

    #[test]
    fn what_was_read_at_a_sample_is_for_it_alone() {
        let exact = |us: u64| LiveStack {
            read_at: Timestamp(us * 1000),
            stack_pointer: Some(Avma(0x1000)),
            ..live(1, 0)
        };
        let mut stacks = LiveStacks::default();
        for us in [1000, 1100, 1200, 1300] {
            stacks.add(exact(us).into());
        }
        let mut take = |us: u64, pid: u32, stack_pointer: u64| {
            let (id, when) = ((Pid(pid), Tid(1)), (Timestamp(us * 1000), 100_000));
            stacks.take_exact(id, when, Avma(stack_pointer)).map(|live| live.read_at.0 / 1000)
        };
        assert_eq!(take(1101, 1, 0x1000), Some(1100));
        assert_eq!(take(1101, 1, 0x1000), None, "the next one is of another sample");
        assert_eq!(take(1299, 1, 0x1000), Some(1300));
        assert_eq!(take(1400, 1, 0x1000), None);
        for (pid, stack_pointer) in [(2, 0x1000), (1, 0x1008)] {
            stacks.add(exact(2000).into());
            let id = (Pid(pid), Tid(1));
            let taken = stacks.take_exact(id, (Timestamp(2_000_000), 100_000), Avma(stack_pointer));
            assert_eq!(taken, None, "another process, or another stack");
        }
    }

    #[test]
    fn readings_without_samples_take_little_memory() {
        let mut stacks = LiveStacks::default();
        for tid in 0..1000 {
            let pages = vec![Bytes::from_static(&[7; LiveStack::PAGE]); 256];
            let exact = LiveStack { tid: Tid(tid), pages, stack_pointer: Some(Avma(0x1000)), ..live(1, 0) };
            stacks.add(exact.into());
            assert!(stacks.exact_bytes <= MAX_EXACT_BYTES);
        }
        let held: usize = stacks.exact.values().flatten().map(|live| bytes_of(live)).sum();
        assert!(held == stacks.exact_bytes && held > 0, "{held}");
        (0..1000).for_each(|tid| stacks.forget(Tid(tid)));
        assert_eq!(stacks.exact_bytes, 0);
    }

    #[test]
    fn what_was_read_before_a_wait_counts_after_it() {
        let mut stacks = LiveStacks::default();
        stacks.add(live(1, 100).into());
        stacks.note_sample(Tid(1), Timestamp(99 * MS));
        let near = |stacks: &LiveStacks, ms: u64| stacks.near(Tid(1), Timestamp(ms * MS), MS).count();
        stacks.note_sample(Tid(1), Timestamp(300 * MS));
        assert_eq!([near(&stacks, 300), near(&stacks, 601)], [1, 0]);
        for ms in 301..308 {
            stacks.note_sample(Tid(1), Timestamp(ms * MS));
        }
        assert_eq!(near(&stacks, 308), 1, "eight samples stand for eight milliseconds");
        stacks.note_sample(Tid(1), Timestamp(308 * MS));
        assert_eq!(near(&stacks, 308), 0, "it has run for longer");
        stacks.add(live(1, 900).into());
        assert_eq!(near(&stacks, 800), 0, "what was read long after says nothing");
    }

    #[test]
    fn contradictions_cost_trust_for_ever_longer() {
        let mut stacks = LiveStacks::default();
        stacks.add(live(1, 100).into());
        stacks.contradict(Tid(1), Timestamp(100 * MS));
        let is_distrusted = |stacks: &LiveStacks, ms: u64| stacks.is_distrusted(Tid(1), Timestamp(ms * MS));
        assert_eq!([101, 199, 200].map(|ms| is_distrusted(&stacks, ms)), [true, true, false]);
        stacks.contradict(Tid(1), Timestamp(200 * MS));
        assert_eq!([201, 399, 400].map(|ms| is_distrusted(&stacks, ms)), [true, true, false]);
    }

    #[test]
    fn trust_is_earned_slowly_and_lost_at_once() {
        let mut stacks = LiveStacks::default();
        stacks.add(live(1, 100).into());
        let agree = |stacks: &mut LiveStacks, ms: u64| {
            stacks.agree(Tid(1), Timestamp(ms * MS - 1), Timestamp(ms * MS))
        };
        assert!(!(0..100).any(|_| agree(&mut stacks, 100)), "one reading is one");
        let trusted_after =
            |stacks: &mut LiveStacks, from: u64| (1..200).find(|more| agree(stacks, from + more)).unwrap();
        assert_eq!(trusted_after(&mut stacks, 100), 15, "with the one before");
        assert!(agree(&mut stacks, 116));
        for (ms, expected) in [(1000, 32), (2000, 64), (3000, 128), (4000, 128), (5000, 128)] {
            stacks.contradict(Tid(1), Timestamp(ms * MS));
            assert_eq!(trusted_after(&mut stacks, ms), expected, "a contradiction at {ms} ms");
        }
        assert_eq!((1..=100).filter(|more| agree(&mut stacks, 6000 + more)).count(), 100);
        stacks.contradict(Tid(1), Timestamp(7000 * MS));
        assert_eq!(trusted_after(&mut stacks, 7000), 32, "it is long ago that there was one");
        assert!(!stacks.agree(Tid(2), Timestamp(0), Timestamp(1)), "nothing was read of it");
    }

    #[test]
    fn readings_of_a_thread_that_waits_are_one() {
        let mut stacks = LiveStacks::default();
        stacks.add(live(1, 100).into());
        let mut agree =
            |sampled: u64, read: u64| stacks.agree(Tid(1), Timestamp(sampled * MS), Timestamp(read * MS));
        assert!(!(101..200).any(|read| agree(100, read)), "it was sampled once");
        assert!(!(201..300).any(|read| agree(read + 1, read)), "nothing was read after the sample");
        assert_eq!((0..20).filter(|more| agree(300 + 2 * more, 301 + 2 * more)).count(), 6);
    }

    #[test]
    fn nearly_all_that_both_have_must_be_the_same() {
        // A copy whose first words differ from those of these readings.
        let fits_with = |live: &LiveStack, different: usize, (start, end): (u64, u64)| {
            let mut bytes = vec![7; (end - start) as usize];
            bytes[..8 * different].fill(0);
            fits(live, StackCopy { start: Avma(start), bytes: &bytes })
        };
        let first = live(1, 0);
        assert!(fits_with(&first, 32, (0x1000, 0x2000)), "one in sixteen of 512 words");
        assert!(!fits_with(&first, 33, (0x1000, 0x2000)));
        let later = LiveStack { start: Avma(0x1800), ..live(1, 0) };
        assert!(fits_with(&later, 256 + 16, (0x1000, 0x2000)), "only what both have counts");
        assert!(!fits_with(&later, 256 + 17, (0x1000, 0x2000)));
        assert!(!fits_with(&first, 0, (0x1800, 0x2000)), "half of what was read last is not in the copy");
        assert!(!fits_with(&first, 0, (0x800, 0x1000)), "they have nothing in common");
        assert!(!fits_with(&first, 0, (0x2000, 0x3000)), "nor have these");
    }

    #[test]
    fn pages_are_compared_as_their_words_are() {
        let page = |byte: u8| Bytes::from(vec![byte; LiveStack::PAGE]);
        let pages = vec![page(7), page(8), Bytes::new(), page(7)];
        let live = LiveStack { pages, ..live(1, 0) };
        let bytes: Vec<u8> = (0..0x3000_u32).map(|at| if at < 0x1100 { 7 } else { 8 }).collect();
        for (start, len) in (0xff8..0x1008)
            .flat_map(|start| [0, 5, 8, 0x1000, 0x1100, 0x11f1, 0x2004, 0x3000].map(|len| (start, len)))
        {
            let copy = StackCopy { start: Avma(start), bytes: &bytes[..len] };
            let end = (start + len as u64) & !7;
            let from = live.start.0.max(end.saturating_sub(COMPARED)).next_multiple_of(8);
            let words = (from..end).step_by(8).map(Avma);
            let is_same =
                |word: &Avma| copy.read_u64(*word).is_some() && copy.read_u64(*word) == live.read_u64(*word);
            let (all, same) = (words.clone().count(), words.filter(is_same).count());
            let expected = all > 0 && (all - same) * 16 <= all;
            assert_eq!(fits(&live, copy), expected, "{len:#x} from {start:#x} on: {same} of {all}");
        }
    }
}
