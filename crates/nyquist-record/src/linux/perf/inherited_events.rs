//! Selects one of several events that sample the same thread. A thread that is born while events are opened
//! inherits some or all events of its parent, and then gets its own.

use std::collections::HashMap;

use nyquist_perf::abi::record;
use nyquist_perf::{Header, RecordBody, RecordFormat, SampleLayout, Task, parse_record};

/// The thread whose birth or end a record reports.
pub(crate) fn task(record: &[u8], format: &RecordFormat) -> Option<Task> {
    match parse_record(record, format).ok()?.body {
        RecordBody::Fork(task) | RecordBody::Exit(task) => Some(task),
        _ => None,
    }
}

/// For each thread, the owner of the events that sample it. Samples by other events are dropped, so that no
/// moment is sampled twice.
#[derive(Debug)]
pub(crate) struct InheritedEventFilter {
    /// The thread that an event was opened for.
    opened_for: HashMap<u64, u32>,
    /// The thread whose events sample a thread.
    owners: HashMap<u32, u32>,
}

impl InheritedEventFilter {
    /// Starts with the events, by id, and the threads that they were opened for.
    pub(crate) fn new(opened: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let opened_for: HashMap<u64, u32> = opened.into_iter().collect();
        let owners = opened_for.values().map(|tid| (*tid, *tid)).collect();
        Self { opened_for, owners }
    }

    /// Whether to keep a record. Also notes births and ends of threads.
    pub(crate) fn keeps(
        &mut self,
        header: Header,
        bytes: &[u8],
        task: impl FnOnce() -> Option<Task>,
    ) -> bool {
        match header.kind {
            record::SAMPLE => self.keeps_sample(bytes).unwrap_or(true),
            record::FORK => {
                if let Some(task) = task() {
                    self.note_fork(task.tid, task.parent_tid);
                }
                true
            }
            record::EXIT => {
                if let Some(task) = task() {
                    self.owners.remove(&task.tid);
                }
                true
            }
            _ => true,
        }
    }

    fn keeps_sample(&mut self, bytes: &[u8]) -> Option<bool> {
        let opened_for = *self.opened_for.get(&SampleLayout::event_in(bytes)?)?;
        let thread = SampleLayout::thread_in(bytes)?;
        // For an otherwise unknown thread, the first event that samples it determines its owner.
        Some(*self.owners.entry(thread).or_insert(opened_for) == opened_for)
    }

    fn note_fork(&mut self, thread: u32, parent: u32) {
        match self.owners.get(&parent).copied() {
            Some(owner) => self.owners.insert(thread, owner),
            None => self.owners.remove(&thread),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(event: u64, thread: u32) -> Vec<u8> {
        let words = [0, event, 0x1234, u64::from(thread) << 32 | 7];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn header(kind: u32) -> Header {
        Header { kind, misc: 0, size: 32 }
    }

    fn keeps(filter: &mut InheritedEventFilter, event: u64, thread: u32) -> bool {
        filter.keeps(header(record::SAMPLE), &sample(event, thread), || None)
    }

    fn task(filter: &mut InheritedEventFilter, kind: u32, tid: u32, parent_tid: u32) {
        let task = Task { pid: 7, parent_pid: 7, tid, parent_tid, time: 0 };
        assert!(filter.keeps(header(kind), &[], || Some(task)));
    }

    #[test]
    fn a_thread_with_own_events_drops_inherited_ones() {
        let mut filter = InheritedEventFilter::new([(100, 1), (200, 2)]);
        assert!(keeps(&mut filter, 100, 1));
        assert!(keeps(&mut filter, 200, 2));
        assert!(!keeps(&mut filter, 100, 2));
    }

    #[test]
    fn a_new_thread_is_sampled_by_one_of_two_events() {
        let mut filter = InheritedEventFilter::new([(100, 1), (200, 2)]);
        task(&mut filter, record::FORK, 3, 2);
        assert!(!keeps(&mut filter, 100, 3));
        assert!(keeps(&mut filter, 200, 3));
        // The birth of 9 was not reported.
        assert!(keeps(&mut filter, 100, 9));
        assert!(!keeps(&mut filter, 200, 9));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let mut filter = InheritedEventFilter::new([(100, 1), (200, 2)]);
        task(&mut filter, record::EXIT, 2, 2);
        task(&mut filter, record::FORK, 2, 1);
        assert!(keeps(&mut filter, 100, 2));
        assert!(!keeps(&mut filter, 200, 2));
    }

    #[test]
    fn what_is_not_understood_is_kept() {
        let mut filter = InheritedEventFilter::new([(100, 1)]);
        assert!(keeps(&mut filter, 555, 1));
        assert!(filter.keeps(header(record::SAMPLE), &[0; 9], || None));
    }
}
