//! Prefetches stacks: the addresses that the last walks have read are prefetched for the next walks.
//!
//! A stack copy was made on another CPU, so each word that a walk reads is a cache miss. The walk only knows
//! the address of the next word after it has read the last one. But the outer frames of a thread's stack are
//! mostly where they were at its last sample.

use std::array;
use std::cell::Cell;

use nyquist_object::Avma;

use crate::event::{EventKind, Tid};
use crate::sys::{CACHE_LINE, fetch};
use crate::unwind::registers::unwindable;

/// The number of threads, which is enough for the threads that run at once.
const THREADS: usize = 16;

/// The most cache lines of a thread, which are a few thousand bytes. More lines would evict one another from
/// the cache.
const LINES: usize = 64;

/// The bits of an address within a cache line.
const LINE_BITS: u32 = CACHE_LINE.ilog2();

/// The lines that the last walks of threads have read, by the threads' numbers.
#[derive(Debug, Default)]
pub(crate) struct StackPrefetcher([ReadLines; THREADS]);

/// The cache lines of a stack that the last walk has read.
#[derive(Debug)]
pub(crate) struct ReadLines {
    /// An address in each of them, in the order of the walk.
    lines: [Cell<u64>; LINES],
    len: Cell<usize>,
    last_line: Cell<u64>,
}

impl Default for ReadLines {
    fn default() -> Self {
        Self { lines: array::from_fn(|_| Cell::default()), len: Cell::default(), last_line: Cell::default() }
    }
}

impl StackPrefetcher {
    /// Begins the walk of a thread.
    pub(crate) fn begin(&self, tid: Tid) -> &ReadLines {
        let lines = self.of(tid);
        lines.len.set(0);
        lines.last_line.set(0);
        lines
    }

    /// Prefetches the memory that the walk of a later stack will probably read.
    pub(crate) fn fetch(&self, coming: &EventKind) {
        self.wanted(coming).for_each(|byte| fetch(byte));
    }

    /// A byte of each cache line that the walk of a stack will probably read.
    fn wanted<'a>(&'a self, coming: &'a EventKind) -> impl Iterator<Item = &'a u8> {
        let copy = match coming {
            EventKind::Sample(sample) => sample.user.copy().and_then(|(registers, stack)| {
                Some((sample.tid, unwindable(registers)?.stack_pointer(), stack))
            }),
            _ => None,
        };
        copy.into_iter().flat_map(|(tid, start, stack)| {
            let offsets = self.of(tid).addresses().map(move |address| address.wrapping_sub(start.0) as usize);
            offsets.filter_map(|offset| stack.get(offset))
        })
    }

    fn of(&self, tid: Tid) -> &ReadLines {
        &self.0[tid.0 as usize % THREADS]
    }
}

impl ReadLines {
    /// Notes an address that a walk reads.
    #[inline]
    pub(crate) fn note(&self, address: Avma) {
        let line = address.0 >> LINE_BITS;
        if line != self.last_line.get() {
            self.last_line.set(line);
            let len = self.len.get();
            if let Some(place) = self.lines.get(len) {
                place.set(address.0);
                self.len.set(len + 1);
            }
        }
    }

    fn addresses(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().take(self.len.get()).map(Cell::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Pid, Registers, Sample, UserStack};
    use bytes::Bytes;

    /// A sample whose stack copy has `bytes` bytes from `start` on. The value of each byte is the index of
    /// its cache line in the copy.
    fn sample(tid: u32, start: u64, bytes: u64) -> EventKind {
        let mut registers = [0; 17];
        // The stack pointer, as DWARF numbers registers.
        registers[7] = start;
        let stack: Vec<u8> = (start..start + bytes).map(|address| (address >> LINE_BITS) as u8).collect();
        let user = UserStack::Copied {
            registers: Box::new(Registers::X86_64(registers)),
            stack: Bytes::from(stack),
            limited: false,
        };
        EventKind::Sample(Sample::in_user_code(Pid(tid), user))
    }

    fn lines(prefetcher: &StackPrefetcher, coming: &EventKind) -> Vec<u8> {
        prefetcher.wanted(coming).copied().collect()
    }

    #[test]
    fn the_last_walks_lines_are_prefetched() {
        let prefetcher = StackPrefetcher::default();
        let read = prefetcher.begin(Tid(7));
        for address in [0x1008, 0x1000, 0x1040, 0x1078, 0x1400] {
            read.note(Avma(address));
        }
        assert_eq!(lines(&prefetcher, &sample(7, 0x1000, 0x800)), [0x40, 0x41, 0x50]);
        // If the stack is less deep now, or the copy is shorter, only the existing lines are prefetched.
        assert_eq!(lines(&prefetcher, &sample(7, 0x1048, 0x800)), [0x50]);
        assert_eq!(lines(&prefetcher, &sample(7, 0x1000, 0x100)), [0x40, 0x41]);
        assert_eq!(lines(&prefetcher, &sample(8, 0x1000, 0x800)), [0; 0]);
        assert_eq!(lines(&prefetcher, &EventKind::Throttled), [0; 0]);
        prefetcher.begin(Tid(7));
        assert_eq!(lines(&prefetcher, &sample(7, 0x1000, 0x800)), [0; 0]);
    }

    #[test]
    fn a_walk_has_no_more_lines_than_are_of_use() {
        let prefetcher = StackPrefetcher::default();
        let read = prefetcher.begin(Tid(1));
        (0..1000).for_each(|index| read.note(Avma(0x1000 + index * 320)));
        assert_eq!(lines(&prefetcher, &sample(1, 0x1000, 320_000)).len(), LINES);
    }
}
