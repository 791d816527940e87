//! The outer parts of deep stacks, read from living processes: by a thread of its own, a little after the samples whose
//! copies do not reach that far. Nobody is stopped for it, and nobody waits for it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, EventKind, LiveStack, Pid, Tid, Timestamp};

use super::duty_cycle::DutyCycle;
use super::hot_pages::HotPages;
use super::pages::Memory;
use super::ring_scanner::RingScanner;
use super::stack_bases::StackBases;
use super::truncated_stack::TruncatedStack;
use crate::linux::proc;
use crate::linux::random::Random;
use crate::linux::sys::clock::{monotonic_ns, thread_cpu_ns};
use crate::linux::sys::process::Preference;

/// What is read, is read in pages.
pub(super) const PAGE: u64 = LiveStack::PAGE as u64;
/// A sample that is older than this when it is heard of says nothing of the stack as it is now.
const FRESH_NS: u64 = 8_000_000;
/// How much of what was copied is read once more, so that both can be compared where they join, also where the stack of the
/// next sample is somewhat deeper.
const OVERLAP: u64 = 8 << 10;
/// For how long after such a copy a thread's stack is read without further ones: many are deep for moments only, and what was
/// read before such a moment is as good as what was read in it.
const WARM_NS: u64 = 100_000_000;
/// How often.
const BETWEEN_READINGS_NS: u64 = 3_000_000;
/// How far back a reading is told of: to samples of the time since the one before, but no further than this.
const TOLD_BACK_NS: u64 = 10_000_000;
/// So far back goes the innermost end from which on a thread's stack is read, in nanoseconds: what is read for one sample is
/// compared with what was read for those before it.
const INNERMOST_FOR: u64 = 20_000_000;
/// But no more than this is read for that.
const MOST_INNER: u64 = 32 << 10;
/// So much behind the outermost copy is read at least, also where walks are known to look at no page of it: the next copies may
/// end there.
const BEHIND: u64 = 8 << 10;
/// The most bytes of a stack that are read at once. What lies behind is not reached.
pub(super) const MOST_READ: u64 = 2 << 20;
/// Before anybody has said where it begins, or that its copies do not hold it, it is read up to the end of its memory where that is no
/// further than this,
const NEAR_END: u64 = 256 << 10;
/// and else no more than this: behind the stack of a thread that has just begun there may be other memory, megabytes of it. To read 256 kB
/// of it was a third of all that was read of a compiler, and led to no more roots.
const MOST_READ_UNHEARD: u64 = 64 << 10;
/// For how long it looks into the rings itself after a deep stack was seen.
const ATTENTIVE_NS: u64 = 300_000_000;
/// While stacks are deep, it looks into the rings after so long at the earliest.
const LEAST_WAIT_NS: u64 = 2_000_000;
/// A reading waits for up to so much longer, at random: a program that calls now this, now that, in step with the readings
/// would be found at the same place again and again.
const MOST_WAIT_NS: u64 = 2_000_000;
/// However long it is to rest, it looks after so long whether the recording has ended.
const LONGEST_REST_NS: u64 = 10_000_000;
/// For how long a thread is left alone whose copies hold its whole stack although they are full, and how long ago the last
/// one must be that did not: a stack that is about as deep as the copies is found to be now the one, now the other.
const LEAVE_ALONE_NS: u64 = 1_000_000_000;
/// The most threads that are remembered.
const MOST_THREADS: usize = 512;

/// The state of the thread that reads.
pub(crate) struct LiveReader {
    pub(crate) cuts: Receiver<TruncatedStack>,
    /// What came of the copies.
    pub(crate) copies: Receiver<StackCopyFeedback>,
    pub(crate) out: Sender<Event>,
    /// The rings, while stacks are deep.
    peeks: RingScanner,
    attentive_until: u64,
    /// How much of the CPU's time it had used when it last began to rest.
    used: u64,
    roots: Arc<StackBases>,
    threads: HashMap<u32, Thread>,
    /// What is to be read when it has rested.
    wanted: HashMap<u32, Wanted>,
    /// Where stacks are read into.
    memory: Memory,
    rest: DutyCycle,
    random: Random,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Thread {
    pid: u32,
    /// The memory that its stack is in.
    stack: Range<u64>,
    /// The outermost word that walks to the root have looked at; 0 where nobody has come there yet.
    root: u64,
    /// What was read last.
    last: Option<Arc<LiveStack>>,
    looked_at: HotPages,
    /// The innermost end of the copies of some time, and when that was.
    innermost: (u64, u64),
    leave_alone_until: u64,
    /// When it was last heard that a copy did not hold the whole stack.
    cut_at: u64,
    /// The time of the last sample of it that was told of.
    told_at: u64,
    /// When it was last read.
    read_at: u64,
    heard_of: u64,
    /// Until when it is read without being asked for, and where the last copy of it began and ended.
    warm_until: u64,
    last_copy: (u64, u64),
}

/// What to read for a thread: from the innermost end of its copies on, and all of it up to their outermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    pid: u32,
    start: u64,
    end: u64,
    outermost_end: u64,
    oldest_ns: u64,
    newest_ns: u64,
    /// Whether somebody has told of a copy; else it is read for what may come.
    is_told: bool,
}

