//! The life cycle of traced threads: births, exec, signals, stops and ends. The thread stops at each until it
//! is resumed.

use nyquist_convert::event::{EventKind, Pid, Tid};

use super::restart::{Signals, only_epoll_descriptor, repeat_interrupted_call};
use super::stop::PtraceStop;
use super::tracee::{Activity, RestartedCall, Tracee};
use super::tracer::{TracedProcess, Tracer};
use crate::linux::arch::registers::{self, TracedRegisters};
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace::{self, WaitResult};
use crate::linux::thread_state::ScheduleStatistics;

impl Tracer {
    /// Handles a stopped or ended thread and resumes it. It is no error if the thread is gone meanwhile,
    /// because its end is reported separately.
    pub(super) fn handle(&mut self, waited: WaitResult) {
        let tid = waited.tid;
        let stop = PtraceStop::of(waited);
        if stop == PtraceStop::Ended {
            return self.end(tid);
        }
        if self.tasks.get(tid).is_none() {
            self.adopt(tid, None);
        }
        match stop {
            PtraceStop::Ended => {}
            PtraceStop::Trap => self.go_on(tid, None),
            PtraceStop::Group => self.after_group_stop(tid),
            PtraceStop::Signal(signal) => self.go_on(tid, Some(signal)),
            PtraceStop::Birth => {
                let child = ptrace::event_message(tid);
                self.go_on(tid, None);
                if let Ok(child) = child
                    && self.tasks.get(child).is_none()
                {
                    self.adopt(child, Some(tid));
                }
            }
            PtraceStop::Exec => self.exec(tid),
            PtraceStop::Exit => self.before_end(tid),
        }
    }

    /// Resumes a stopped thread with the signal that it stopped for. A thread with a pending stop request is
    /// sampled before: any stop fulfils the request for the kernel (`kernel/signal.c`, `ptrace_stop`).
    fn go_on(&mut self, tid: u32, signal: Option<i32>) {
        let task = self.tasks.get_mut(tid);
        let requested = task.and_then(|task| {
            task.has_stopped = false;
            task.requested.take()
        });
        match (requested, signal) {
            (Some(requested), _) => self.sample_stopped(tid, requested, signal),
            (None, Some(signal)) => self.deliver(tid, signal),
            (None, None) => {
                let _ = ptrace::resume(tid, 0);
            }
        }
    }

    /// A thread that job control has stopped stays stopped until SIGCONT.
    fn after_group_stop(&mut self, tid: u32) {
        if let Some(task) = self.tasks.get_mut(tid) {
            task.requested = None;
            task.has_stopped = true;
        }
        let _ = ptrace::listen(tid);
    }

    /// Delivers a signal to a thread. Without a tracer, a signal without effect would not have ended a system
    /// call.
    fn deliver(&mut self, tid: u32, signal: i32) {
        if let Ok(stopped) = TracedRegisters::read(tid)
            && stopped.interrupted_call().is_some()
        {
            let seen_waiting = self.tasks.get(tid).filter(|task| task.is_waiting()).map(|task| task.schedule);
            self.repeat_call(tid, stopped, Some(signal), (monotonic_ns(), seen_waiting));
        }
        let _ = ptrace::resume(tid, signal);
    }

    /// Makes a thread restart its system call if only the tracer has ended it. `before` contains the
    /// scheduler's statistics from when the thread was last seen outside of other stops.
    pub(super) fn repeat_call(
        &mut self,
        tid: u32,
        mut stopped: TracedRegisters,
        signal: Option<i32>,
        (now, before): (u64, Option<ScheduleStatistics>),
    ) {
        let Some(task) = self.tasks.get(tid) else { return };
        let Some(signals) = Signals::of(task.pid, tid) else { return };
        let does_nothing = signal.is_none_or(|signal| signals.ignores(signal));
        let schedule = task.files.schedule().unwrap_or_default();
        // Code that a handler has returned to can follow a call that this handler's signal has ended. But a
        // thread that got a CPU only once has been in no other stop, and has waited.
        let has_waited = || before.is_some_and(|before| schedule.turns == before.turns + 1);
        if !registers::SHOW_CALLS && !has_waited() {
            return;
        }
        let requested = stopped.fourth_argument();
        let waited = task.waited_in_call(schedule, requested, now);
        let was_shortened = task.repeated.is_some_and(|last| last.is_shortened && last.timeout == requested);
        let epoll = || only_epoll_descriptor(task.pid, tid);
        if !does_nothing || !repeat_interrupted_call(&mut stopped, &signals, waited, epoll) {
            return;
        }
        // If this fails, the program sees EINTR, which it must expect anyway.
        let _ = stopped.write(tid);
        if let Some(task) = self.tasks.get_mut(tid) {
            // Timeouts were shortened by whole milliseconds.
            let at = now.saturating_sub(waited % 1_000_000);
            let timeout = stopped.fourth_argument();
            let is_shortened = was_shortened || timeout != requested;
            task.repeated = Some(RestartedCall { at, schedule, timeout, is_shortened });
        }
    }

