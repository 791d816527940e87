//! The outer parts of deep stacks, read from living processes: by a thread of its own, a little after the samples whose
//! copies do not reach that far. Nobody is stopped for it, and nobody waits for it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use bytes::Bytes;
use nyquist_convert::event::{Event, EventKind, LiveStack, Pid, Tid, Timestamp};
use nyquist_object::Avma;

use super::cut::{Attention, Cut};
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace::read_memory;

/// A sample that is older than this when it is heard of says nothing of the stack as it is now.
const FRESH_NS: u64 = 8_000_000;
/// How much of what was copied is read once more, so that both can be compared where they join.
const OVERLAP: u64 = 8 << 10;
/// The most bytes of a stack that are read at once. What lies behind is not reached.
const MOST_READ: usize = 2 << 20;
/// How long the rings are looked at often after a deep stack was seen.
const ATTENTION_NS: u64 = 300_000_000;
/// After reading for a while, rest so many times as long.
const REST: u64 = 15;
/// For how long a thread is left alone whose copies hold its whole stack although they are full.
const LEAVE_ALONE_NS: u64 = 1_000_000_000;
/// The most threads that are remembered.
const MOST_THREADS: usize = 512;

/// The state of the thread that reads.
pub(crate) struct LiveReader {
    pub(crate) cuts: Receiver<Cut>,
    /// Threads whose copies held their whole stacks.
    pub(crate) whole: Receiver<Vec<Tid>>,
    pub(crate) out: Sender<Event>,
    pub(crate) attention: Arc<Attention>,
    threads: HashMap<u32, Thread>,
    /// Where memory is read into.
    scratch: Vec<u8>,
    rest_until: u64,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// The memory that its stack is in.
    stack: Range<u64>,
    /// What was read last.
    last: Pages,
    leave_alone_until: u64,
    heard_of: u64,
}

/// Pages of memory, from an address on.
#[derive(Clone, Debug, Default)]
struct Pages {
    start: u64,
    pages: Vec<Bytes>,
}

/// What to read for a thread: from the innermost end of its copies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    pid: u32,
    end: u64,
    oldest_ns: u64,
}

impl LiveReader {
    pub(crate) fn new(
        cuts: Receiver<Cut>,
        whole: Receiver<Vec<Tid>>,
        out: Sender<Event>,
        attention: Arc<Attention>,
    ) -> Self {
        Self { cuts, whole, out, attention, threads: HashMap::new(), scratch: Vec::new(), rest_until: 0 }
    }

    /// Reads what is missing of the stacks of samples that it is told of, until nobody tells of any more.
    pub(crate) fn run(mut self) {
        loop {
            let Ok(first) = self.cuts.recv() else { return };
            let now = monotonic_ns();
            self.note_whole(now);
            let mut wanted = HashMap::new();
            for cut in std::iter::once(first).chain(self.cuts.try_iter()) {
                add(&mut wanted, cut);
            }
            self.read_all(wanted, now);
        }
    }

    fn note_whole(&mut self, now: u64) {
        for tid in self.whole.try_iter().flatten() {
            let thread = self.threads.entry(tid.0).or_default();
            (thread.leave_alone_until, thread.heard_of) = (now + LEAVE_ALONE_NS, now);
        }
        if self.threads.len() > MOST_THREADS {
            self.threads.retain(|_, thread| now.saturating_sub(thread.heard_of) < LEAVE_ALONE_NS);
        }
    }

    fn read_all(&mut self, wanted: HashMap<u32, Wanted>, now: u64) {
        for (tid, wanted) in wanted {
            if self.threads.len() > MOST_THREADS && !self.threads.contains_key(&tid) {
                continue;
            }
            let thread = self.threads.entry(tid).or_default();
            thread.heard_of = now;
            if now < thread.leave_alone_until || !thread.find_stack(wanted) {
                continue;
            }
            // Also where this sample is too old: the next ones will not be.
            self.attention.ask_until(now + ATTENTION_NS);
            let began = monotonic_ns();
            if began >= self.rest_until && began.saturating_sub(wanted.oldest_ns) < FRESH_NS {
                if let Some(event) = thread.read(tid, wanted, &mut self.scratch) {
                    // Where nobody listens any more, the recording has ended.
                    let _ = self.out.send(event);
                }
                let ended = monotonic_ns();
                self.rest_until = ended + REST * ended.saturating_sub(began);
            }
        }
    }
}