impl LiveReader {
    pub(crate) fn new(
        cuts: Receiver<TruncatedStack>,
        copies: Receiver<StackCopyFeedback>,
        out: Sender<Event>,
        peeks: RingScanner,
        roots: Arc<StackBases>,
    ) -> Self {
        Self {
            cuts,
            copies,
            out,
            peeks,
            attentive_until: 0,
            used: 0,
            roots,
            threads: HashMap::new(),
            wanted: HashMap::new(),
            memory: Memory::new(),
            rest: DutyCycle::default(),
            random: Random::new(monotonic_ns()),
        }
    }

    /// Reads what is missing of the stacks of samples that it is told of, until nobody tells of any more.
    pub(crate) fn run(mut self) {
        // What comes too late is worth nothing, and it rests far longer than it reads.
        let _preference = Preference::of_this_thread();
        while self.hear() {
            let now = monotonic_ns();
            self.heed_copies(now);
            self.note_wanted(now);
            if self.rest.left(now) == 0 {
                self.read_wanted();
            }
        }
    }

    /// Waits until somebody tells of a copy, or until it is time to read. While stacks are deep, it looks into the rings by the
    /// clock: being woken for each copy costs more than all reading, and the reader comes too late. Says whether anybody is left
    /// who could tell.
    fn hear(&mut self) -> bool {
        let now = monotonic_ns();
        let rest = self.rest.left(now).min(LONGEST_REST_NS);
        if !self.wanted.is_empty() {
            std::thread::sleep(Duration::from_nanos(rest));
        } else if now < self.attentive_until {
            let wait = LEAST_WAIT_NS + self.random.below(MOST_WAIT_NS);
            std::thread::sleep(Duration::from_nanos(rest.max(wait)));
        } else if let Ok(cut) = self.cuts.recv() {
            self.note_cut(cut);
            self.rest.extend_to(monotonic_ns() + self.random.below(MOST_WAIT_NS));
        } else {
            return false;
        }
        // What the reader has told of is older than what is in the rings.
        let can_go_on = loop {
            match self.cuts.try_recv() {
                Ok(cut) => self.note_cut(cut),
                Err(end) => break end == TryRecvError::Empty,
            }
        };
        self.peek();
        can_go_on
    }

    /// Looks into the rings.
    fn peek(&mut self) {
        let Self { peeks, threads, wanted, .. } = self;
        peeks.look(|cut| note_cut(threads, wanted, cut));
    }

    fn note_cut(&mut self, cut: TruncatedStack) {
        note_cut(&mut self.threads, &mut self.wanted, cut);
    }

    fn heed_copies(&mut self, now: u64) {
        for counts in self.copies.try_iter() {
            for tid in counts.cut {
                let thread = self.threads.entry(tid.0).or_default();
                (thread.cut_at, thread.leave_alone_until, thread.heard_of) = (now, 0, now);
            }
            for tid in counts.whole {
                let thread = self.threads.entry(tid.0).or_default();
                thread.heard_of = now;
                if now.saturating_sub(thread.cut_at) > LEAVE_ALONE_NS {
                    thread.leave_alone_until = now + LEAVE_ALONE_NS;
                }
            }
            for (tid, page) in counts.looked_at {
                self.threads.entry(tid.0).and_modify(|thread| thread.looked_at.note(page.0, now));
            }
            for tid in counts.gaps {
                self.threads.entry(tid.0).and_modify(|thread| thread.looked_at.note_gap(now));
            }
        }
        if self.threads.len() > MOST_THREADS {
            self.threads.retain(|_, thread| now.saturating_sub(thread.heard_of) < LEAVE_ALONE_NS);
        }
    }

