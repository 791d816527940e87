//! Numbers of processes and threads in a pid namespace of their own: which ones they are in ours.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nyquist_convert::event::Pid;

/// How often `/proc` is gone through at each look: what programs write decides how often it would be.
const SEARCHES: u32 = 16;

/// Finds numbers.
#[derive(Debug)]
pub(super) struct Ids {
    /// The pid namespace of this process.
    own: Option<u64>,
    /// Processes that were found, by their own number and namespace.
    found: HashMap<(u32, u64), Pid>,
    /// Threads that were found in this look, by their process and their own number.
    threads: HashMap<(Pid, u32), u32>,
    searches: u32,
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Is(Pid),
    /// The process is gone, or was never there.
    No,
    /// Nobody has looked, for there was enough to look for.
    NotYet,
}

impl Ids {
    pub(super) fn new() -> Self {
        let own = namespace_of("self");
        Self { own, found: HashMap::new(), threads: HashMap::new(), searches: SEARCHES }
    }

    /// Another look begins.
    pub(super) fn begin_look(&mut self) {
        self.searches = SEARCHES;
        self.threads.clear();
    }

    /// Whether the numbers of a pid namespace are not ours.
    pub(super) fn is_foreign(&self, namespace: u64) -> bool {
        namespace != 0 && self.own != Some(namespace)
    }

    fn may_search(&mut self) -> bool {
        let may = self.searches > 0;
        self.searches = self.searches.saturating_sub(1);
        may
    }

    /// The process that calls itself `pid` in a pid namespace.
    pub(super) fn process(&mut self, pid: u32, namespace: u64) -> Known {
        if !self.is_foreign(namespace) {
            return Known::Is(Pid(pid));
        }
        let is_it = |ours: u32| {
            namespace_of(&ours.to_string()) == Some(namespace)
                && innermost(&format!("/proc/{ours}/status")) == Some(pid)
        };
        if let Some(found) = self.found.get(&(pid, namespace)).filter(|found| is_it(found.0)) {
            return Known::Is(*found);
        }
        if !self.may_search() {
            return Known::NotYet;
        }
        match numbers_in("/proc").find(|ours| is_it(*ours)) {
            Some(ours) => {
                self.found.insert((pid, namespace), Pid(ours));
                Known::Is(Pid(ours))
            }
            None => Known::No,
        }
    }

    /// The thread of `pid` that calls itself `tid`; that number itself where it is gone, or too many were asked for.
    pub(super) fn thread(&mut self, pid: Pid, tid: u32) -> u32 {
        if let Some(ours) = self.threads.get(&(pid, tid)) {
            return *ours;
        }
        if self.searches == 0 || self.own == namespace_of(&pid.0.to_string()) || !self.may_search() {
            return tid;
        }
        for ours in numbers_in(&format!("/proc/{}/task", pid.0)) {
            if let Some(inner) = innermost(&format!("/proc/{}/task/{ours}/status", pid.0)) {
                self.threads.insert((pid, inner), ours);
            }
        }
        self.threads.get(&(pid, tid)).copied().unwrap_or(tid)
    }
}

fn numbers_in(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn namespace_of(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/pid")).ok().map(|metadata| metadata.ino())
}

/// The last of the numbers of `NSpid:`, which is the process's own (proc_pid_status(5)).
fn innermost(status: &str) -> Option<u32> {
    let status = fs::read_to_string(status).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_our_own_namespace_stay_the_same() {
        let (mut ids, own) = (Ids::new(), namespace_of("self").unwrap_or_default());
        assert_eq!(ids.process(4711, own), Known::Is(Pid(4711)));
        assert_eq!(ids.process(4711, 0), Known::Is(Pid(4711)));
        assert_eq!(ids.process(4711, own ^ 1), Known::No);
        assert_eq!(ids.thread(Pid(std::process::id()), 17), 17);
        assert_eq!(innermost("/proc/self/status"), Some(std::process::id()));
    }

    #[test]
    fn searches_have_an_end() {
        let (mut ids, own) = (Ids::new(), namespace_of("self").unwrap_or_default());
        let answers: Vec<_> = (0..=SEARCHES).map(|pid| ids.process(pid, own ^ 1)).collect();
        let (last, first) = answers.split_last().unwrap();
        assert!(first.iter().all(|answer| *answer == Known::No));
        assert_eq!(*last, Known::NotYet);
        ids.begin_look();
        assert_eq!(ids.process(1, own ^ 1), Known::No);
    }
}
