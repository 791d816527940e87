//! The outer parts of stacks that were read from living processes: the latest ones of each thread, and how far they are to
//! be trusted.

use std::collections::VecDeque;

use nyquist_object::Avma;
use rustc_hash::FxHashMap;

use crate::event::{LiveStack, Tid, Timestamp};

/// So many of a thread's are kept: one that was read after a sample, and some from before it.
const KEPT: usize = 4;
/// What was read further from a sample than this says nothing about it, in nanoseconds.
const MOST_APART: u64 = 10_000_000;
/// For how long a thread's outer frames are not believed after two readings that fit the same sample have told of different
/// ones, in nanoseconds: they change faster than they are read.
const DISTRUST: u64 = 200_000_000;
/// What is older than this is forgotten.
const OLD: u64 = 1_000_000_000;
/// The most threads that are remembered without a look at who has ended.
const MANY_THREADS: usize = 64;

/// What was read, by thread.
#[derive(Debug, Default)]
pub(crate) struct LiveStacks {
    threads: FxHashMap<Tid, Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The latest ones, in the order in which they came.
    read: VecDeque<LiveStack>,
    distrusted_until: Timestamp,
}

impl LiveStacks {
    /// Takes note of what was read.
    pub(crate) fn add(&mut self, live: LiveStack) {
        let now = live.read_at.0;
        if self.threads.len() >= MANY_THREADS {
            let is_new = |thread: &Thread| thread.read.back().is_some_and(|last| last.read_at.0 + OLD > now);
            self.threads.retain(|_, thread| is_new(thread));
        }
        let read = &mut self.threads.entry(live.tid).or_default().read;
        // Who had the number before was another thread.
        read.retain(|other| other.pid == live.pid);
        read.push_back(live);
        if read.len() > KEPT {
            read.pop_front();
        }
    }

    /// What was read of a thread near a time, what was read last first: nothing where it is not to be trusted.
    pub(crate) fn near(&self, tid: Tid, time: Timestamp) -> impl Iterator<Item = &LiveStack> {
        let thread = self.threads.get(&tid).filter(|thread| thread.distrusted_until <= time);
        let read = thread.into_iter().flat_map(|thread| thread.read.iter().rev());
        read.filter(move |live| live.read_at.0.abs_diff(time.0) <= MOST_APART)
    }

    /// Readings that fit the same sample have told of different frames.
    pub(crate) fn distrust(&mut self, tid: Tid, time: Timestamp) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.distrusted_until = Timestamp(time.0.saturating_add(DISTRUST));
        }
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.threads.remove(&tid);
    }
}

/// How much of both is compared where what was read joins a copy, in bytes.
const COMPARED: u64 = 4096;
/// The part of it that may differ: one word in sixteen. Locals change while inner functions run; frames do not.
const MAY_DIFFER: usize = 16;

/// Whether what was read fits a copy that ends at `end`: the bytes that both have there are, nearly all of them, the same.
pub(crate) fn fits(live: &LiveStack, copy: impl Fn(Avma) -> Option<u64>, end: Avma) -> bool {
    let start = live.start.0.max(end.0.saturating_sub(COMPARED)).next_multiple_of(8);
    let words = (start..end.0 & !7).step_by(8).map(Avma);
    let compared =
        words.map(|address| copy(address).is_some_and(|word| live.read_u64(address) == Some(word)));
    let (all, same) = compared.fold((0, 0), |(all, same), is_same| (all + 1, same + usize::from(is_same)));
    all > 0 && (all - same) * MAY_DIFFER <= all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Pid;
    use bytes::Bytes;

    const MS: u64 = 1_000_000;

    fn live(pid: u32, read_at_ms: u64) -> LiveStack {
        LiveStack {
            pid: Pid(pid),
            tid: Tid(1),
            read_at: Timestamp(read_at_ms * MS),
            start: Avma(0x1000),
            pages: vec![Bytes::from(vec![7; LiveStack::PAGE])],
        }
    }

    fn near(stacks: &LiveStacks, ms: u64) -> Vec<u64> {
        stacks.near(Tid(1), Timestamp(ms * MS)).map(|live| live.read_at.0 / MS).collect()
    }

    #[test]
    fn only_what_was_read_near_a_sample_counts_for_it() {
        let mut stacks = LiveStacks::default();
        for ms in [100, 103, 106, 109, 112] {
            stacks.add(live(1, ms));
        }
        assert_eq!(near(&stacks, 110), [112, 109, 106, 103]);
        assert_eq!(near(&stacks, 95), [103]);
        assert_eq!(near(&stacks, 130), [0; 0]);
        stacks.add(live(2, 113));
        assert_eq!(near(&stacks, 112), [113], "the number is another process's");
        stacks.forget(Tid(1));
        assert_eq!(near(&stacks, 112), [0; 0]);
    }

    #[test]
    fn what_has_contradicted_itself_is_not_believed_for_a_while() {
        let mut stacks = LiveStacks::default();
        stacks.add(live(1, 100));
        stacks.distrust(Tid(1), Timestamp(100 * MS));
        assert_eq!(near(&stacks, 101), [0; 0]);
        stacks.add(live(1, 300));
        assert_eq!(near(&stacks, 299), [0; 0]);
        assert_eq!(near(&stacks, 301), [300]);
    }

    #[test]
    fn nearly_all_that_both_have_must_be_the_same() {
        let other = |different: u64| {
            let copy = move |address: Avma| {
                Some(if address.0 < 0x1800 + 8 * different { 0 } else { u64::from_le_bytes([7; 8]) })
            };
            fits(&live(1, 0), copy, Avma(0x2000))
        };
        // Of 512 words, 256 lie before 0x1800.
        assert!(!other(0));
        let fits_from = |start: u64, different: u64| {
            let live = LiveStack { start: Avma(start), ..live(1, 0) };
            let copy = |address: Avma| {
                Some(if address.0 < start + 8 * different { 0 } else { u64::from_le_bytes([7; 8]) })
            };
            fits(&live, copy, Avma(start + 0x800))
        };
        assert!(fits_from(0x1000, 0) && fits_from(0x1000, 16));
        assert!(!fits_from(0x1000, 17));
        assert!(!fits(&live(1, 0), |_| None, Avma(0x2000)), "the copy has no such bytes");
        assert!(!fits(&live(1, 0), |_| Some(7), Avma(0x1000)), "they have nothing in common");
    }
}