    /// Forgets what is not to be read after all, and looks into the rings for a while where anything is.
    fn note_wanted(&mut self, now: u64) {
        let (threads, roots) = (&mut self.threads, &self.roots);
        self.wanted.retain(|tid, wanted| {
            if threads.len() > MOST_THREADS && !threads.contains_key(tid) {
                return false;
            }
            let thread = threads.entry(*tid).or_default();
            if !wanted.is_told {
                return true;
            }
            thread.heard_of = now;
            if now < thread.leave_alone_until {
                thread.warm_until = 0;
                return false;
            }
            thread.root = roots.get(*tid).unwrap_or_default();
            let is_deep = thread.find_stack(*wanted);
            if is_deep {
                thread.warm_until = now + WARM_NS;
                (thread.pid, thread.last_copy) = (wanted.pid, (wanted.start, wanted.end));
            }
            is_deep
        });
        if self.wanted.values().any(|wanted| wanted.is_told) {
            // Also where all samples are too old: the next ones will not be.
            self.attentive_until = now + ATTENTIVE_NS;
        }
        let is_due = |thread: &Thread| {
            thread.warm_until > now && now.saturating_sub(thread.read_at) >= BETWEEN_READINGS_NS
        };
        for (tid, thread) in self.threads.iter().filter(|(_, thread)| is_due(thread)) {
            let (pid, (start, end)) = (thread.pid, thread.last_copy);
            let (oldest_ns, newest_ns) = (now, now);
            let wanted = Wanted { pid, start, end, outermost_end: end, oldest_ns, newest_ns, is_told: false };
            self.wanted.entry(*tid).or_insert(wanted);
        }
    }

    /// Reads what is wanted of all threads, and rests from all that it has done since it did so last: of many CPUs there may be much to
    /// look at. No thread is left out: of a sample that was not read for, the outer part is lost. The one whose turn is longest ago comes
    /// first.
    fn read_wanted(&mut self) {
        let read_at = |tid: &u32| self.threads.get(tid).map_or(0, |thread| thread.read_at);
        let mut turn: Vec<_> =
            self.wanted.drain().map(|(tid, wanted)| (read_at(&tid), tid, wanted)).collect();
        turn.sort_unstable_by_key(|(read_at, ..)| *read_at);
        for (_, tid, wanted) in turn {
            let now = monotonic_ns();
            let is_fresh = now.saturating_sub(wanted.newest_ns) < FRESH_NS;
            let Some(thread) = self.threads.get_mut(&tid).filter(|_| is_fresh) else { continue };
            thread.root = self.roots.get(tid).unwrap_or_default();
            match thread.read(tid, wanted, &mut self.memory) {
                // Where nobody listens any more, the recording has ended.
                Some(event) => drop(self.out.send(event)),
                None => thread.warm_until = 0,
            }
        }
        let before = std::mem::replace(&mut self.used, thread_cpu_ns());
        self.rest.note_used(self.used.saturating_sub(before), monotonic_ns());
    }
}

/// Takes note of a copy, unless it is of a thread that is known and was told of before: found in a ring, and then by the reader,
/// who comes later.
fn note_cut(threads: &mut HashMap<u32, Thread>, wanted: &mut HashMap<u32, Wanted>, cut: TruncatedStack) {
    if let Some(thread) = threads.get_mut(&cut.tid) {
        if cut.time_ns <= thread.told_at {
            return;
        }
        thread.told_at = cut.time_ns;
    }
    add(wanted, cut);
}

/// Adds a copy to what is to be read for its thread. Of old samples only the thread counts.
fn add(wanted: &mut HashMap<u32, Wanted>, cut: TruncatedStack) {
    let TruncatedStack { pid, start, end, time_ns, .. } = cut;
    let (oldest_ns, newest_ns) = (time_ns, time_ns);
    let new = Wanted { pid, start, end, outermost_end: end, oldest_ns, newest_ns, is_told: true };
    wanted
        .entry(cut.tid)
        .and_modify(|known| {
            let is_fresh = cut.time_ns.saturating_sub(known.oldest_ns) < FRESH_NS;
            *known = if is_fresh && known.pid == cut.pid {
                let (oldest_ns, newest_ns) = (known.oldest_ns.min(time_ns), known.newest_ns.max(time_ns));
                let (start, outermost_end) = (known.start.min(start), known.outermost_end.max(end));
                Wanted { start, end: known.end.min(end), outermost_end, oldest_ns, newest_ns, ..new }
            } else {
                new
            };
        })
        .or_insert(new);
}

