//! Translates process and thread ids of another pid namespace into those of this process's namespace.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;

use nyquist_convert::ProcessFile;
use nyquist_convert::event::Pid;
use nyquist_system::read_kernel_text;

use crate::linux::sys::clock::monotonic_ns;
use crate::linux::{proc, target_access};

/// How many threads are looked at in each round. Without a limit, the content that programs write would determine it.
const MAX_THREADS_LOOKED_AT: u32 = 1024;

/// How many ids without a process are remembered.
const MAX_MISSED: usize = 4096;

/// The translation of ids.
#[derive(Debug)]
pub(in crate::linux) struct Ids {
    /// The pid namespace of this process.
    own: Option<u64>,
    /// Known processes, by their own id and namespace.
    found: HashMap<(u32, u64), Pid>,
    processes: ProcessList,
    /// When an id was searched for in vain for the first time.
    missed: HashMap<(u32, u64), u64>,
    /// Threads known in this round, by their process and their own id.
    threads: HashMap<(Pid, u32), u32>,
    /// How many threads may still be looked at in this round.
    threads_left: u32,
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linux) enum IdOwner {
    Is(Pid),
    /// The process is gone, or never existed.
    No,
    /// The processes were not listed since it was first searched for.
    NotYet,
}

impl Ids {
    pub(in crate::linux) fn new() -> Self {
        let own = own_namespace();
        let (found, processes) = (HashMap::new(), ProcessList::default());
        let (missed, threads) = (HashMap::new(), HashMap::new());
        Self { own, found, processes, missed, threads, threads_left: MAX_THREADS_LOOKED_AT }
    }

    /// Begins another round.
    pub(in crate::linux) fn begin_poll(&mut self) {
        self.threads_left = MAX_THREADS_LOOKED_AT;
        self.threads.clear();
    }

    /// Whether a pid namespace is not that of this process.
    pub(in crate::linux) fn is_foreign(&self, namespace: u64) -> bool {
        namespace != 0 && self.own != Some(namespace)
    }

    /// The process with the id `pid` in a pid namespace.
    pub(in crate::linux) fn process(&mut self, pid: u32, namespace: u64) -> IdOwner {
        if !self.is_foreign(namespace) {
            return IdOwner::Is(Pid(pid));
        }
        let id = (pid, namespace);
        let is_it = |ours: u32| innermost(ours, ours) == Some(pid) && namespace_of(ours) == Some(namespace);
        if let Some(found) = self.found.get(&id).filter(|found| is_it(found.0)) {
            return IdOwner::Is(*found);
        }
        if self.missed.len() >= MAX_MISSED {
            self.missed.clear();
        }
        let missed_at = *self.missed.entry(id).or_insert_with(monotonic_ns);
        self.processes.refresh(monotonic_ns());
        if let Some(ours) = self.processes.find(id) {
            self.missed.remove(&id);
            self.found.insert(id, Pid(ours));
            return IdOwner::Is(Pid(ours));
        }
        if self.processes.listed_at <= missed_at {
            return IdOwner::NotYet;
        }
        self.missed.remove(&id);
        IdOwner::No
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

    /// The thread of `pid` with its own id `tid`. Returns `tid` itself if the thread is gone, or if no more may be
    /// looked at.
    pub(in crate::linux) fn thread(&mut self, pid: Pid, tid: u32) -> u32 {
        if let Some(ours) = self.threads.get(&(pid, tid)) {
            return *ours;
        }
        if self.threads_left == 0 || self.own == namespace_of(pid.0) {
            return tid;
        }
        for ours in numbers_in(&format!("/proc/{}/task", pid.0)).take(self.threads_left as usize) {
            self.threads_left -= 1;
            if let Some(inner) = innermost(pid.0, ours) {
                self.threads.insert((pid, inner), ours);
            }
        }
        self.threads.get(&(pid, tid)).copied().unwrap_or(tid)
    }
}

/// All processes, by the id in their own pid namespace.
#[derive(Debug, Default)]
struct ProcessList {
    /// The processes with an id.
    by_id: HashMap<u32, Vec<u32>>,
    /// The namespaces that were looked up since.
    namespaces: HashMap<u32, Option<u64>>,
    listed_at: u64,
    /// From when on it may be listed again.
    due_at: u64,
}

impl ProcessList {
    /// Lists the processes, if that has not taken more than a twentieth of the time so far.
    fn refresh(&mut self, now: u64) {
        const PAUSE_PER_LISTING: u64 = 19;
        if now < self.due_at {
            return;
        }
        self.by_id.clear();
        self.namespaces.clear();
        for ours in numbers_in("/proc") {
            if let Some(id) = innermost(ours, ours) {
                self.by_id.entry(id).or_default().push(ours);
            }
        }
        // Who is born while they are listed may not be among them.
        self.listed_at = now;
        let done = monotonic_ns();
        self.due_at = done.saturating_add(done.saturating_sub(now).saturating_mul(PAUSE_PER_LISTING));
    }

    /// The process with an id in a namespace.
    fn find(&mut self, (pid, namespace): (u32, u64)) -> Option<u32> {
        let Self { by_id, namespaces, .. } = self;
        let mut of = |ours: u32| *namespaces.entry(ours).or_insert_with(|| namespace_of(ours));
        by_id.get(&pid)?.iter().copied().find(|ours| of(*ours) == Some(namespace))
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

/// The id of a thread in its own pid namespace: the last of `NSpid:` (proc_pid_status(5)).
fn innermost(pid: u32, tid: u32) -> Option<u32> {
    let status = read_kernel_text(format!("/proc/{pid}/task/{tid}/status")).ok()?;
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
        assert_eq!(innermost(std::process::id(), std::process::id()), Some(std::process::id()));
    }

    #[test]
    fn processes_are_listed_seldom() {
        let (mut ids, own) = (Ids::new(), namespace_of(std::process::id()).unwrap_or_default());
        assert_eq!(ids.process(u32::MAX, own ^ 1), IdOwner::No);
        let listed_at = ids.processes.listed_at;
        ids.processes.due_at = u64::MAX;
        for pid in 0..10_000 {
            assert_eq!(ids.process(pid, own ^ 1), IdOwner::NotYet, "it may have been born meanwhile");
        }
        assert!(ids.processes.listed_at == listed_at && ids.missed.len() <= MAX_MISSED);
        ids.processes.due_at = 0;
        assert_eq!(ids.process(9_999, own ^ 1), IdOwner::No);
        assert_eq!(ids.process(9_998, own ^ 1), IdOwner::No, "it was listed since");
    }

    #[test]
    fn a_process_of_a_namespace_is_found() {
        let pid = std::process::id();
        let mut list = ProcessList::default();
        list.refresh(monotonic_ns());
        let own = namespace_of(pid).unwrap();
        assert_eq!((list.find((pid, own)), list.find((pid, own ^ 1))), (Some(pid), None));
    }
}
