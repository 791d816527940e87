//! The recorded processes and their children, as the system lists them.

use std::collections::HashMap;

use crate::suspend::system::ListedProcess;

use super::sys::process;

/// The most processes that are followed.
const MOST_FOLLOWED: usize = 1 << 14;

/// The processes whose children are looked for. A process whose parent has ended belongs to `launchd`, so
/// children are found only while their parent lives.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// When each was started, and its parent if that is known.
    followed: HashMap<u32, Followed>,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    began: u64,
    parent: u32,
}

impl Listing {
    /// Follows a process from now on, whether or not it may be sampled.
    pub(crate) fn follow(&mut self, pid: u32, began: u64) {
        self.follow_child(pid, Followed { began, parent: 0 });
    }

    fn follow_child(&mut self, pid: u32, child: Followed) {
        if self.followed.len() < MOST_FOLLOWED {
            self.followed.entry(pid).or_insert(child);
        }
    }

    /// The followed processes that live, and their descendants, which are followed from now on.
    pub(crate) fn refresh(&mut self, out: &mut Vec<ListedProcess>) {
        self.followed.retain(|pid, it| process::known(*pid).is_some_and(|known| known.began == it.began));
        let mut pending: Vec<u32> = self.followed.keys().copied().collect();
        while let Some(parent) = pending.pop() {
            for pid in process::children(parent) {
                if self.followed.contains_key(&pid) {
                    continue;
                }
                if let Some(known) = process::known(pid).filter(|known| !known.has_ended) {
                    self.follow_child(pid, Followed { began: known.began, parent });
                    pending.push(pid);
                }
            }
        }
        let listed = self.followed.iter();
        out.extend(listed.map(|(pid, it)| ListedProcess { pid: *pid, parent: it.parent, began: it.began }));
    }
}
