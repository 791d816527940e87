//! Translates process and thread ids of another pid namespace into those of this process's namespace.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;

use nyquist_convert::ProcessFile;
use nyquist_convert::event::Pid;
use nyquist_system::read_kernel_text;

use crate::linux::{proc, target_access};

/// How often `/proc` is searched in each round. Without a limit, the content that programs write would
/// determine it.
const SEARCHES: u32 = 16;

/// The translation of ids.
#[derive(Debug)]
pub(in crate::linux) struct Ids {
    /// The pid namespace of this process.
    own: Option<u64>,
    /// Known processes, by their own id and namespace.
    found: HashMap<(u32, u64), Pid>,
    /// Threads known in this round, by their process and their own id.
    threads: HashMap<(Pid, u32), u32>,
    searches: u32,
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linux) enum IdOwner {
    Is(Pid),
    /// The process is gone, or never existed.
    No,
    /// It was not searched for, because the search limit was reached.
    NotYet,
}

impl Ids {
    pub(in crate::linux) fn new() -> Self {
        let own = own_namespace();
        Self { own, found: HashMap::new(), threads: HashMap::new(), searches: SEARCHES }
    }

    /// Begins another round.
    pub(in crate::linux) fn begin_poll(&mut self) {
        self.searches = SEARCHES;
        self.threads.clear();
    }

    /// Whether a pid namespace is not that of this process.
    pub(in crate::linux) fn is_foreign(&self, namespace: u64) -> bool {
        namespace != 0 && self.own != Some(namespace)
    }

    fn may_search(&mut self) -> bool {
        let may = self.searches > 0;
        self.searches = self.searches.saturating_sub(1);
        may
    }

    /// The process with the id `pid` in a pid namespace.
    pub(in crate::linux) fn process(&mut self, pid: u32, namespace: u64) -> IdOwner {
        if !self.is_foreign(namespace) {
            return IdOwner::Is(Pid(pid));
        }
        let is_it = |ours: u32| {
            innermost(&format!("/proc/{ours}/status")) == Some(pid) && namespace_of(ours) == Some(namespace)
        };
        if let Some(found) = self.found.get(&(pid, namespace)).filter(|found| is_it(found.0)) {
            return IdOwner::Is(*found);
        }
        if !self.may_search() {
            return IdOwner::NotYet;
        }
        match numbers_in("/proc").find(|ours| is_it(*ours)) {
            Some(ours) => {
                self.found.insert((pid, namespace), Pid(ours));
                IdOwner::Is(Pid(ours))
            }
            None => IdOwner::No,
        }
    }

    /// The process that has written its own id and namespace into a file, if it has the rights of the file's owner.
    /// Root may have given up its rights since.
    pub(in crate::linux) fn writer(&mut self, file: &File, (pid, namespace): (u32, u64)) -> IdOwner {
        let found = self.process(pid, namespace);
        let IdOwner::Is(pid) = found else { return found };
        match file.metadata().map(|metadata| metadata.uid()) {
            Ok(owner) if owner == 0 || proc::may_be_users(pid.0, owner) => found,
            Ok(_) => IdOwner::No,
            Err(_) => IdOwner::NotYet,
        }
    }

    /// The thread of `pid` with its own id `tid`. Returns `tid` itself if the thread is gone, or if the
    /// search limit was reached.
    pub(in crate::linux) fn thread(&mut self, pid: Pid, tid: u32) -> u32 {
        if let Some(ours) = self.threads.get(&(pid, tid)) {
            return *ours;
        }
        if self.searches == 0 || self.own == namespace_of(pid.0) || !self.may_search() {
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

fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino())
}

/// The pid namespace of a process: the number in the link `pid:[NUMBER]`.
fn namespace_of(pid: u32) -> Option<u64> {
    let link = target_access::process_file(pid, None, ProcessFile::PidNamespace).ok()?;
    std::str::from_utf8(&link).ok()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// The last of the ids in `NSpid:`, which is the one in the process's own namespace (proc_pid_status(5)).
fn innermost(status: &str) -> Option<u32> {
    let status = read_kernel_text(status).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_our_own_namespace_stay_the_same() {
        let (mut ids, own) = (Ids::new(), namespace_of(std::process::id()).unwrap_or_default());
        assert_eq!(ids.process(4711, own), IdOwner::Is(Pid(4711)));
        assert_eq!(ids.process(4711, 0), IdOwner::Is(Pid(4711)));
        assert_eq!(ids.process(4711, own ^ 1), IdOwner::No);
        assert_eq!(ids.thread(Pid(std::process::id()), 17), 17);
        assert_eq!(innermost("/proc/self/status"), Some(std::process::id()));
    }

    #[test]
    fn searches_have_an_end() {
        let (mut ids, own) = (Ids::new(), namespace_of(std::process::id()).unwrap_or_default());
        let answers: Vec<_> = (0..=SEARCHES).map(|pid| ids.process(pid, own ^ 1)).collect();
        let (last, first) = answers.split_last().unwrap();
        assert!(first.iter().all(|answer| *answer == IdOwner::No));
        assert_eq!(*last, IdOwner::NotYet);
        ids.begin_poll();
        assert_eq!(ids.process(1, own ^ 1), IdOwner::No);
    }
}
