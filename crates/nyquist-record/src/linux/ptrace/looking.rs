//! Looking at threads: at those that wait from outside, at those that run by holding them for a moment.

use bytes::Bytes;
use nyquist_convert::event::{EventKind, Pid, Sample, SampleState, Tid, UserStack, WaitReason};

use super::maps::Seen;
use super::task::{Activity, Asked, Held, Waited};
use super::tracer::{Process, Tracer};
use crate::linux::arch::registers::Stopped;
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace::{self, Patience};
use crate::linux::thread_state::{self, Call, Place, Schedule, Waiting};
use crate::linux::wait_reason::what_for;

/// The largest copy of a stack while its thread is held: 128 kB take some 20 µs.
const LARGEST_HELD_COPY: usize = 128 << 10;
/// What is read of a stack before its thread is asked to stop: most is gained by the first page.
const REHEARSED_COPY: usize = 4 << 10;
/// How many threads that wait are looked at in a turn.
const WAITING_LOOKS: usize = 32;
/// A turn that begins so late has waited for a CPU: whom it took it from is no longer a matter of chance.
const LATE_NS: u64 = 150_000;
/// Who runs stops within that time. Who does not has no CPU, and stops when it gets one.
const ANSWER_NS: u64 = 100_000;
/// For how long the scheduler mostly lets a thread run before others that want its CPU. A thread that has run for longer without
/// being seen to is seen where it has lost its CPU, unless that is in a system call, which may itself have been the reason.
const SLICE_NS: u64 = 2_000_000;
/// How many threads that do not stop at once are asked in a turn.
const MOST_UNANSWERED: usize = 3;
/// A thread that waits on and on has a sample so often.
const BETWEEN_WAITING_SAMPLES_NS: u64 = 100_000_000;

/// What came of the request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// None was made.
    NotAsked,
    /// The thread has stopped, and was looked at.
    Stopped,
    /// It has not stopped yet.
    None,
}

impl Tracer {
    /// Looks at threads in turn: at some of those that wait, and at as many of those that run as the budget allows.
    ///
    /// `by_clock` says that it was the clock that has woken the tracing thread. A thread that stops does so when it gets the CPU
    /// that another one has just left: where that one was preempted is no matter of chance.
    pub(super) fn look_at_all(&mut self, by_clock: bool) {
        let began = monotonic_ns();
        let in_time = began.saturating_sub(self.ticks.next_ns()) < LATE_NS;
        self.turn = (by_clock && in_time).then_some(began);
        let mut turn = std::mem::take(&mut self.tids);
        self.tasks.waiting_in_turn(WAITING_LOOKS, &mut turn);
        for tid in turn.drain(..) {
            self.look_at_waiting(tid);
        }
        self.budget.refill(monotonic_ns(), self.tasks.running());
        self.tasks.running_in_turn(&mut turn);
        if self.tasks.running() > 1 {
            // Nobody waits for a thread that has no CPU.
            self.ticker.set(monotonic_ns() + ANSWER_NS, ANSWER_NS);
        }
        let mut unanswered = 0;
        for tid in turn.drain(..) {
            let is_allowed = self.budget.allows();
            if !is_allowed {
                self.budget.cut_round();
            }
            if unanswered == MOST_UNANSWERED || !is_allowed {
                self.tasks.continue_with(tid);
                break;
            }
            unanswered += usize::from(self.look_at_running(tid) == Answer::None);
        }
        self.tids = turn;
    }

    /// A thread that has not run since is where it was.
    fn look_at_waiting(&mut self, tid: u32) {
        let now = monotonic_ns();
        let Some(task) = self.tasks.get_mut(tid) else { return };
        let Some(schedule) = task.files.schedule() else { return };
        if schedule == task.schedule {
            task.account(schedule, now);
            if task.waited_ns >= BETWEEN_WAITING_SAMPLES_NS {
                self.tell_waiting(tid, now);
            }
            return;
        }
        self.tell_waiting(tid, now);
        if let Some(task) = self.tasks.get_mut(tid) {
            task.account(schedule, now);
            task.activity = Activity::Running;
        }
        let _ = self.look_at_running(tid);
    }

    /// Says for how long a thread has waited where it waits.
    pub(super) fn tell_waiting(&mut self, tid: u32, now: u64) {
        let Some(task) = self.tasks.get_mut(tid) else { return };
        let Activity::Waiting(waited) = &task.activity else { return };
        let (waited_ns, reason) = (std::mem::take(&mut task.waited_ns), waited.reason);
        let state = SampleState::Waiting { waited_ns, reason };
        let user = waited.stack.clone();
        let sample = sample((task.pid, tid), true, state, task.used_ns(), user);
        let pid = task.pid;
        self.out.push(now, sample);
        self.note_sample(pid, None);
    }

