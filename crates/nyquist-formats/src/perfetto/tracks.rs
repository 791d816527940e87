//! The owners of the tracks of a trace, and the names of its processes and threads.

use nyquist_profile::ThreadIndex;
use rustc_hash::FxHashMap;

use super::message::{Process, ProcessTree, Thread, Track};
use super::texts::text;
use crate::import::{Importer, ThreadName};

/// The maximum nesting of tracks.
const MAX_DEPTH: usize = 16;

/// The processes, threads and tracks of a trace, which may come in any order.
#[derive(Default)]
pub(super) struct Tracks {
    processes: FxHashMap<i64, String>,
    threads: FxHashMap<(i64, i64), String>,
    /// The process of each thread, because some samples do not state it.
    owners: FxHashMap<i64, i64>,
    by_id: FxHashMap<u64, OneTrack>,
}

/// A track: its thread or process, and its parent track.
#[derive(Clone, Copy, Default)]
struct OneTrack {
    thread: Option<(i64, i64)>,
    process: Option<i64>,
    parent: u64,
}

impl Tracks {
    pub(super) fn add_tree(&mut self, tree: &ProcessTree) {
        for process in &tree.processes {
            self.name_process(process.pid.into(), process.command.first().map_or(&[], |it| it));
        }
        for thread in &tree.threads {
            self.name_thread(thread.pid.into(), thread.tid.into(), &thread.name);
        }
    }

    pub(super) fn add_process(&mut self, process: &Process) {
        let name = if process.name.is_empty() {
            process.command.first().map_or(&[][..], |it| it)
        } else {
            &process.name
        };
        self.name_process(process.pid.into(), name);
    }

    pub(super) fn add_thread(&mut self, thread: &Thread) {
        self.name_thread(thread.pid.into(), thread.tid, &thread.name);
    }

    pub(super) fn add(&mut self, track: &Track) {
        let thread = track.thread.as_ref();
        let known = self.by_id.entry(track.id).or_default();
        known.parent = track.parent;
        known.thread = thread.map(|thread| (thread.pid.into(), thread.tid)).or(known.thread);
        known.process = track.process.as_ref().map(|process| process.pid.into()).or(known.process);
        track.process.iter().for_each(|process| self.add_process(process));
        if let Some(thread) = thread {
            self.add_thread(thread);
        }
    }

    /// The last part of a path is a process's name.
    fn name_process(&mut self, pid: i64, name: &[u8]) {
        let name = text(name);
        let name = name.rsplit('/').next().unwrap_or_default();
        if !name.is_empty() {
            name.clone_into(self.processes.entry(pid).or_default());
        }
    }

    fn name_thread(&mut self, pid: i64, tid: i64, name: &[u8]) {
        if pid != 0 {
            self.owners.insert(tid, pid);
        }
        if !name.is_empty() {
            text(name).as_ref().clone_into(self.threads.entry((pid, tid)).or_default());
        }
    }

    /// The thread that a track belongs to, and whether it is that thread's own track. Tracks of processes,
    /// and tracks without an owner, are on the main thread.
    pub(super) fn owner(&self, id: u64) -> ((i64, i64), bool) {
        let mut next = id;
        for depth in 0..MAX_DEPTH {
            let track = self.by_id.get(&next).copied().unwrap_or_default();
            if let Some(thread) = track.thread {
                return (thread, depth == 0);
            }
            if let Some(pid) = track.process {
                return ((pid, pid), false);
            }
            if track.parent == 0 || track.parent == next {
                break;
            }
            next = track.parent;
        }
        ((0, 0), false)
    }

    /// The thread of these ids in the profile.
    pub(super) fn thread(&self, importer: &mut Importer, (pid, tid): (i64, i64)) -> ThreadIndex {
        let pid = if pid == 0 { self.owners.get(&tid).copied().unwrap_or(0) } else { pid };
        let process = self.processes.get(&pid).map_or("", String::as_str);
        let name = self.threads.get(&(pid, tid)).or_else(|| self.threads.get(&(0, tid)));
        let thread = name.map_or(process, String::as_str);
        let (pid, tid) = (pid.to_string(), tid.to_string());
        importer.thread(ThreadName { pid: &pid, process, tid: &tid, thread })
    }
}