impl Thread {
    /// Whether the memory is known in which its stack is, and the copy ends before the stack does.
    fn find_stack(&mut self, wanted: Wanted) -> bool {
        // A copy that reaches the end of the memory may begin far before it.
        let inside = wanted.end.saturating_sub(1);
        if !self.stack.contains(&inside) {
            self.stack = proc::writable_memory_at(wanted.pid, inside).unwrap_or_default();
        }
        wanted.end < self.outer_end(wanted)
    }

    /// Where the stack ends, as far as it is known: at its root, where that is on the stack that was copied, or else with the
    /// memory that it is in, in which far more may lie behind it.
    fn outer_end(&self, wanted: Wanted) -> u64 {
        let is_on_stack = wanted.start <= self.root && self.root < self.stack.end;
        if is_on_stack { (self.root + 8).next_multiple_of(PAGE).min(self.stack.end) } else { self.stack.end }
    }

    /// From where on the stack is to be read, so that earlier and later readings have something in common.
    fn innermost_end(&mut self, wanted: Wanted) -> u64 {
        let (end, at) = self.innermost;
        let is_recent = wanted.oldest_ns.saturating_sub(at) < INNERMOST_FOR;
        if !is_recent || wanted.end <= end || !self.stack.contains(&end) {
            self.innermost = (wanted.end, wanted.oldest_ns);
        }
        self.innermost.0.max(wanted.end.saturating_sub(MOST_INNER))
    }

    /// The part of the stack that may be of use.
    fn outer_part(&mut self, wanted: Wanted) -> Range<u64> {
        let innermost = self.innermost_end(wanted);
        let start = innermost.saturating_sub(OVERLAP).max(self.stack.start) & !(PAGE - 1);
        let end = self.outer_end(wanted).next_multiple_of(PAGE);
        let was_heard_of = self.root != 0 || self.cut_at != 0;
        let is_near_end = end.saturating_sub(start) <= NEAR_END;
        let most = if was_heard_of || is_near_end { MOST_READ } else { MOST_READ_UNHEARD };
        start..end.clamp(start, start + most)
    }

    /// Reads the pages of the outer part that may be of use, or all of it where these are not known. Says whether there are any.
    fn read_pages(&mut self, wanted: Wanted, memory: &mut Memory) -> bool {
        let stack = self.outer_part(wanted);
        let inner_end = wanted.outermost_end.saturating_add(BEHIND).next_multiple_of(PAGE);
        let parts = self.looked_at.parts(&stack, inner_end, monotonic_ns()).unwrap_or_else(|| vec![stack]);
        memory.read(wanted.pid, parts)
    }

    /// Reads the outer part of the stack, as it is now.
    fn read(&mut self, tid: u32, wanted: Wanted, memory: &mut Memory) -> Option<Event> {
        let is_there = self.read_pages(wanted, memory);
        let before = std::mem::replace(&mut self.read_at, monotonic_ns());
        let read_at = self.read_at;
        let (start, pages) = is_there.then(|| memory.pages_since(self.last.as_deref()))?;
        let (pid, tid) = (Pid(wanted.pid), Tid(tid));
        let live = Arc::new(LiveStack { pid, tid, read_at: Timestamp(read_at), start, pages });
        self.last = Some(Arc::clone(&live));
        // It is to be there before the first sample that it is for, whether or not that one was told of.
        let since = before.max(read_at.saturating_sub(TOLD_BACK_NS));
        let time = Timestamp(since.min(wanted.oldest_ns.saturating_sub(1)));
        Some(Event { time, cpu: None, kind: EventKind::LiveStack(live) })
    }
}

#[cfg(test)]
mod tests {
    use nyquist_object::Avma;
    use nyquist_perf::RecordFormat;

    use super::*;

    fn cut(time_ns: u64, end: u64) -> TruncatedStack {
        TruncatedStack { pid: 1, tid: 2, time_ns, start: end - 0x1000, end }
    }

    /// A copy that is to be read behind.
    fn wanted_up_to(end: u64) -> Wanted {
        let pid = std::process::id();
        Wanted {
            pid,
            start: end.saturating_sub(0x8000),
            end,
            outermost_end: end,
            oldest_ns: 1000,
            newest_ns: 1000,
            is_told: true,
        }
    }

