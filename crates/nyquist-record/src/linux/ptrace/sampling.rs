//! Sampling threads: waiting ones without stopping them, running ones by a short stop.

use bytes::Bytes;
use nyquist_convert::event::{EventKind, Pid, Sample, SampleState, Tid, UserStack};

use super::interrupted_stack::InterruptedStack;
use super::maps::MapsReading;
use super::tracee::{Activity, SampleStop, StopRequest, WaitState};
use super::tracer::{TracedProcess, Tracer};
use crate::linux::arch::registers::TracedRegisters;
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace::{self, WaitMode};
use crate::linux::thread_state::{self, KernelWait, RunState, ScheduleStatistics};
use crate::linux::wait_reason::{cause_of_wait, what_for};

/// The largest stack copy while the thread is stopped: 128 kB take some 20 µs.
const MAX_HELD_COPY_BYTES: usize = 128 << 10;
/// How much of a stack is read before its thread is requested to stop: the first page has most of the benefit.
const PREFETCHED_COPY: usize = 4 << 10;
/// How many waiting threads are checked in a turn.
const MAX_WAITING_THREADS: usize = 32;
/// A turn that begins this late has waited for a CPU. Which thread it took the CPU from is then no longer
/// random.
const LATE_NS: u64 = 150_000;
/// A running thread stops within this time. A thread that is not running has no CPU, and stops when it gets
/// one.
const STOP_NS: u64 = 100_000;
/// How long the scheduler usually lets a thread run before others that want its CPU. A thread that has run
/// for longer without a sample is sampled where it has lost its CPU. The exception is a system call, which
/// may itself have been the reason for the loss.
const SLICE_NS: u64 = 2_000_000;
/// The maximum number of stop requests in a turn to threads that do not stop at once.
const MAX_STILL_RUNNING_THREADS: usize = 3;
/// How often a thread that waits continuously has a sample.
const BETWEEN_WAITING_SAMPLES_NS: u64 = 100_000_000;

/// The result of a stop request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopOutcome {
    /// No request was made.
    NotRequested,
    /// The thread has stopped and was sampled.
    Stopped,
    /// It has not stopped yet.
    StillRunning,
}

/// What was read of a thread while it was stopped. Its stack is in the buffer for the next sample.
struct CopiedStop {
    /// `None` if they could not be read.
    registers: Option<TracedRegisters>,
    /// The size of the stack copy in bytes.
    len: usize,
    /// Whether the stack is larger than its copy.
    limited: bool,
    /// The stack that a handler on another stack has interrupted, if it was read.
    interrupted: Option<InterruptedStack>,
    /// The process's mappings, if they were read.
    seen: Option<MapsReading>,
    schedule: ScheduleStatistics,
}

impl Tracer {
    /// Samples threads in turn: some of the waiting ones, and as many of the running ones as the budget
    /// allows.
    ///
    /// `by_clock` is whether the clock has woken the tracing thread. Otherwise, a thread has stopped, which
    /// happens when it gets the CPU that another one has just left. Where that other thread was preempted is
    /// not random.
    pub(super) fn sample_all(&mut self, by_clock: bool) {
        let began = monotonic_ns();
        let in_time = began.saturating_sub(self.ticks.next_ns()) < LATE_NS;
        self.turn = (by_clock && in_time).then_some(began);
        let mut turn = std::mem::take(&mut self.tids);
        self.tasks.waiting_in_turn(MAX_WAITING_THREADS, &mut turn);
        for tid in turn.drain(..) {
            self.sample_waiting(tid);
        }
        self.budget.begin_round(monotonic_ns(), self.tasks.running());
        self.tasks.running_in_turn(&mut turn);
        if self.tasks.running() > 1 {
            // Does not wait for a thread that has no CPU.
            self.ticker.set(monotonic_ns() + STOP_NS, STOP_NS);
        }
        let mut still_running = 0;
        for tid in turn.drain(..) {
            let is_allowed = self.budget.allows();
            if !is_allowed {
                self.budget.cut_round();
            }
            if still_running == MAX_STILL_RUNNING_THREADS || !is_allowed {
                self.tasks.continue_with(tid);
                break;
            }
            still_running += usize::from(self.sample_running(tid) == StopOutcome::StillRunning);
        }
        self.tids = turn;
    }

    /// A thread that has not run since is still in the same place.
    fn sample_waiting(&mut self, tid: u32) {
        let now = monotonic_ns();
        let Some(task) = self.tasks.get_mut(tid) else { return };
        let Some(schedule) = task.files.schedule() else { return };
        if schedule == task.schedule {
            task.account(schedule, now);
            if task.waited_ns >= BETWEEN_WAITING_SAMPLES_NS {
                self.report_waiting(tid, now);
            }
            return;
        }
        self.report_waiting(tid, now);
        if let Some(task) = self.tasks.get_mut(tid) {
            task.account(schedule, now);
            task.activity = Activity::Running;
        }
        let _ = self.sample_running(tid);
    }

