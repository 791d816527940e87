//! What is known of a thread whose stack is read from its process, and the reading itself.

use std::ops::Range;
use std::sync::Arc;

use nyquist_convert::event::{Event, EventKind, LiveStack, Pid, Tid, Timestamp};

use super::pages::{MAX_READ_BYTES, PAGE, PageBuffers};
use super::read_request::ReadRequest;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::target_access;

/// How much of the copied part is read again. Both can then be compared where they join, also if the stack of
/// the next sample is somewhat deeper.
const OVERLAP: u64 = 8 << 10;
/// How far back a reading is used: for samples since the previous reading, but no further back than this.
const USED_BACK_NS: u64 = 10_000_000;
/// How old the innermost copy end may be that a reading begins at, in nanoseconds. A reading for one sample
/// is compared with the readings for the samples before it.
const INNERMOST_FOR: u64 = 20_000_000;
/// The maximum that is read for this comparison.
const MAX_INNER_BYTES: u64 = 32 << 10;
/// The limit for reading a stack up to the end of its memory while its base is unknown and no truncated copy
/// is known.
const NEAR_END: u64 = 256 << 10;
/// The maximum otherwise. Other memory, megabytes of it, may follow the stack of a new thread. Reading 256 kB
/// of it was a third of all readings for a compiler, and led to no more roots.
const MAX_UNTRUNCATED_READ_BYTES: u64 = 64 << 10;

/// What is known of a thread.
#[derive(Debug, Default)]
pub(super) struct DeepStackThread {
    pub(super) pid: u32,
    /// The memory that contains its stack.
    pub(super) stack: Range<u64>,
    /// The outermost word that walks to the root have read; 0 if no walk has reached the root yet.
    pub(super) base: u64,
    /// The last reading.
    last: Option<Arc<LiveStack>>,
    /// The innermost end of recent copies, and the time of that copy.
    innermost: (u64, u64),
    /// Whether a walk has ended at the end of one of its copies.
    pub(super) was_truncated: bool,
    /// The time of its last reported sample.
    pub(super) reported_at: u64,
    /// When it was last read.
    pub(super) read_at: u64,
    pub(super) noted_at: u64,
    /// Until when it is read without a request, and where its last copy began and ended.
    pub(super) warm_until: u64,
    pub(super) last_copy: (u64, u64),
}

impl DeepStackThread {
    /// Returns whether the memory that contains its stack is known, and the copy ends before the stack does.
    pub(super) fn find_stack(&mut self, requested: ReadRequest) -> bool {
        // A copy that reaches the end of the memory may begin far before it.
        let inside = requested.end.saturating_sub(1);
        if !self.stack.contains(&inside) {
            self.stack = target_access::writable_memory_at(requested.pid, inside).unwrap_or_default();
        }
        requested.end < self.outer_end(requested)
    }

    /// The end of the stack, as far as known. This is its base, if the base is on the copied stack. Otherwise it is
    /// the end of its memory, which may extend far beyond the stack.
    fn outer_end(&self, requested: ReadRequest) -> u64 {
        let is_on_stack = requested.start <= self.base && self.base < self.stack.end;
        if is_on_stack { (self.base + 8).next_multiple_of(PAGE).min(self.stack.end) } else { self.stack.end }
    }

    /// Where to start reading, so that earlier and later readings overlap.
    fn innermost_end(&mut self, requested: ReadRequest) -> u64 {
        let (end, at) = self.innermost;
        let is_recent = requested.oldest_ns.saturating_sub(at) < INNERMOST_FOR;
        if !is_recent || requested.end <= end || !self.stack.contains(&end) {
            self.innermost = (requested.end, requested.oldest_ns);
        }
        self.innermost.0.max(requested.end.saturating_sub(MAX_INNER_BYTES))
    }