    #[test]
    fn of_a_thread_that_nobody_has_said_anything_of_all_is_read_up_to_a_near_end() {
        let copy = 0x10_0000..0x11_0000;
        let read = |rest: u64, cut_at: u64| {
            let mut thread = Thread { stack: 0x1000..copy.end + rest, cut_at, ..Thread::default() };
            let wanted = Wanted { start: copy.start, ..wanted_up_to(copy.end) };
            let part = thread.outer_part(wanted);
            assert_eq!(part.start, copy.end - OVERLAP);
            part.end - part.start
        };
        assert_eq!(read(0x3_0000, 0), OVERLAP + 0x3_0000);
        assert_eq!(read(NEAR_END - OVERLAP, 0), NEAR_END);
        assert_eq!(read(NEAR_END, 0), MOST_READ_UNHEARD);
        assert_eq!(read(NEAR_END, 1), OVERLAP + NEAR_END);
    }

    #[test]
    fn what_is_wanted_of_a_thread_reaches_from_its_innermost_copy_on() {
        let check = |cuts: &[TruncatedStack], expected| {
            let mut wanted = HashMap::new();
            for cut in cuts {
                add(&mut wanted, *cut);
            }
            let Wanted { end, oldest_ns, .. } = wanted[&2];
            assert_eq!((oldest_ns, end), expected, "{cuts:?}");
        };
        check(&[cut(100, 0x5000)], (100, 0x5000));
        check(&[cut(100, 0x5000), cut(200, 0x4000), cut(150, 0x6000)], (100, 0x4000));
        check(&[cut(100, 0x5000), cut(100 + FRESH_NS, 0x9000)], (100 + FRESH_NS, 0x9000));
    }

    #[test]
    fn the_rest_of_this_threads_stack_is_read() {
        let here = [7_u8; 64];
        let end = here.as_ptr() as u64 + 64;
        let wanted = wanted_up_to(end);
        let mut thread = Thread::default();
        assert!(thread.find_stack(wanted));
        let mut memory = Memory::new();
        let mut read = || {
            let event = thread.read(5, wanted, &mut memory).unwrap();
            assert_eq!(event.time, Timestamp(999));
            let EventKind::LiveStack(live) = event.kind else { panic!() };
            live
        };
        let (first, second) = (read(), read());
        assert!(first.start.0 <= here.as_ptr() as u64 && first.pages.len() >= 2);
        assert_eq!(first.read_u64(Avma(here.as_ptr() as u64 & !7)), Some(u64::from_le_bytes([7; 8])));
        // What has not changed is the same memory.
        let same = first.pages.iter().zip(&second.pages).filter(|(a, b)| a.as_ptr() == b.as_ptr()).count();
        assert!(same > 0, "of {} pages", first.pages.len());
    }

    #[test]
    fn a_stack_is_read_up_to_its_root_where_that_is_known() {
        let memory = vec![7_u8; 1 << 20];
        let begin = memory.as_ptr() as u64;
        let wanted = |start: u64| Wanted {
            pid: std::process::id(),
            start: begin + start,
            end: begin + start + 0x1_0000,
            outermost_end: begin + start + 0x1_0000,
            oldest_ns: 1000,
            newest_ns: 1000,
            is_told: true,
        };
        let check = |root: Option<u64>, start: u64, expected: Option<u64>| {
            let mut thread = Thread { root: root.map_or(0, |root| begin + root), ..Thread::default() };
            let wanted = wanted(start);
            let end = thread.find_stack(wanted).then(|| thread.outer_end(wanted));
            let expected = expected.map(|end| (begin + end).next_multiple_of(LiveStack::PAGE as u64));
            let expected = expected.map(|end| if root.is_some() { end } else { thread.stack.end });
            assert_eq!(end, expected, "a root at {root:x?}, a copy from {start:x} on");
            let Some(end) = end else { return };
            for (cut_at, most) in [(0, MOST_READ_UNHEARD), (1, MOST_READ)] {
                thread.cut_at = cut_at;
                let event = thread.read(5, wanted, &mut Memory::new()).unwrap();
                let EventKind::LiveStack(live) = event.kind else { panic!() };
                let (len, read) = (live.pages.len() * LiveStack::PAGE, live.start.0);
                let is_less = len == most as usize && (most == MOST_READ || root.is_none());
                assert!(read + len as u64 == end || is_less, "{len:x} from {read:x} on, of {end:x}");
            }
        };
        check(None, 0x1_0000, Some(1 << 20));
        check(Some(0x3_0000), 0x1_0000, Some(0x3_0008));
        check(Some(0x2_fff8), 0x1_0000, Some(0x3_0000));
        check(Some(0x1_8000), 0x1_0000, None);
    }

