//! What records report of the ends of threads: the counts of inherited counters, and which thread has none.

use std::collections::{HashMap, HashSet};

use nyquist_convert::event::Pid;
use nyquist_perf::abi::record;
use nyquist_perf::{RecordBody, RecordFormat, Task, parse_record};

/// The threads that have ended, and the counts of inherited counters at their ends.
///
/// Each thread with inherited counters has records of their counts when it ends. The thread with the opened
/// counters has none. It need not be the thread that they were opened for: when the kernel switches between two
/// threads whose events are copies, it exchanges the events in place of switching them.
#[derive(Debug)]
pub(crate) struct EndedThreads {
    format: RecordFormat,
    /// The counts by the id of the event that was opened.
    by_counter: HashMap<u64, u64>,
    /// The threads with records of their counts, until their ends are reported.
    counted: HashSet<u32>,
    /// The threads that have ended and have no such records so far.
    uncounted: HashMap<u32, EndedThread>,
    /// When the living threads were born.
    births: HashMap<u32, u64>,
    /// Whether the kernel has dropped records, which may be those of counts.
    lost: bool,
}

/// A thread that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedThread {
    pub(crate) pid: Pid,
    pub(crate) tid: u32,
    /// How long it lived, in nanoseconds, if its birth was reported.
    pub(crate) lifetime_ns: Option<u64>,
}

impl EndedThreads {
    /// No thread has ended so far.
    pub(crate) fn new(format: RecordFormat) -> Self {
        Self {
            format,
            by_counter: HashMap::new(),
            counted: HashSet::new(),
            uncounted: HashMap::new(),
            births: HashMap::new(),
            lost: false,
        }
    }

    /// Notes a record with the count of an inherited counter.
    pub(crate) fn note(&mut self, read: &[u8]) {
        let Ok(record) = parse_record(read, &self.format) else { return };
        let RecordBody::Read(read) = record.body else { return };
        if let (Some(counter), Some(id)) = (read.counters.iter().last(), record.id.id) {
            *self.by_counter.entry(id).or_default() += counter.value;
        }
        if self.uncounted.remove(&read.tid).is_none() {
            self.counted.insert(read.tid);
        }
    }

    /// Notes a record of the birth or the end of a thread.
    pub(crate) fn note_task(&mut self, task: Option<Task>, kind: u32) {
        let Some(Task { pid, tid, time, .. }) = task else { return };
        if kind == record::FORK {
            self.births.insert(tid, time);
            return;
        }
        let lifetime_ns = self.births.remove(&tid).map(|born| time.saturating_sub(born));
        if !self.counted.remove(&tid) {
            self.uncounted.insert(tid, EndedThread { pid: Pid(pid), tid, lifetime_ns });
        }
    }

    /// The kernel has dropped records.
    pub(crate) fn note_lost(&mut self) {
        self.lost = true;
    }

    /// Whether records of counts may be missing, as far as records show it.
    pub(crate) fn lack_counts(&self) -> bool {
        self.lost
    }

    /// The sum of an inherited counter's counts, by the id of the event that was opened.
    pub(crate) fn count(&self, counter: u64) -> u64 {
        self.by_counter.get(&counter).copied().unwrap_or_default()
    }

    /// The threads that have ended without records of their counts.
    pub(crate) fn uncounted(&self) -> impl Iterator<Item = EndedThread> {
        self.uncounted.values().copied()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use nyquist_perf::RecordId;

    use super::super::attr::tests::common;
    use super::super::attr::{Features, Reach};
    use super::*;

    pub(in crate::linux::perf) fn no_thread() -> EndedThreads {
        EndedThreads::new(common(Features::ALL, Reach::Thread { from_exec: false }).format())
    }

    /// Notes the count of a counter at the end of a thread.
    pub(in crate::linux::perf) fn count(ended: &mut EndedThreads, tid: u32, counter: u64, value: u64) {
        let id = RecordId { id: Some(counter), ..RecordId::default() };
        ended.note(&ended.format.encode_read((7, tid), value, &id));
    }

    pub(in crate::linux::perf) fn task(ended: &mut EndedThreads, kind: u32, tid: u32, time: u64) {
        ended.note_task(Some(Task { pid: 7, parent_pid: 7, tid, parent_tid: 7, time }), kind);
    }

    #[test]
    fn a_thread_without_counts_is_found() {
        let mut ended = no_thread();
        for tid in [8, 9, 10] {
            task(&mut ended, record::FORK, tid, 100);
        }
        count(&mut ended, 8, 50, 3);
        task(&mut ended, record::EXIT, 8, 900);
        task(&mut ended, record::EXIT, 9, 400);
        task(&mut ended, record::EXIT, 10, 900);
        count(&mut ended, 10, 50, 4);
        let holder = EndedThread { pid: Pid(7), tid: 9, lifetime_ns: Some(300) };
        assert_eq!(ended.uncounted().collect::<Vec<_>>(), [holder]);
        assert_eq!((ended.count(50), ended.count(51)), (7, 0));
    }
}
