//! What happens to traced threads: births, exec, signals, stops and ends, each of which they wait to be let go from.

use nyquist_convert::event::{EventKind, Pid, Tid};

use super::restart::{Signals, only_epoll_descriptor, repeat_interrupted_call};
use super::stop::Stop;
use super::task::{Activity, Repeated, Task};
use super::tracer::{Process, Tracer};
use crate::linux::arch::registers::{self, Stopped};
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace::{self, Waited};
use crate::linux::thread_state::Schedule;

impl Tracer {
    /// Does what there is to do about a stopped or ended thread, and lets it go on. That it is gone meanwhile is no
    /// error: its end will be heard of.
    pub(super) fn handle(&mut self, waited: Waited) {
        let tid = waited.tid;
        let stop = Stop::of(waited);
        if stop == Stop::Ended {
            return self.end(tid);
        }
        if self.tasks.get(tid).is_none() {
            self.adopt(tid, None);
        }
        match stop {
            Stop::Ended => {}
            Stop::Trap => self.go_on(tid, None),
            Stop::Group => self.after_group_stop(tid),
            Stop::Signal(signal) => self.go_on(tid, Some(signal)),
            Stop::Birth => {
                let child = ptrace::event_message(tid);
                self.go_on(tid, None);
                if let Ok(child) = child
                    && self.tasks.get(child).is_none()
                {
                    self.adopt(child, Some(tid));
                }
            }
            Stop::Exec => self.exec(tid),
            Stop::Exit => self.before_end(tid),
        }
    }

    /// Lets a stopped thread go on, with the signal that it stopped for. One that was asked to stop is looked at before:
    /// whatever it has stopped for, the kernel takes the request for met (`kernel/signal.c`, `ptrace_stop`).
    fn go_on(&mut self, tid: u32, signal: Option<i32>) {
        let task = self.tasks.get_mut(tid);
        let asked = task.and_then(|task| {
            task.has_stopped = false;
            task.asked.take()
        });
        match (asked, signal) {
            (Some(asked), _) => self.sample_stopped(tid, asked, signal),
            (None, Some(signal)) => self.deliver(tid, signal),
            (None, None) => {
                let _ = ptrace::resume(tid, 0);
            }
        }
    }

    /// A thread that job control has stopped stays so until SIGCONT.
    fn after_group_stop(&mut self, tid: u32) {
        if let Some(task) = self.tasks.get_mut(tid) {
            task.asked = None;
            task.has_stopped = true;
        }
        let _ = ptrace::listen(tid);
    }

    /// Lets a thread have its signal. One that does nothing would not have ended a system call without a tracer.
    fn deliver(&mut self, tid: u32, signal: i32) {
        if let Ok(stopped) = Stopped::read(tid)
            && stopped.interrupted_call().is_some()
        {
            let seen_waiting = self.tasks.get(tid).filter(|task| task.is_waiting()).map(|task| task.schedule);
            self.repeat_call(tid, stopped, Some(signal), (monotonic_ns(), seen_waiting));
        }
        let _ = ptrace::resume(tid, signal);
    }

    /// Makes a thread call the system again where nothing but the tracer has ended its call. `before` is what the scheduler said when
    /// the thread was last seen outside of other stops.
    pub(super) fn repeat_call(
        &mut self,
        tid: u32,
        mut stopped: Stopped,
        signal: Option<i32>,
        (now, before): (u64, Option<Schedule>),
    ) {
        let Some(task) = self.tasks.get(tid) else { return };
        let Some(signals) = Signals::of(task.pid, tid) else { return };
        let does_nothing = signal.is_none_or(|signal| signals.ignores(signal));
        let schedule = task.files.schedule().unwrap_or_default();
        // Code that a handler has returned to can be behind a call that was ended by that handler's signal. But whoever got a CPU just
        // once has been in no other stop, and has waited.
        let has_waited = || before.is_some_and(|before| schedule.turns == before.turns + 1);
        if !registers::TELL_CALLS && !has_waited() {
            return;
        }
        let asked = stopped.fourth_argument();
        let waited = task.waited_in_call(schedule, asked, now);
        let was_shortened = task.repeated.is_some_and(|last| last.is_shortened && last.timeout == asked);
        let epoll = || only_epoll_descriptor(task.pid, tid);
        if !does_nothing || !repeat_interrupted_call(&mut stopped, &signals, waited, epoll) {
            return;
        }
        // Where this fails the program sees EINTR, which it must expect anyway.
        let _ = stopped.write(tid);
        if let Some(task) = self.tasks.get_mut(tid) {
            // Timeouts were made shorter by whole milliseconds.
            let at = now.saturating_sub(waited % 1_000_000);
            let timeout = stopped.fourth_argument();
            let is_shortened = was_shortened || timeout != asked;
            task.repeated = Some(Repeated { at, schedule, timeout, is_shortened });
        }
    }