    /// Looks at a thread that may have run: it is held where it still does. To hold one that waits for a CPU takes until it gets
    /// one, and says nothing of where time goes.
    fn look_at_running(&mut self, tid: u32) -> Answer {
        let Some(task) = self.tasks.get_mut(tid).filter(|task| task.asked.is_none()) else {
            return Answer::NotAsked;
        };
        let Some(schedule) = task.files.schedule().filter(|now| !task.awaits_cpu(*now)) else {
            return Answer::NotAsked;
        };
        task.has_run = true;
        match task.files.place() {
            Place::Running => return self.hold(tid, schedule),
            Place::Waiting(waiting) => self.begin_waiting(tid, &waiting),
            Place::Unknown => {}
        }
        Answer::NotAsked
    }

    /// Copies the stack of a thread that has begun to wait. Nothing is known of it if it has run meanwhile.
    fn begin_waiting(&mut self, tid: u32, waiting: &Waiting) {
        let now = monotonic_ns();
        let Some(before) = self.tasks.get(tid).and_then(|task| task.files.schedule()) else { return };
        let Some(pid) = self.tasks.get(tid).map(|task| task.pid) else { return };
        // The thread may have moved on between the look at its place and the one at its schedule.
        let still = self.tasks.get(tid).is_some_and(|task| task.files.place() == Place::Waiting(*waiting));
        if !still {
            return;
        }
        let stack = self.waiting_stack((pid, tid), waiting);
        let reason = self.wait_reason((pid, tid), waiting.call);
        let Some(task) = self.tasks.get_mut(tid) else { return };
        let after = task.files.schedule();
        task.account(before, now);
        if after == Some(before) {
            task.activity = Activity::Waiting(Waited { stack, since: now, reason });
            self.note_sample(pid, Some(waiting.instruction_pointer));
        }
    }

    /// What a thread waits for in a system call, if that is to be found out.
    fn wait_reason(&self, (pid, tid): (u32, u32), call: Option<Call>) -> Option<WaitReason> {
        self.wait_reasons.then(|| what_for(pid, tid, call).reason)
    }

    /// The stack of a thread that waits, as far as its registers and memory can be had without stopping it.
    fn waiting_stack(&mut self, (pid, tid): (u32, u32), waiting: &Waiting) -> UserStack {
        let (len, rest) = self.window(pid, waiting.stack_pointer, self.scratch.len());
        let room = self.scratch.get_mut(..len).unwrap_or_default();
        waiting.stack(tid, rest, room, || proc::has_32_bits(pid))
    }

    /// Asks a thread to stop, and looks at it when it has: at once where it runs, else when it gets a CPU.
    fn hold(&mut self, tid: u32, schedule: Schedule) -> Answer {
        self.prepare_room();
        self.warm_stack_pages(tid);
        let at = monotonic_ns();
        let Some(task) = self.tasks.get_mut(tid) else { return Answer::NotAsked };
        if ptrace::interrupt(tid).is_err() {
            return Answer::NotAsked;
        }
        task.asked = Some(Asked { at, turn: self.turn, schedule });
        let mut patience = self.alertness.begin();
        while self.tasks.get(tid).is_some_and(|task| task.asked.is_some()) && !self.has_ended {
            match ptrace::wait(patience) {
                Ok(Some(waited)) => self.handle(waited),
                Ok(None) if patience == Patience::None => {
                    patience = self.alertness.go_on(monotonic_ns().saturating_sub(at));
                }
                Ok(None) | Err(_) => return Answer::None,
            }
        }
        Answer::Stopped
    }

    /// Reads the stack of a thread that runs where it was when it was held the last time. That takes twice as long as to read it
    /// again at once: what the kernel needs for it and most of the words are in this processor's caches then.
    fn warm_stack_pages(&mut self, tid: u32) {
        let Some((pid, held)) = self.tasks.get(tid).and_then(|task| Some((task.pid, task.held?))) else {
            return;
        };
        let (window, _) = self.window(pid, held.stack_pointer, REHEARSED_COPY);
        let room = self.out.room().get_mut(..window).unwrap_or_default();
        ptrace::read_memory(tid, held.stack_pointer, room);
    }

