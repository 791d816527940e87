//! The recorded processes and their children, as the system lists them.

use std::collections::HashMap;

use super::process_status::ProcessStatus;
use crate::suspend::system::ListedProcess;

/// The most processes that are followed.
const MAX_FOLLOWED_PROCESSES: usize = 1 << 14;

/// System calls that read processes, as a trait for tests.
pub(crate) trait ProcessTree {
    /// What is known of a process; `None` if there is none.
    fn known(&self, pid: u32) -> Option<ProcessStatus>;
    /// The processes whose parent is this one.
    fn children(&self, pid: u32) -> Vec<u32>;
}

/// The processes whose children are looked for. A process whose parent has ended belongs to `launchd`, so
/// children are found only while their parent lives.
#[derive(Debug, Default)]
pub(crate) struct ProcessListing {
    /// When each was started, and its parent if that is known.
    followed: HashMap<u32, FollowedProcess>,
}

#[derive(Clone, Copy, Debug)]
struct FollowedProcess {
    began: u64,
    parent: u32,
}

impl ProcessListing {
    /// Follows a process from now on, whether or not it may be sampled.
    pub(crate) fn follow(&mut self, pid: u32, began: u64) {
        self.follow_child(pid, FollowedProcess { began, parent: 0 });
    }

    fn follow_child(&mut self, pid: u32, child: FollowedProcess) {
        if self.followed.len() < MAX_FOLLOWED_PROCESSES {
            self.followed.entry(pid).or_insert(child);
        }
    }

    /// The followed processes that live, and their descendants, which are followed from now on.
    pub(crate) fn refresh(&mut self, tree: &impl ProcessTree, out: &mut Vec<ListedProcess>) {
        self.followed.retain(|pid, it| tree.known(*pid).is_some_and(|known| known.began == it.began));
        let mut pending: Vec<u32> = self.followed.keys().copied().collect();
        while let Some(parent) = pending.pop() {
            for pid in tree.children(parent) {
                if self.followed.contains_key(&pid) || self.followed.len() >= MAX_FOLLOWED_PROCESSES {
                    continue;
                }
                if let Some(known) = tree.known(pid).filter(|known| !known.has_ended) {
                    self.follow_child(pid, FollowedProcess { began: known.began, parent });
                    pending.push(pid);
                }
            }
        }
        let listed = self.followed.iter();
        out.extend(listed.map(|(pid, it)| ListedProcess { pid: *pid, parent: it.parent, began: it.began }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes: the number, the parent, and when it was started. Those that began at 0 have ended.
    struct SimulatedProcesses(Vec<(u32, u32, u64)>);

    impl ProcessTree for SimulatedProcesses {
        fn known(&self, pid: u32) -> Option<ProcessStatus> {
            let (_, parent, began) = *self.0.iter().find(|process| process.0 == pid)?;
            let has_ended = began == 0;
            Some(ProcessStatus { began, parent, has_ended, has_64_bits: true, is_translated: false })
        }

        fn children(&self, pid: u32) -> Vec<u32> {
            self.0.iter().filter(|process| process.1 == pid).map(|process| process.0).collect()
        }
    }

    /// Each process has two children.
    struct EndlessProcesses;

    impl ProcessTree for EndlessProcesses {
        fn known(&self, pid: u32) -> Option<ProcessStatus> {
            let (began, parent) = (u64::from(pid), pid / 2);
            Some(ProcessStatus { began, parent, has_ended: false, has_64_bits: true, is_translated: false })
        }

        fn children(&self, pid: u32) -> Vec<u32> {
            vec![pid.wrapping_mul(2), pid.wrapping_mul(2).wrapping_add(1)]
        }
    }

    fn listed(listing: &mut ProcessListing, processes: &[(u32, u32, u64)]) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        listing.refresh(&SimulatedProcesses(processes.to_vec()), &mut out);
        let mut listed: Vec<_> = out.iter().map(|process| (process.pid, process.parent)).collect();
        listed.sort_unstable();
        listed
    }

    #[test]
    fn descendants_are_followed_without_the_parent() {
        let mut listing = ProcessListing::default();
        listing.follow(10, 5);
        let all = [(10, 1, 5), (20, 10, 6), (30, 20, 7), (40, 1, 8), (50, 10, 0)];
        assert_eq!(listed(&mut listing, &all), [(10, 0), (20, 10), (30, 20)]);
        // The process between has ended, and its child belongs to `launchd`.
        assert_eq!(listed(&mut listing, &[(10, 1, 5), (30, 1, 7)]), [(10, 0), (30, 20)]);
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let mut listing = ProcessListing::default();
        listing.follow(10, 5);
        assert_eq!(listed(&mut listing, &[(10, 1, 9)]), []);
    }

    #[test]
    fn parents_in_a_circle_and_endless_children_end() {
        let mut listing = ProcessListing::default();
        listing.follow(10, 5);
        assert_eq!(listed(&mut listing, &[(10, 20, 5), (20, 10, 6)]), [(10, 0), (20, 10)]);

        let (mut listing, mut out) = (ProcessListing::default(), Vec::new());
        listing.follow(1, 1);
        listing.refresh(&EndlessProcesses, &mut out);
        assert_eq!(out.len(), MAX_FOLLOWED_PROCESSES);
    }
}
