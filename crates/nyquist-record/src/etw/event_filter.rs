//! Which events are kept: those of the recorded processes and their descendants, or all.

use std::collections::HashSet;

use nyquist_convert::event::{Event, EventKind, Pid, Tid, Timestamp};

/// The most processes and threads that are remembered.
const MAX_PROCESSES: usize = 1 << 16;
const MAX_THREADS: usize = 1 << 20;

/// Decides which events are kept.
#[derive(Debug)]
pub(crate) enum EventFilter {
    /// Those of all processes.
    All,
    /// Those of some processes and of all that descend from them.
    Family(ProcessFamily),
}

/// The processes whose events are kept.
#[derive(Debug, Default)]
pub(crate) struct ProcessFamily {
    processes: HashSet<Pid>,
    /// Their threads, because some events state only a thread.
    threads: HashSet<Tid>,
    /// When the recording began. Processes that are reported as older have kept their numbers.
    began: Timestamp,
}

impl EventFilter {
    /// Those of these processes, and of processes that they start.
    pub(crate) fn family(pids: impl IntoIterator<Item = u32>) -> Self {
        let processes = pids.into_iter().map(Pid).collect();
        Self::Family(ProcessFamily { processes, ..ProcessFamily::default() })
    }

    /// The recording begins.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        if let Self::Family(family) = self {
            family.began = now;
        }
    }

    /// The processes whose events are kept, if not all are.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Pid> {
        let family = match self {
            Self::All => None,
            Self::Family(family) => Some(family),
        };
        family.into_iter().flat_map(|family| family.processes.iter().copied())
    }

    /// Whether an event is kept. Events must come in the order of their times.
    pub(crate) fn keeps(&mut self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Family(family) => family.keeps(event),
        }
    }
}

impl ProcessFamily {
    fn keeps(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Sample(sample) | EventKind::SwitchOut(sample) | EventKind::SwitchStack(sample) => {
                self.has((sample.pid, sample.tid))
            }
            EventKind::Waiting(waiting) => self.has((waiting.sample.pid, waiting.sample.tid)),
            EventKind::Fork { pid, tid, parent_pid, .. } => {
                self.adopt((*pid, *tid), *parent_pid, event.time >= self.began)
            }
            EventKind::Descheduled { pid, tid, .. }
            | EventKind::Name { pid, tid, .. }
            | EventKind::Exit { pid, tid }
            | EventKind::Total { pid, tid, .. } => self.has((*pid, *tid)),
            EventKind::SwitchIn { tid } => self.threads.contains(tid),
            EventKind::Wakeup(wakeup) => self.threads.contains(&wakeup.woken),
            EventKind::Map(mapping) => mapping.pid.is_none_or(|pid| self.processes.contains(&pid)),
            EventKind::Unmap { pid, .. } => self.processes.contains(pid),
            // Other events are of no process, or not of this source.
            _ => true,
        }
    }

    /// Whether a thread is of the family. Remembers its number.
    fn has(&mut self, (pid, tid): (Pid, Tid)) -> bool {
        let is_member = self.processes.contains(&pid);
        if is_member && self.threads.len() < MAX_THREADS {
            self.threads.insert(tid);
        } else if !is_member {
            // The number may have been that of an ended thread of the family.
            self.threads.remove(&tid);
        }
        is_member
    }

    /// Adds a process that a member has started. A new process of others that has the number of an ended member
    /// is none.
    fn adopt(&mut self, thread: (Pid, Tid), parent: Pid, is_new: bool) -> bool {
        let (pid, _) = thread;
        if pid != parent && self.processes.contains(&parent) {
            if self.processes.len() < MAX_PROCESSES {
                self.processes.insert(pid);
            }
        } else if pid != parent && is_new {
            self.processes.remove(&pid);
        }
        self.has(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::{MappedFile, Mapping, Timestamp};
    use nyquist_object::{Avma, FileOffset};

    fn fork((pid, tid): (u32, u32), parent: u32) -> EventKind {
        let (parent_pid, parent_tid) = (Pid(parent), Tid(parent));
        EventKind::Fork { pid: Pid(pid), tid: Tid(tid), parent_pid, parent_tid }
    }

    fn exit((pid, tid): (u32, u32)) -> EventKind {
        EventKind::Exit { pid: Pid(pid), tid: Tid(tid) }
    }

    fn image(pid: Option<u32>) -> EventKind {
        let (start, offset) = (Avma(1 << 20), FileOffset(0));
        let (path, identity) = ("a.dll".to_owned(), MappedFile::Unknown);
        EventKind::Map(Mapping { pid: pid.map(Pid), start, len: 4096, offset, path, identity })
    }

    fn retained(retained: &mut EventFilter, kinds: Vec<EventKind>) -> Vec<bool> {
        let event = |kind| Event { time: Timestamp(1), cpu: None, kind };
        kinds.into_iter().map(|kind| retained.keeps(&event(kind))).collect()
    }

    #[test]
    fn processes_of_others_are_left_out() {
        let mut family = EventFilter::family([10]);
        let kinds = vec![
            fork((20, 21), 4),
            fork((11, 12), 10),
            fork((13, 14), 11),
            image(Some(20)),
            image(Some(13)),
            image(None),
            EventKind::SwitchIn { tid: Tid(14) },
            EventKind::SwitchIn { tid: Tid(21) },
        ];
        assert_eq!(retained(&mut family, kinds), [false, true, true, false, true, true, true, false]);
        let mut processes: Vec<Pid> = family.processes().collect();
        processes.sort_unstable();
        assert_eq!(processes, [Pid(10), Pid(11), Pid(13)]);
        assert_eq!(retained(&mut EventFilter::All, vec![fork((20, 21), 4), image(Some(9))]), [true, true]);
    }

    #[test]
    fn images_are_kept_after_their_process_ends() {
        let mut family = EventFilter::family([10]);
        let kinds = vec![fork((11, 12), 10), exit((11, 12)), image(Some(11))];
        assert_eq!(retained(&mut family, kinds), [true, true, true]);
    }

    #[test]
    fn processes_that_run_already_keep_their_numbers() {
        let mut family = EventFilter::family([10]);
        family.begin(Timestamp(2));
        let kinds = vec![fork((10, 11), 4), fork((20, 21), 4), image(Some(10))];
        assert_eq!(retained(&mut family, kinds), [true, false, true]);
    }

    #[test]
    fn numbers_that_are_used_again_belong_to_others() {
        let mut family = EventFilter::family([10]);
        let kinds = vec![
            fork((11, 12), 10),
            exit((11, 12)),
            fork((11, 30), 4),
            image(Some(11)),
            fork((20, 12), 20),
            EventKind::SwitchIn { tid: Tid(12) },
        ];
        assert_eq!(retained(&mut family, kinds), [true, true, false, false, false, false]);
    }
}