    /// Copies the registers and the stack of a stopped thread, and lets it go on with the signal that it stopped for.
    pub(super) fn sample_stopped(&mut self, tid: u32, asked: Asked, signal: Option<i32>) {
        let noticed = monotonic_ns();
        let stopped = Stopped::read(tid).ok();
        let mut len = 0;
        let mut limited = false;
        let pid = self.tasks.get(tid).map(|task| task.pid).unwrap_or_default();
        if let Some(stopped) = stopped {
            let pointer = stopped.stack_pointer();
            let (window, rest) = self.window(pid, pointer, LARGEST_HELD_COPY);
            let room = self.out.room().get_mut(..window).unwrap_or_default();
            len = ptrace::read_memory(tid, pointer, room);
            limited = len == window && rest;
            if stopped.interrupted_call().is_some() {
                // Asked for while it ran, it has begun to wait just then.
                self.repeat_call(tid, stopped, signal, (asked.at, Some(asked.schedule)));
            }
        }
        let seen = self.see_where_files_go(pid);
        // As long as it is stopped, the scheduler's count is exact.
        let schedule = self.tasks.get(tid).and_then(|task| task.files.schedule());
        let _ = ptrace::resume(tid, signal.unwrap_or(0));
        let now = monotonic_ns();
        let schedule = schedule.unwrap_or(asked.schedule);
        let stack_pointer = stopped.map_or(0, |stopped| stopped.stack_pointer());
        let at_most_ns = asked.held_at_most_ns(schedule, noticed, now);
        self.budget.spend(at_most_ns, now.saturating_sub(noticed));
        let call = stopped.and_then(|stopped| stopped.call());
        let reason = call.and_then(|call| self.wait_reason((pid, tid), Some(call)));
        let Some(task) = self.tasks.get_mut(tid) else { return };
        if let Some(before) = task.held.replace(Held { noticed, schedule, at_most_ns, stack_pointer }) {
            self.holds.add(before.length_ns(noticed, schedule));
        }
        let Some(stopped) = stopped else { return };
        task.account(schedule, now);
        task.activity = Activity::Running;
        let waited_ns = std::mem::take(&mut task.waited_ns);
        let is_due = !stopped.is_in_call() && task.unseen_ns() > self.interval_ns.max(SLICE_NS);
        let state = if is_due || asked.ran(schedule, noticed) {
            task.note_seen();
            SampleState::Running { waited_ns }
        } else if stopped.is_in_call() {
            SampleState::Waiting { waited_ns, reason }
        } else {
            SampleState::Runnable { waited_ns }
        };
        let registers = Box::new(stopped.event_registers());
        let user = UserStack::Copied { registers, stack: Bytes::new(), limited };
        let sample = sample((pid, tid), false, state, task.used_ns(), user);
        // It was there when it had stopped: what is found to have changed later has changed since.
        self.out.push_sample(noticed, sample, len);
        match seen {
            Some(seen) => self.note_maps(pid, &seen),
            None => self.note_sample(pid, Some(stopped.instruction_pointer())),
        }
        self.prepare_room();
    }

    /// Makes room for the next stack, so that none is looked for while a thread is held.
    fn prepare_room(&mut self) {
        if !self.out.has_room(LARGEST_HELD_COPY) {
            self.send(monotonic_ns());
        }
        self.out.prepare();
    }

    /// How much of a stack to copy, and whether there is more: what is between its pointer and its end.
    fn window(&self, pid: u32, pointer: u64, most: usize) -> (usize, bool) {
        let stack = self.processes.get(&pid).and_then(|process| process.maps.stack(pointer));
        thread_state::window(stack, pointer, most.min(self.most_copied))
    }

    /// Looks at the mappings of a process while the thread that is sampled cannot change them, where libraries take each other's
    /// place: once it goes on, it may soon have another one where it was.
    fn see_where_files_go(&mut self, pid: u32) -> Option<Seen> {
        let watched = |process: &&mut Process| process.files_go && process.watched_until > monotonic_ns();
        Some(self.processes.get_mut(&pid).filter(watched)?.maps.look_if_touched(pid))
    }

    /// Notes that a process was sampled at an address. Code that is not known is looked for at once, for it may be gone soon.
    /// So are libraries that the callers may be in: at exec none is mapped, and at the next exec they are gone. The looks
    /// become rare as the process goes on.
    fn note_sample(&mut self, pid: u32, address: Option<u64>) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.has_samples = true;
        process.samples += 1;
        let is_known = address.is_none_or(|address| process.maps.has_code(address));
        if !is_known || process.samples.is_power_of_two() || process.watched_until > monotonic_ns() {
            self.refresh_maps(pid, !is_known);
        }
    }
}

fn sample(
    (pid, tid): (u32, u32),
    in_kernel: bool,
    state: SampleState,
    used_ns: u64,
    user: UserStack,
) -> EventKind {
    EventKind::Sample(Sample {
        pid: Pid(pid),
        tid: Tid(tid),
        in_kernel,
        state,
        period_ns: 0,
        cpu_time_ns: Some(used_ns),
        counts_anew: false,
        kernel_stack: Vec::new(),
        user,
    })
}
