//! The descendants of the recorded processes. Those that are alive when the recording has ended are reported,
//! or recorded further.

use crate::system::processes::process_has_ended;
use nyquist_convert::event::{Event, EventKind};
use std::collections::HashMap;

/// The maximum number of forks that are stored.
const MAX_FORKS: usize = 1 << 18;

/// The reported forks of processes.
#[derive(Debug, Default)]
pub(crate) struct Family {
    /// The parent of each process. A process that has ended still links its children to its parent.
    parents: HashMap<u32, u32>,
}

impl Family {
    /// Records a fork.
    pub(crate) fn notice(&mut self, event: &Event) {
        if let EventKind::Fork { pid, parent_pid, .. } = &event.kind
            && pid != parent_pid
            && self.parents.len() < MAX_FORKS
        {
            self.parents.insert(pid.0, parent_pid.0);
        }
    }

    /// The live processes that descend from `ancestors`, in the order of their ids.
    pub(crate) fn live(&self, ancestors: &[u32]) -> Vec<u32> {
        self.descendants(ancestors, |pid| !process_has_ended(pid))
    }

    fn descendants(&self, ancestors: &[u32], lives: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found: Vec<u32> = self.parents.keys().copied().filter(|pid| lives(*pid)).collect();
        found.retain(|pid| !ancestors.contains(pid) && self.descends(*pid, ancestors));
        found.sort_unstable();
        found
    }

    /// Follows the parents. Reused ids could form a cycle, so the number of steps is limited to the number
    /// of forks.
    fn descends(&self, pid: u32, ancestors: &[u32]) -> bool {
        let mut at = pid;
        for _ in 0..=self.parents.len() {
            match self.parents.get(&at) {
                Some(parent) if ancestors.contains(parent) => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::{Pid, Tid, Timestamp};

    fn fork(pid: u32, parent: u32) -> Event {
        let (parent_pid, parent_tid) = (Pid(parent), Tid(parent));
        let kind = EventKind::Fork { pid: Pid(pid), tid: Tid(pid), parent_pid, parent_tid };
        Event { time: Timestamp(0), cpu: None, kind }
    }

    #[test]
    fn a_daemon_descends_through_an_ended_parent() {
        let mut family = Family::default();
        // The reports may come in any order; 20 and 21 have another parent.
        for event in [fork(12, 11), fork(11, 10), fork(13, 12), fork(21, 20), fork(10, 10)] {
            family.notice(&event);
        }
        assert_eq!(family.descendants(&[10], |pid| pid != 11), [12, 13]);
        assert_eq!(family.descendants(&[20], |_| true), [21]);
        assert_eq!(family.descendants(&[99], |_| true), [0; 0]);
    }

    #[test]
    fn numbers_in_circles_are_followed_to_an_end() {
        let mut family = Family::default();
        for event in [fork(1, 2), fork(2, 1)] {
            family.notice(&event);
        }
        assert_eq!(family.descendants(&[10], |_| true), [0; 0]);
    }
}
