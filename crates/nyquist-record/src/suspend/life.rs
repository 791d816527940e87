//! The life of recorded processes and threads: which are new, and which have ended.

use std::collections::HashSet;

use nyquist_convert::event::{EventKind, Pid, Tid};

use super::cpu_clock::CpuClock;
use super::events::{fork, name, total};
use super::images::Images;
use super::made_code::MadeCode;
use super::process::SampledProcess;
use super::recorded_thread::RecordedThread;
use super::sampler::{MIN_LISTING_NS, Sampler};
use super::system::{ListedProcess, ListedThread, SamplingDenied, System};

/// The longest time between two listings, in nanoseconds.
const MAX_LISTING_NS: u64 = 100_000_000;
/// Listings may take one of this many parts of the time.
const PART_OF_LISTINGS: u64 = 20;
/// The most threads that are recorded.
const MAX_THREADS: usize = 1 << 16;

impl<S: System> Sampler<S> {
    /// Lists the machine's processes, and takes note of new and ended ones and of their threads.
    pub(super) fn list(&mut self, now: u64) {
        self.wants_listing = false;
        if self.list_processes(now) {
            let pids: Vec<u32> = self.processes.keys().copied().collect();
            for pid in pids {
                self.list_threads(pid, now);
            }
        }
        let spent = self.system.now().saturating_sub(now);
        let pause = (spent * PART_OF_LISTINGS).clamp(MIN_LISTING_NS, MAX_LISTING_NS);
        self.next_listing = now + pause;
    }

    /// Lists the machine's processes, and takes note of new and ended ones. Returns whether that was possible.
    pub(super) fn list_processes(&mut self, now: u64) -> bool {
        let mut listed = std::mem::take(&mut self.listed);
        listed.clear();
        let is_listed = self.system.list_processes(&mut listed);
        if is_listed {
            for process in self.family.update(&listed, self.plan.own_pid) {
                self.adopt(&process, now);
            }
            self.forget_ended(&listed, now);
            for process in self.refused.due(now, |pid| self.system.program_stamp(pid)) {
                self.adopt(&process, now);
            }
        }
        self.listed = listed;
        is_listed
    }

    /// Adds a process that a recorded one has started, or that was refused before.
    fn adopt(&mut self, listed: &ListedProcess, now: u64) {
        let (pid, parent) = (listed.pid, listed.parent);
        let process = match self.system.open_process(pid) {
            Ok(process) => process,
            Err(denied) => return self.note_refused(*listed, denied, now),
        };
        self.refused.remove(pid);
        let former = self.processes.insert(pid, SampledProcess::new(process));
        if self.has_begun {
            if former.is_none() {
                self.out.push(now, fork((pid, pid), (parent, parent)));
            }
            self.describe(pid, now, true);
        }
    }

    fn note_refused(&mut self, listed: ListedProcess, denied: SamplingDenied, now: u64) {
        let stamp = self.system.program_stamp(listed.pid);
        self.refused.note(listed, denied, stamp, now);
    }

    /// Ends the threads of a process that executes a program that may not be sampled.
    fn refuse(&mut self, pid: u32, denied: SamplingDenied, now: u64) {
        for task in self.tasks.remove(|task| task.pid == pid) {
            self.end(task, now);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            (process.is_refused, process.has_samples) = (true, false);
        }
        if let Some(listed) = self.listed.iter().find(|listed| listed.pid == pid).copied() {
            self.note_refused(listed, denied, now);
        }
    }