    /// The part of the stack that may be useful.
    fn outer_part(&mut self, requested: ReadRequest) -> Range<u64> {
        let innermost = self.innermost_end(requested);
        let start = innermost.saturating_sub(OVERLAP).max(self.stack.start) & !(PAGE - 1);
        let end = self.outer_end(requested).next_multiple_of(PAGE);
        let was_truncated = self.base != 0 || self.was_truncated;
        let is_near_end = end.saturating_sub(start) <= NEAR_END;
        let most = if was_truncated || is_near_end { MAX_READ_BYTES } else { MAX_UNTRUNCATED_READ_BYTES };
        start..end.clamp(start, start + most)
    }

    /// Reads the current content of the outer part of the stack.
    pub(super) fn read(
        &mut self,
        tid: u32,
        requested: ReadRequest,
        memory: &mut PageBuffers,
    ) -> Option<Event> {
        let is_there = memory.read(requested.pid, self.outer_part(requested));
        let before = std::mem::replace(&mut self.read_at, monotonic_ns());
        let read_at = self.read_at;
        let (start, pages) = is_there.then(|| memory.pages_since(self.last.as_deref()))?;
        let (pid, tid) = (Pid(requested.pid), Tid(tid));
        let live =
            Arc::new(LiveStack { pid, tid, read_at: Timestamp(read_at), start, pages, stack_pointer: None });
        self.last = Some(Arc::clone(&live));
        // It must come before the first sample that it is for, whether or not that sample was reported.
        let since = before.max(read_at.saturating_sub(USED_BACK_NS));
        let time = Timestamp(since.min(requested.oldest_ns.saturating_sub(1)));
        Some(Event { time, cpu: None, kind: EventKind::LiveStack(live) })
    }
}

#[cfg(test)]
mod tests {
    use nyquist_object::Avma;

    use super::*;

    /// A request to read beyond a copy.
    fn requested_up_to(end: u64) -> ReadRequest {
        let pid = std::process::id();
        ReadRequest {
            pid,
            start: end.saturating_sub(0x8000),
            end,
            oldest_ns: 1000,
            newest_ns: 1000,
            is_reported: true,
        }
    }

    #[test]
    fn a_thread_with_whole_copies_is_read_nearby() {
        let copy = 0x10_0000..0x11_0000;
        let read = |rest: u64, was_truncated: bool| {
            let mut thread = DeepStackThread {
                stack: 0x1000..copy.end + rest,
                was_truncated,
                ..DeepStackThread::default()
            };
            let requested = ReadRequest { start: copy.start, ..requested_up_to(copy.end) };
            let part = thread.outer_part(requested);
            assert_eq!(part.start, copy.end - OVERLAP);
            part.end - part.start
        };
        assert_eq!(read(0x3_0000, false), OVERLAP + 0x3_0000);
        assert_eq!(read(NEAR_END - OVERLAP, false), NEAR_END);
        assert_eq!(read(NEAR_END, false), MAX_UNTRUNCATED_READ_BYTES);
        assert_eq!(read(NEAR_END, true), OVERLAP + NEAR_END);
    }

    #[test]
    fn the_rest_of_this_threads_stack_is_read() {
        let here = [7_u8; 64];
        let end = here.as_ptr() as u64 + 64;
        let requested = requested_up_to(end);
        let mut thread = DeepStackThread::default();
        assert!(thread.find_stack(requested));
        let mut memory = PageBuffers::new();
        let mut read = || {
            let event = thread.read(5, requested, &mut memory).unwrap();
            assert_eq!(event.time, Timestamp(999));
            let EventKind::LiveStack(live) = event.kind else { panic!() };
            live
        };
        let (first, second) = (read(), read());
        assert!(first.start.0 <= here.as_ptr() as u64 && first.pages.len() >= 2);
        assert_eq!(first.read_u64(Avma(here.as_ptr() as u64 & !7)), Some(u64::from_le_bytes([7; 8])));
        // Unchanged pages share the same memory.
        let same = first.pages.iter().zip(&second.pages).filter(|(a, b)| a.as_ptr() == b.as_ptr()).count();
        assert!(same > 0, "of {} pages", first.pages.len());
    }