    /// Records how long a thread has waited in its current place.
    pub(super) fn report_waiting(&mut self, tid: u32, now: u64) {
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

    /// Samples a thread that may have run; stops it if it is still running. It does not stop a thread that
    /// waits for a CPU: the stop would last until the thread gets one, and the sample would not show where
    /// time goes.
    fn sample_running(&mut self, tid: u32) -> StopOutcome {
        let Some(task) = self.tasks.get_mut(tid).filter(|task| task.requested.is_none()) else {
            return StopOutcome::NotRequested;
        };
        let Some(schedule) = task.files.schedule().filter(|now| !task.awaits_cpu(*now)) else {
            return StopOutcome::NotRequested;
        };
        task.has_run = true;
        match task.files.run_state() {
            RunState::Running => return self.hold(tid, schedule),
            RunState::Waiting(waiting) => self.begin_waiting(tid, &waiting),
            RunState::Unknown => {}
        }
        StopOutcome::NotRequested
    }

    /// Copies the stack of a thread that has begun to wait. Drops the copy if the thread has run meanwhile.
    fn begin_waiting(&mut self, tid: u32, waiting: &KernelWait) {
        let now = monotonic_ns();
        let Some(before) = self.tasks.get(tid).and_then(|task| task.files.schedule()) else { return };
        let Some(pid) = self.tasks.get(tid).map(|task| task.pid) else { return };
        // The thread may have moved on between the reading of its place and that of its schedule.
        let still =
            self.tasks.get(tid).is_some_and(|task| task.files.run_state() == RunState::Waiting(*waiting));
        if !still {
            return;
        }
        let stack = self.waiting_stack((pid, tid), waiting);
        let reason = self.wait_reasons.then(|| cause_of_wait(pid, tid, waiting.call).reason);
        let Some(task) = self.tasks.get_mut(tid) else { return };
        let after = task.files.schedule();
        task.account(before, now);
        if after == Some(before) {
            task.activity = Activity::Waiting(WaitState { stack, since: now, reason });
            self.note_sample(pid, Some(waiting.instruction_pointer));
        }
    }

    /// The stack of a waiting thread, as far as its registers and memory are readable without stopping it.
    fn waiting_stack(&mut self, (pid, tid): (u32, u32), waiting: &KernelWait) -> UserStack {
        let (len, rest) = self.window(pid, waiting.stack_pointer, self.scratch.len());
        let room = self.scratch.get_mut(..len).unwrap_or_default();
        waiting.stack(tid, rest, room, || proc::has_32_bits(pid))
    }

    /// Asks a thread to stop, and samples it when it has stopped: at once if it runs, otherwise when it gets
    /// a CPU.
    fn hold(&mut self, tid: u32, schedule: ScheduleStatistics) -> StopOutcome {
        self.prepare_room();
        self.warm_stack_pages(tid);
        let at = monotonic_ns();
        let Some(task) = self.tasks.get_mut(tid) else { return StopOutcome::NotRequested };
        if ptrace::interrupt(tid).is_err() {
            return StopOutcome::NotRequested;
        }
        task.requested = Some(StopRequest { at, turn: self.turn, schedule });
        let mut mode = self.stop_polling.begin();
        while self.tasks.get(tid).is_some_and(|task| task.requested.is_some()) && !self.has_ended {
            match ptrace::wait(mode) {
                Ok(Some(waited)) => self.handle(waited),
                Ok(None) if mode == WaitMode::Poll => {
                    mode = self.stop_polling.go_on(monotonic_ns().saturating_sub(at));
                }
                Ok(None) | Err(_) => return StopOutcome::StillRunning,
            }
        }
        StopOutcome::Stopped
    }

    /// Reads the stack of a running thread at the place of its last stop. The first reading takes twice as
    /// long as one that follows at once. Afterwards, the kernel's data for it and most of the words are in
    /// this CPU's caches.
    fn warm_stack_pages(&mut self, tid: u32) {
        let Some((pid, held)) = self.tasks.get(tid).and_then(|task| Some((task.pid, task.held?))) else {
            return;
        };
        let (window, _) = self.window(pid, held.stack_pointer, PREFETCHED_COPY);
        let room = self.out.room().get_mut(..window).unwrap_or_default();
        ptrace::read_memory(tid, held.stack_pointer, room);
    }

    /// Copies the registers and the stack of a stopped thread, resumes it with the signal that it stopped for,
    /// and records the sample.
    pub(super) fn sample_stopped(&mut self, tid: u32, requested: StopRequest, signal: Option<i32>) {
        let noticed = monotonic_ns();
        let pid = self.tasks.get(tid).map(|task| task.pid).unwrap_or_default();
        let copied = self.copy_and_resume((pid, tid), requested, signal);
        let now = monotonic_ns();
        let CopiedStop { registers, len, limited, interrupted, seen, schedule } = copied;
        let stack_pointer = registers.map_or(0, |registers| registers.stack_pointer());
        let at_most_ns = requested.held_at_most_ns(schedule, noticed, now);
        self.budget.spend(at_most_ns, now.saturating_sub(noticed));
        let call = registers.and_then(|registers| registers.call());
        let call = call.filter(|_| self.wait_reasons);
        let reason = call.map(|call| what_for(pid, tid, Some(call)).reason);
        let Some(task) = self.tasks.get_mut(tid) else { return };
        if let Some(before) = task.held.replace(SampleStop { noticed, schedule, at_most_ns, stack_pointer }) {
            self.holds.add(before.length_ns(noticed, schedule));
        }
        let Some(registers) = registers else { return };
        task.account(schedule, now);
        task.activity = Activity::Running;
        let waited_ns = std::mem::take(&mut task.waited_ns);
        let is_in_call = registers.is_in_call();
        let is_due = !is_in_call && task.unseen_ns() > self.interval_ns.max(SLICE_NS);
        let state = if is_due || requested.ran(schedule, noticed) {
            task.note_seen();
            SampleState::Running { waited_ns }
        } else if is_in_call {
            SampleState::Waiting { waited_ns, reason }
        } else {
            SampleState::Runnable { waited_ns }
        };
        let event_registers = Box::new(registers.event_registers());
        let user = UserStack::Copied { registers: event_registers, stack: Bytes::new(), limited };
        let sample = sample((pid, tid), false, state, task.used_ns(), user);
        if let Some(interrupted) = interrupted {
            self.report_interrupted(((pid, tid), noticed), stack_pointer, interrupted);
        }
        // It was mapped when the thread stopped: what is later found to have changed has changed since.
        self.out.push_sample(noticed, sample, len);
        match seen {
            Some(seen) => self.note_maps(pid, &seen),
            None => self.note_sample(pid, Some(registers.instruction_pointer())),
        }
        self.prepare_room();
    }

    /// What happens while a thread is stopped: copies its registers and its stack, and resumes it.
    #[inline]
    fn copy_and_resume(
        &mut self,
        (pid, tid): (u32, u32),
        requested: StopRequest,
        signal: Option<i32>,
    ) -> CopiedStop {
        let registers = TracedRegisters::read(tid).ok();
        let mut len = 0;
        let mut limited = false;
        let mut interrupted = None;
        if let Some(registers) = registers {
            let pointer = registers.stack_pointer();
            let (window, rest) = self.window(pid, pointer, MAX_HELD_COPY_BYTES);
            let room = self.out.room().get_mut(..window).unwrap_or_default();
            len = ptrace::read_memory(tid, pointer, room);
            limited = len == window && rest;
            interrupted = self.read_interrupted((pid, tid), pointer);
            if registers.interrupted_call().is_some() {
                // It was running at the request, and has begun to wait just then.
                self.repeat_call(tid, registers, signal, (requested.at, Some(requested.schedule)));
            }
        }
        let seen = self.see_where_files_go(pid);
        // While it is stopped, the scheduler's count is exact.
        let schedule = self.tasks.get(tid).and_then(|task| task.files.schedule());
        let _ = ptrace::resume(tid, signal.unwrap_or(0));
        let schedule = schedule.unwrap_or(requested.schedule);
        CopiedStop { registers, len, limited, interrupted, seen, schedule }
    }

    /// Makes room for the next stack, so that no memory is allocated while a thread is stopped.
    fn prepare_room(&mut self) {
        if !self.out.has_room(MAX_HELD_COPY_BYTES) {
            self.send(monotonic_ns());
        }
        self.out.prepare();
    }

    /// How much of a stack to copy, and whether there is more. The stack is between its pointer and its end.
    pub(super) fn window(&self, pid: u32, pointer: u64, most: usize) -> (usize, bool) {
        let stack = self.processes.get(&pid).and_then(|process| process.maps.stack(pointer));
        thread_state::window(stack, pointer, most.min(self.most_copied))
    }

    /// Reads the mappings of a process while its stopped thread cannot change them, if libraries replace each
    /// other. After the resume, another library may soon be mapped at the sampled address.
    fn see_where_files_go(&mut self, pid: u32) -> Option<MapsReading> {
        let watched =
            |process: &&mut TracedProcess| process.files_go && process.watched_until > monotonic_ns();
        Some(self.processes.get_mut(&pid).filter(watched)?.maps.refresh_if_touched(pid))
    }

    /// Notes that a process was sampled at an address. Reads the mappings at once if the code there is
    /// unknown, because it may be gone soon. Also reads them for libraries that the callers may be in: at
    /// exec none is mapped, and at the next exec they are gone. These readings become rare as the process
    /// goes on.
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