    /// Adds a thread that was born from a traced one.
    fn adopt(&mut self, tid: u32, parent: Option<u32>) {
        let Some(pid) = proc::status_number(tid, "Tgid") else { return };
        let parent_pid = parent.and_then(|parent| self.tasks.get(parent)).map(|parent| parent.pid);
        let parent_pid =
            if pid == tid { parent_pid.or_else(|| proc::status_number(tid, "PPid")) } else { Some(pid) };
        let parent_pid = parent_pid.unwrap_or(pid);
        let now = monotonic_ns();
        let mut task = Tracee::new(pid, tid, now);
        task.schedule = task.files.schedule().unwrap_or_default();
        self.tasks.add(task);
        if !self.processes.contains_key(&pid) {
            let maps = self.processes.get(&parent_pid).map(|parent| parent.maps.clone()).unwrap_or_default();
            self.processes.insert(pid, TracedProcess { maps, looked_at: now, ..TracedProcess::default() });
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

    /// Handles an exec. All other threads of the process are gone, and the one that called exec now has the
    /// pid as its thread id.
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
            task.requested = None;
        }
        self.privileges.note_exec(tid);
        self.report_exec(tid, now);
        let _ = ptrace::resume(tid, 0);
    }

    fn report_exec(&mut self, tid: u32, now: u64) {
        let name = std::fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned();
        if let Some(task) = self.tasks.get_mut(tid) {
            task.name.clone_from(&name);
        }
        self.out.push(now, EventKind::Name { pid: Pid(tid), tid: Tid(tid), name, exec: true });
        self.processes.insert(tid, TracedProcess { looked_at: now, ..TracedProcess::default() });
        self.refresh_maps(tid, true);
    }

    /// Handles a thread that is about to end: this is the last time that its process's memory can be read.
    fn before_end(&mut self, tid: u32) {
        let Some(task) = self.tasks.get_mut(tid) else {
            let _ = ptrace::resume(tid, 0);
            return;
        };
        let now = monotonic_ns();
        task.requested = None;
        let (pid, has_run) = (task.pid, task.has_run);
        if let Some(schedule) = task.files.schedule() {
            task.account(schedule, now);
        }
        self.report_waiting(tid, now);
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

    /// Handles the end of a thread. Its parent reaps it, or this process if it has launched it.
    fn end(&mut self, tid: u32) {
        let pid = self.tasks.get(tid).map_or(tid, |task| task.pid);
        self.forget(tid, monotonic_ns());
        // A main thread ends after all others. The end of one that had ended before the attach is not
        // reported.
        if self.live.contains(&pid) && !self.tasks.any_of(pid) {
            self.live.retain(|live| *live != pid);
            self.has_ended = self.live.is_empty();
        }
        if !self.target.is_child(tid) {
            ptrace::reap(tid);
        }
    }

    /// Records the final CPU time and the end of a thread.
    fn forget(&mut self, tid: u32, now: u64) {
        self.report_total(tid, now);
        self.count_last_hold(tid);
        let Some(task) = self.tasks.remove(tid) else { return };
        self.ended_cpu_ns += task.used_ns();
        self.out.push(now, EventKind::Exit { pid: Pid(task.pid), tid: Tid(tid) });
        if !self.tasks.any_of(task.pid) {
            self.processes.remove(&task.pid);
        }
    }

    /// Counts the last stop of a thread, which no other stop followed.
    pub(super) fn count_last_hold(&mut self, tid: u32) {
        if let Some(held) = self.tasks.get_mut(tid).and_then(|task| task.held.take()) {
            self.holds.add(held.at_most_ns);
        }
    }

    /// Records the CPU time of a thread.
    pub(super) fn report_total(&mut self, tid: u32, now: u64) {
        self.report_waiting(tid, now);
        let Some(task) = self.tasks.get_mut(tid) else { return };
        if let Some(schedule) = task.files.schedule() {
            task.account(schedule, now);
        }
        let kind = EventKind::Total { pid: Pid(task.pid), tid: Tid(tid), cpu_time_ns: task.used_ns() };
        self.out.push(now, kind);
    }
}