    /// Records the names and the images of the processes that are there at the beginning.
    pub(super) fn describe_all(&mut self, now: u64) {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            let is_new = self.plan.is_new && self.plan.pids.contains(&pid);
            self.describe(pid, now, is_new);
        }
    }

    fn describe(&mut self, pid: u32, now: u64, is_new: bool) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if let Some(program) = self.system.process_name(&process.handle) {
            self.out.push(now, name((pid, pid), program, is_new));
        }
        process.images.looked_at = now;
        self.refresh_images(pid, now);
    }

    /// Ends the processes that are not listed any more. Their numbers may be those of other processes.
    fn forget_ended(&mut self, listed: &[ListedProcess], now: u64) {
        let live: HashSet<u32> =
            listed.iter().filter(|process| self.family.has(process)).map(|process| process.pid).collect();
        self.refused.keep(&live);
        let is_gone = |pid: &u32| !live.contains(pid);
        let gone: Vec<u32> = self.processes.keys().copied().filter(is_gone).collect();
        for pid in gone {
            for task in self.tasks.remove(|task| task.pid == pid) {
                self.end(task, now);
            }
            if !self.plan.pids.contains(&pid) {
                self.processes.remove(&pid);
            } else if let Some(process) = self.processes.get_mut(&pid) {
                process.has_samples = false;
            }
        }
    }

    fn list_threads(&mut self, pid: u32, now: u64) {
        let Some(process) = self.processes.get(&pid).filter(|process| !process.is_refused) else { return };
        let mut listed = std::mem::take(&mut self.listed_threads);
        listed.clear();
        self.system.list_threads(pid, &process.handle, &mut listed);
        let carried_ns = match self.system.has_new_program(&process.handle) {
            Ok(true) => self.leave_program(pid, now),
            Ok(false) => 0,
            Err(denied) => {
                self.refuse(pid, denied, now);
                self.listed_threads = listed;
                return;
            }
        };
        let live: HashSet<u32> = listed.iter().map(|thread| thread.tid).collect();
        for task in self.tasks.remove(|task| task.pid == pid && !live.contains(&task.tid)) {
            self.end(task, now);
        }
        let known: HashSet<u32> =
            self.tasks.all().iter().filter(|task| task.pid == pid).map(|task| task.tid).collect();
        let has_main = self.tasks.all().iter().any(|task| task.shown_tid == pid && task.pid == pid);
        let oldest = listed.iter().min_by_key(|thread| thread.began).map(|thread| thread.tid);
        for thread in listed.iter().filter(|thread| !known.contains(&thread.tid)) {
            let is_main = !has_main && known.is_empty() && oldest == Some(thread.tid);
            self.begin(pid, thread, is_main.then_some(carried_ns), now);
        }
        self.note_turns(pid, &listed);
        self.listed_threads = listed;
    }

    /// A process executes another program: its threads have ended, and its images are new. The main thread goes
    /// on under its number. Returns the CPU time that it has used so far.
    fn leave_program(&mut self, pid: u32, now: u64) -> u64 {
        let mut carried_ns = 0;
        for mut task in self.tasks.remove(|task| task.pid == pid) {
            if task.shown_tid == pid {
                self.report_waiting(&mut task, now);
                carried_ns = task.clock.used_ns();
            } else {
                self.end(task, now);
            }
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            (process.images, process.made_code) = (Images::default(), MadeCode::default());
            process.calls.clear();
        }
        self.describe(pid, now, true);
        carried_ns
    }

    /// Adds a thread. Of the main thread, the CPU time is given that it has used in earlier programs.
    fn begin(&mut self, pid: u32, listed: &ListedThread, main: Option<u64>, now: u64) {
        if self.tasks.all().len() >= MAX_THREADS {
            return;
        }
        let Some(process) = self.processes.get(&pid) else { return };
        let Some(thread) = self.system.open_thread(&process.handle, listed.tid) else { return };
        let used = self.system.cpu_time_ns(&thread).unwrap_or_default();
        // What has begun since the last listing is recorded from its beginning on.
        let is_born = self.has_begun || self.plan.is_new;
        let base = if is_born { 0 } else { used };
        let clock = CpuClock::new(self.system.cpu_clock_step_ns(), base);
        let clock = clock.carrying(main.unwrap_or_default());
        let mut task = RecordedThread::new((pid, listed.tid), thread, clock, now);
        task.sampled_ns = task.clock.used_ns();
        if main.is_some() {
            task.shown_tid = pid;
        } else if self.has_begun {
            self.out.push(now, fork((pid, listed.tid), (pid, pid)));
        }
        task.turns = listed.turns;
        self.tasks.add(task);
    }

    /// Notes which threads have got a CPU since the last listing, if the system provides that.
    fn note_turns(&mut self, pid: u32, listed: &[ListedThread]) {
        let turns: std::collections::HashMap<u32, &ListedThread> =
            listed.iter().map(|thread| (thread.tid, thread)).collect();
        for task in self.tasks.all_mut().iter_mut().filter(|task| task.pid == pid) {
            let Some(thread) = turns.get(&task.tid) else { continue };
            task.is_due |= thread.is_active && thread.turns != task.turns;
            task.turns = thread.turns;
        }
    }

    /// Records the end of a thread. Its CPU time is still known.
    fn end(&mut self, task: RecordedThread<S::Thread>, now: u64) {
        let (pid, tid) = (task.pid, task.shown_tid);
        self.report_total(task, now);
        self.out.push(now, EventKind::Exit { pid: Pid(pid), tid: Tid(tid) });
    }

    /// Records the CPU time of a thread that is not recorded any more.
    pub(super) fn report_total(&mut self, mut task: RecordedThread<S::Thread>, now: u64) {
        if let Some(read) = self.system.cpu_time_ns(&task.thread) {
            task.account(read, 0, now);
        }
        self.report_waiting(&mut task, now);
        self.ended_cpu_ns += task.clock.used_ns();
        self.out.push(now, total((task.pid, task.shown_tid), task.clock.used_ns()));
    }
}