    #[test]
    fn pages_that_walks_do_not_look_at_are_left_out_until_one_misses_them() {
        let memory = vec![7_u8; 1 << 20];
        let begin = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let (mut reader, tell, counts, events) = reader();
        let start = begin + 0x1_0000;
        let copy = TruncatedStack { pid: std::process::id(), tid: 2, time_ns: 0, start, end: start + 0x8000 };
        reader.roots.set(2, Some(begin + 0x8_0000));
        let mut pages_read = |told: StackCopyFeedback| {
            counts.send(told).unwrap();
            let now = monotonic_ns();
            tell.send(TruncatedStack { time_ns: now, ..copy }).unwrap();
            assert!(reader.hear());
            reader.heed_copies(now);
            reader.note_wanted(now);
            // As fresh as can be, however long the machine stalls until it is read.
            reader.wanted.values_mut().for_each(|wanted| wanted.newest_ns = u64::MAX);
            reader.read_wanted();
            let EventKind::LiveStack(live) = events.try_recv().unwrap().kind else { panic!() };
            assert_eq!(live.start.0 + (live.pages.len() as u64 * PAGE), begin + 0x8_1000);
            live.pages.iter().filter(|page| !page.is_empty()).count() as u64
        };
        let all = (begin + 0x8_1000 - (copy.end - OVERLAP)) / PAGE;
        let looked_at = [0x5_0000, 0x8_0000].map(|page| (Tid(2), Avma(begin + page))).into_iter().collect();
        let few = (OVERLAP + BEHIND) / PAGE + 2;
        assert_eq!(pages_read(StackCopyFeedback::default()), all);
        assert_eq!(pages_read(StackCopyFeedback { looked_at, ..StackCopyFeedback::default() }), few);
        assert_eq!(pages_read(StackCopyFeedback::default()), few);
        assert_eq!(pages_read(StackCopyFeedback { gaps: vec![Tid(2)], ..StackCopyFeedback::default() }), all);
    }

    #[test]
    fn a_root_that_is_on_no_stack_that_was_copied_says_nothing() {
        let stack = 0x10_0000..0x80_0000;
        let outer_end = |root: u64| {
            let thread = Thread { root, stack: stack.clone(), ..Thread::default() };
            thread.outer_end(Wanted { start: 0x20_0000, ..wanted_up_to(0x21_0000) })
        };
        assert_eq!([0, 0x1f_fff8, 0x80_0000].map(outer_end), [stack.end; 3]);
        assert_eq!([0x20_0000, 0x7f_fff8].map(outer_end), [0x20_1000, 0x80_0000]);
    }

    #[test]
    fn a_copy_that_holds_the_root_does_not_end_what_a_deeper_one_has_begun() {
        let memory = vec![7_u8; 1 << 20];
        let begin = memory.as_ptr() as u64;
        let (mut reader, tell, _counts, _events) = reader();
        reader.roots.set(2, Some((begin + 0x4_0000) & !7));
        // However long the machine stalls, no time passes from copy to copy.
        let now = monotonic_ns();
        let mut is_read_after = |start: u64| {
            let (start, end) = (begin + start, begin + start + 0x1_0000);
            tell.send(TruncatedStack { pid: std::process::id(), tid: 2, time_ns: now, start, end }).unwrap();
            assert!(reader.hear());
            reader.note_wanted(now);
            let wanted = reader.wanted.remove(&2).map(|wanted| wanted.end - begin);
            (wanted, reader.threads[&2].warm_until > now)
        };
        assert_eq!(is_read_after(0x3_8000), (None, false));
        assert_eq!(is_read_after(0x1_0000), (Some(0x2_0000), true));
        let (wanted, is_warm) = is_read_after(0x3_8000);
        assert!(is_warm && wanted.is_none_or(|end| end == 0x2_0000), "{wanted:x?}");
    }

