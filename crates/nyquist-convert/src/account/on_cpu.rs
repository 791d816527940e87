//! Which thread is on each CPU, and since when.

use crate::event::{Tid, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};

/// The intervals of threads on CPUs that have not ended.
#[derive(Debug, Default)]
pub(crate) struct OnCpu {
    intervals: FxHashMap<u32, OnCpuInterval>,
    /// The threads that were seen to come to a CPU or to leave one.
    seen: FxHashSet<Tid>,
}

#[derive(Clone, Copy, Debug)]
struct OnCpuInterval {
    tid: Tid,
    since: Timestamp,
}

/// When an interval that has ended began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalStart {
    /// When the thread was seen to come.
    At(Timestamp),
    /// Before the thread was ever seen: it has been there since it was born or the recording began.
    BeforeAll,
}

impl OnCpu {
    /// Notes that a thread comes to a CPU. Events of several recorded threads may all report it.
    pub(crate) fn arrive(&mut self, cpu: u32, tid: Tid, now: Timestamp) {
        self.seen.insert(tid);
        if self.intervals.get(&cpu).is_none_or(|interval| interval.tid != tid) {
            self.intervals.insert(cpu, OnCpuInterval { tid, since: now });
        }
    }

    /// Notes that a thread leaves a CPU. Returns `None` if the thread is not known to have been there.
    pub(crate) fn leave(&mut self, cpu: u32, tid: Tid) -> Option<IntervalStart> {
        let is_new = self.seen.insert(tid);
        match self.intervals.get(&cpu) {
            Some(interval) if interval.tid == tid => {
                self.intervals.remove(&cpu).map(|interval| IntervalStart::At(interval.since))
            }
            _ => is_new.then_some(IntervalStart::BeforeAll),
        }
    }

    /// Forgets a thread's number when a new thread gets it, because the earlier thread was another one.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.seen.remove(&tid);
    }

    /// Ends all intervals, and returns them in the order of the CPUs.
    pub(crate) fn leave_all(&mut self) -> Vec<(u32, Tid, Timestamp)> {
        let mut intervals: Vec<_> =
            self.intervals.drain().map(|(cpu, interval)| (cpu, interval.tid, interval.since)).collect();
        intervals.sort_unstable_by_key(|(cpu, ..)| *cpu);
        intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Tid = Tid(1);
    const TWO: Tid = Tid(2);

    #[test]
    fn an_interval_begins_when_a_thread_is_seen() {
        let mut on_cpu = OnCpu::default();
        on_cpu.arrive(0, ONE, Timestamp(5));
        on_cpu.arrive(0, ONE, Timestamp(6));
        on_cpu.arrive(1, TWO, Timestamp(7));
        assert_eq!(on_cpu.leave(0, ONE), Some(IntervalStart::At(Timestamp(5))));
        assert_eq!(on_cpu.leave(0, ONE), None, "it was reported twice");
        assert_eq!(on_cpu.leave_all(), [(1, TWO, Timestamp(7))]);
    }

    #[test]
    fn a_thread_was_there_from_the_beginning_once() {
        let mut on_cpu = OnCpu::default();
        assert_eq!(on_cpu.leave(0, ONE), Some(IntervalStart::BeforeAll));
        assert_eq!(on_cpu.leave(0, ONE), None);
        on_cpu.forget(ONE);
        assert_eq!(on_cpu.leave(0, ONE), Some(IntervalStart::BeforeAll), "another thread of this number");
    }

    #[test]
    fn a_thread_replaced_unseen_leaves_nothing() {
        let mut on_cpu = OnCpu::default();
        on_cpu.arrive(0, ONE, Timestamp(5));
        on_cpu.arrive(0, TWO, Timestamp(9));
        assert_eq!(on_cpu.leave(0, ONE), None);
        assert_eq!(on_cpu.leave(0, TWO), Some(IntervalStart::At(Timestamp(9))));
    }
}