    #[test]
    fn a_stack_is_read_up_to_its_known_base() {
        let memory = vec![7_u8; 1 << 20];
        let begin = memory.as_ptr() as u64;
        let requested = |start: u64| ReadRequest {
            pid: std::process::id(),
            start: begin + start,
            end: begin + start + 0x1_0000,
            oldest_ns: 1000,
            newest_ns: 1000,
            is_reported: true,
        };
        let check = |base: Option<u64>, start: u64, expected: Option<u64>| {
            let mut thread =
                DeepStackThread { base: base.map_or(0, |base| begin + base), ..DeepStackThread::default() };
            let requested = requested(start);
            let end = thread.find_stack(requested).then(|| thread.outer_end(requested));
            let expected = expected.map(|end| (begin + end).next_multiple_of(LiveStack::PAGE as u64));
            let expected = expected.map(|end| if base.is_some() { end } else { thread.stack.end });
            assert_eq!(end, expected, "a base at {base:x?}, a copy from {start:x} on");
            let Some(end) = end else { return };
            for (was_truncated, most) in [(false, MAX_UNTRUNCATED_READ_BYTES), (true, MAX_READ_BYTES)] {
                thread.was_truncated = was_truncated;
                let event = thread.read(5, requested, &mut PageBuffers::new()).unwrap();
                let EventKind::LiveStack(live) = event.kind else { panic!() };
                let (len, read) = (live.pages.len() * LiveStack::PAGE, live.start.0);
                let is_less = len == most as usize && (most == MAX_READ_BYTES || base.is_none());
                assert!(read + len as u64 == end || is_less, "{len:x} from {read:x} on, of {end:x}");
            }
        };
        check(None, 0x1_0000, Some(1 << 20));
        check(Some(0x3_0000), 0x1_0000, Some(0x3_0008));
        check(Some(0x2_fff8), 0x1_0000, Some(0x3_0000));
        check(Some(0x1_8000), 0x1_0000, None);
    }

    #[test]
    fn a_base_outside_the_copied_stack_is_ignored() {
        let stack = 0x10_0000..0x80_0000;
        let outer_end = |base: u64| {
            let thread = DeepStackThread { base, stack: stack.clone(), ..DeepStackThread::default() };
            thread.outer_end(ReadRequest { start: 0x20_0000, ..requested_up_to(0x21_0000) })
        };
        assert_eq!([0, 0x1f_fff8, 0x80_0000].map(outer_end), [stack.end; 3]);
        assert_eq!([0x20_0000, 0x7f_fff8].map(outer_end), [0x20_1000, 0x80_0000]);
    }

    #[test]
    fn readings_reach_as_far_in_as_shortly_before() {
        let mut thread = DeepStackThread { stack: 0..1 << 40, ..DeepStackThread::default() };
        let mut innermost = |ms: u64, end: u64| {
            let (oldest_ns, newest_ns) = (ms * 1_000_000, ms * 1_000_000);
            thread.innermost_end(ReadRequest {
                pid: 1,
                start: end - 0x8000,
                end,
                oldest_ns,
                newest_ns,
                is_reported: true,
            })
        };
        assert_eq!(innermost(100, 0x50_0000), 0x50_0000);
        assert_eq!(innermost(103, 0x50_8000), 0x50_0000);
        assert_eq!(innermost(106, 0x4f_0000), 0x4f_0000);
        assert_eq!(innermost(109, 0x60_0000), 0x60_0000 - MAX_INNER_BYTES);
        assert_eq!(innermost(127, 0x50_0000), 0x50_0000, "long ago");
    }

    #[test]
    fn a_process_that_is_gone_has_no_stack() {
        let requested = ReadRequest { pid: u32::MAX >> 1, ..requested_up_to(0x5000) };
        assert!(!DeepStackThread::default().find_stack(requested));
    }
}