    #[test]
    fn what_is_read_reaches_as_far_in_as_a_little_earlier() {
        let mut thread = Thread { stack: 0..1 << 40, ..Thread::default() };
        let mut innermost = |ms: u64, end: u64| {
            let (oldest_ns, newest_ns) = (ms * 1_000_000, ms * 1_000_000);
            thread.innermost_end(Wanted {
                pid: 1,
                start: end - 0x8000,
                end,
                outermost_end: end,
                oldest_ns,
                newest_ns,
                is_told: true,
            })
        };
        assert_eq!(innermost(100, 0x50_0000), 0x50_0000);
        assert_eq!(innermost(103, 0x50_8000), 0x50_0000);
        assert_eq!(innermost(106, 0x4f_0000), 0x4f_0000);
        assert_eq!(innermost(109, 0x60_0000), 0x60_0000 - MOST_INNER);
        assert_eq!(innermost(127, 0x50_0000), 0x50_0000, "long ago");
    }

    /// A reader, and how to tell it of copies.
    fn reader()
    -> (LiveReader, std::sync::mpsc::SyncSender<TruncatedStack>, Sender<StackCopyFeedback>, Receiver<Event>)
    {
        let (tell, cuts) = std::sync::mpsc::sync_channel(8);
        let (counts, heard) = std::sync::mpsc::channel();
        let (out, events) = std::sync::mpsc::channel();
        let peeks = RingScanner::new([].iter(), &RecordFormat::default(), Arc::default());
        (LiveReader::new(cuts, heard, out, peeks, Arc::default()), tell, counts, events)
    }

    #[test]
    fn a_stack_that_was_deep_is_read_on_for_a_while() {
        let here = [7_u8; 64];
        let (mut reader, tell, _counts, events) = reader();
        let now = monotonic_ns();
        let end = here.as_ptr() as u64 + 64;
        let start = end - 64;
        tell.send(TruncatedStack { pid: std::process::id(), tid: 2, time_ns: now, start, end }).unwrap();
        assert!(reader.hear());
        for (ms, readings) in [(0, 1), (1, 0), (4, 1), (8, 1), (99, 1), (103, 0)] {
            let now = now + ms * 1_000_000;
            reader.note_wanted(now);
            assert_eq!(reader.wanted.len(), readings, "{ms}");
            // As fresh as can be, however long the machine stalls until it is read.
            reader.wanted.values_mut().for_each(|wanted| wanted.newest_ns = u64::MAX);
            reader.read_wanted();
            assert_eq!(events.try_iter().count(), readings, "{ms}");
            reader.threads.values_mut().for_each(|thread| thread.read_at = now);
        }
        drop(tell);
        assert!(!reader.hear());
    }

    #[test]
    fn a_copy_that_was_told_of_is_not_told_of_again() {
        let (mut threads, mut wanted) = (HashMap::new(), HashMap::new());
        threads.insert(2, Thread::default());
        let mut is_news = |time_ns: u64| {
            note_cut(&mut threads, &mut wanted, cut(time_ns, 0x5000));
            wanted.remove(&2).is_some()
        };
        assert_eq!([10, 12, 10, 12, 13].map(&mut is_news), [true, true, false, false, true]);
    }

    #[test]
    fn a_thread_is_left_alone_only_where_no_copy_of_it_was_too_small() {
        let (mut reader, _tell, counts, _events) = reader();
        let send = |whole: &[u32], cut: &[u32]| {
            let tids = |tids: &[u32]| tids.iter().map(|tid| Tid(*tid)).collect();
            counts
                .send(StackCopyFeedback {
                    whole: tids(whole),
                    cut: tids(cut),
                    ..StackCopyFeedback::default()
                })
                .unwrap();
        };
        let mut is_left_alone = |ms: u64, tid: u32| {
            let now = 10 * LEAVE_ALONE_NS + ms * 1_000_000;
            reader.heed_copies(now);
            reader.threads.get(&tid).is_some_and(|thread| thread.leave_alone_until > now)
        };
        send(&[1, 2], &[2]);
        assert_eq!([1, 2].map(|tid| is_left_alone(0, tid)), [true, false]);
        send(&[2], &[1]);
        assert_eq!([1, 2].map(|tid| is_left_alone(10, tid)), [false, false]);
        send(&[2], &[]);
        assert!(is_left_alone(2_000, 2));
    }

    #[test]
    fn a_process_that_is_gone_has_no_stack() {
        let wanted = Wanted { pid: u32::MAX >> 1, ..wanted_up_to(0x5000) };
        assert!(!Thread::default().find_stack(wanted));
    }
}