/// Adds a copy to what is to be read for its thread. Of old samples only the thread counts.
fn add(wanted: &mut HashMap<u32, Wanted>, cut: Cut) {
    let new = Wanted { pid: cut.pid, end: cut.end, oldest_ns: cut.time_ns };
    wanted
        .entry(cut.tid)
        .and_modify(|known| {
            let is_fresh = cut.time_ns.saturating_sub(known.oldest_ns) < FRESH_NS;
            *known = if is_fresh && known.pid == cut.pid {
                Wanted { end: known.end.min(cut.end), oldest_ns: known.oldest_ns.min(cut.time_ns), ..*known }
            } else {
                new
            };
        })
        .or_insert(new);
}

impl Thread {
    /// Whether the memory is known in which its stack is, and the copy ends inside of it.
    fn find_stack(&mut self, wanted: Wanted) -> bool {
        // A copy that reaches the end of the memory may begin far before it.
        let inside = wanted.end.saturating_sub(1);
        if !self.stack.contains(&inside) {
            self.stack = proc::writable_memory_at(wanted.pid, inside).unwrap_or_default();
        }
        wanted.end < self.stack.end
    }

    /// Reads the outer part of the stack, as it is now.
    fn read(&mut self, tid: u32, wanted: Wanted, scratch: &mut Vec<u8>) -> Option<Event> {
        let page = LiveStack::PAGE as u64;
        let start = wanted.end.saturating_sub(OVERLAP).max(self.stack.start) & !(page - 1);
        let len = usize::try_from(self.stack.end - start).unwrap_or(MOST_READ).min(MOST_READ);
        scratch.resize(len.max(scratch.len()), 0);
        let room = scratch.get_mut(..len)?;
        let read = read_memory(wanted.pid, start, room);
        let read_at = monotonic_ns();
        let (whole, _) = room.get(..read)?.as_chunks::<{ LiveStack::PAGE }>();
        if whole.is_empty() {
            return None;
        }
        let at = |index: usize| start + (index * LiveStack::PAGE) as u64;
        let pages = whole.iter().enumerate().map(|(index, page)| self.last.keep(at(index), page)).collect();
        self.last = Pages { start, pages };
        let live = LiveStack {
            pid: Pid(wanted.pid),
            tid: Tid(tid),
            read_at: Timestamp(read_at),
            start: Avma(start),
            pages: self.last.pages.clone(),
        };
        // It is to be there before the first sample that wants it.
        let time = Timestamp(wanted.oldest_ns.saturating_sub(1));
        Some(Event { time, cpu: None, kind: EventKind::LiveStack(Box::new(live)) })
    }
}

impl Pages {
    /// A page, which takes no new memory where it has not changed.
    fn keep(&self, address: u64, bytes: &[u8]) -> Bytes {
        let index = address.checked_sub(self.start).map(|offset| offset as usize / LiveStack::PAGE);
        let known = index.and_then(|index| self.pages.get(index)).filter(|known| known.as_ref() == bytes);
        known.cloned().unwrap_or_else(|| Bytes::copy_from_slice(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(time_ns: u64, end: u64) -> Cut {
        Cut { pid: 1, tid: 2, time_ns, end }
    }

    #[test]
    fn what_is_wanted_of_a_thread_reaches_from_its_innermost_copy_on() {
        let check = |cuts: &[Cut], expected| {
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
        let pid = std::process::id();
        let wanted = Wanted { pid, end: here.as_ptr() as u64 + 64, oldest_ns: 1000 };
        let mut thread = Thread::default();
        assert!(thread.find_stack(wanted));
        let mut scratch = Vec::new();
        let mut read = || {
            let event = thread.read(5, wanted, &mut scratch).unwrap();
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
    fn a_process_that_is_gone_has_no_stack() {
        let wanted = Wanted { pid: u32::MAX >> 1, end: 0x5000, oldest_ns: 0 };
        assert!(!Thread::default().find_stack(wanted));
    }
}