    /// A thread is there that was born from a traced one.
    fn adopt(&mut self, tid: u32, parent: Option<u32>) {
        let Some(pid) = proc::status_number(tid, "Tgid") else { return };
        let parent_pid = parent.and_then(|parent| self.tasks.get(parent)).map(|parent| parent.pid);
        let parent_pid =
            if pid == tid { parent_pid.or_else(|| proc::status_number(tid, "PPid")) } else { Some(pid) };
        let parent_pid = parent_pid.unwrap_or(pid);
        let now = monotonic_ns();
        let mut task = Task::new(pid, tid, now);
        task.schedule = task.files.schedule().unwrap_or_default();
        self.tasks.add(task);
        if !self.processes.contains_key(&pid) {
            let maps = self.processes.get(&parent_pid).map(|parent| parent.maps.clone()).unwrap_or_default();
            self.processes.insert(pid, Process { maps, looked_at: now, ..Process::default() });
        }
        let parent_tid = parent.unwrap_or(parent_pid);
        self.out.push(
            now,
            EventKind::Fork {
                pid: Pid(pid),
                tid: Tid(tid),
                parent_pid: Pid(parent_pid),
                parent_tid: Tid(parent_tid),
            },
        );
    }

    /// A process has become another program. All of its other threads are gone, and the one that has called exec has
    /// the process's number now.
    fn exec(&mut self, tid: u32) {
        ptrace::take_stop(tid);
        let former = ptrace::event_message(tid).unwrap_or(tid);
        let now = monotonic_ns();
        let used_as_former =
            self.tasks.get(former).filter(|_| former != tid).map(|task| task.schedule.cpu_ns);
        if former != tid {
            self.forget(former, now);
            self.count_last_hold(tid);
        }
        let is_launched = self.target.is_child(tid) && std::mem::take(&mut self.awaits_exec);
        if let Some(task) = self.tasks.get_mut(tid) {
            if is_launched {
                task.start_counting();
            } else if let Some(used) = used_as_former {
                task.become_thread(used);
            }
            let schedule = task.files.schedule().unwrap_or(task.schedule);
            task.account(schedule, now);
            task.activity = Activity::Running;
            task.waited_ns = 0;
            task.asked = None;
        }
        self.privileges.note_exec(tid);
        self.tell_exec(tid, now);
        let _ = ptrace::resume(tid, 0);
    }

    fn tell_exec(&mut self, tid: u32, now: u64) {
        let name = std::fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned();
        if let Some(task) = self.tasks.get_mut(tid) {
            task.name.clone_from(&name);
        }
        self.out.push(now, EventKind::Name { pid: Pid(tid), tid: Tid(tid), name, exec: true });
        self.processes.insert(tid, Process { looked_at: now, ..Process::default() });
        self.refresh_maps(tid, true);
    }

    /// A thread is about to end: its process's memory can be looked at for the last time.
    fn before_end(&mut self, tid: u32) {
        let Some(task) = self.tasks.get_mut(tid) else {
            let _ = ptrace::resume(tid, 0);
            return;
        };
        let now = monotonic_ns();
        task.asked = None;
        let (pid, has_run) = (task.pid, task.has_run);
        if let Some(schedule) = task.files.schedule() {
            task.account(schedule, now);
        }
        self.tell_waiting(tid, now);
        if let Some(task) = self.tasks.get_mut(tid) {
            task.activity = Activity::Aside;
        }
        if has_run {
            self.refresh_name(tid, now);
        }
        if self.processes.get(&pid).is_some_and(|process| process.has_samples) {
            self.refresh_maps(pid, false);
        }
        let _ = ptrace::resume(tid, 0);
    }

    /// A thread has ended. Its status is for its parent, and for us where we have launched it.
    fn end(&mut self, tid: u32) {
        let pid = self.tasks.get(tid).map_or(tid, |task| task.pid);
        self.forget(tid, monotonic_ns());
        // A main thread ends when all others have. One that had ended before it was attached to is not heard of.
        if self.living.contains(&pid) && !self.tasks.any_of(pid) {
            self.living.retain(|living| *living != pid);
            self.has_ended = self.living.is_empty();
        }
        if !self.target.is_child(tid) {
            ptrace::reap(tid);
        }
    }

    /// Says what a thread has used in the end, and that it is no more.
    fn forget(&mut self, tid: u32, now: u64) {
        self.tell_total(tid, now);
        self.count_last_hold(tid);
        let Some(task) = self.tasks.remove(tid) else { return };
        self.ended_cpu_ns += task.used_ns();
        self.out.push(now, EventKind::Exit { pid: Pid(task.pid), tid: Tid(tid) });
        if !self.tasks.any_of(task.pid) {
            self.processes.remove(&task.pid);
        }
    }

    /// Counts a hold after which the thread was not held again.
    pub(super) fn count_last_hold(&mut self, tid: u32) {
        if let Some(held) = self.tasks.get_mut(tid).and_then(|task| task.held.take()) {
            self.holds.add(held.at_most_ns);
        }
    }

    /// Says what a thread has used.
    pub(super) fn tell_total(&mut self, tid: u32, now: u64) {
        self.tell_waiting(tid, now);
        let Some(task) = self.tasks.get_mut(tid) else { return };
        if let Some(schedule) = task.files.schedule() {
            task.account(schedule, now);
        }
        let kind = EventKind::Total { pid: Pid(task.pid), tid: Tid(tid), cpu_time_ns: task.used_ns() };
        self.out.push(now, kind);
    }
}
