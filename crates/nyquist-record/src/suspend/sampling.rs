//! Sampling threads: those that may have run are suspended while their registers and stacks are copied.

use bytes::Bytes;
use nyquist_convert::event::{EventKind, Pid, Sample, SampleState, Tid, UserStack};

use super::recorded_thread::{Activity, CpuReading, Pass, RecordedThread};
use super::sampler::Sampler;
use super::system::{StoppedRegisters as _, System};

/// The largest copy of a stack in bytes: 128 kB take some 20 µs.
pub(crate) const MAX_COPY_BYTES: usize = 128 << 10;
/// A thread that has a CPU stops within this time.
const MAX_STOP_NS: u64 = 200_000;
/// How many waiting threads are checked in a turn.
const MAX_WAITING_THREADS: usize = 64;
/// In how many rounds in a row running threads may use up the budget. Then a waiting thread comes first, because it
/// may run by now.
const MAX_ROUNDS_WITHOUT_WAITING: u32 = 3;
/// How often a thread that waits continuously has a sample.
const BETWEEN_WAITING_SAMPLES_NS: u64 = 100_000_000;
/// After how many intervals without a sample of a running thread it is sampled where it is, even in a system
/// call. Before that, it is likelier to be found elsewhere soon.
const UNSAMPLED_INTERVALS: u64 = 4;
/// The same in nanoseconds, at high rates.
const MIN_UNSAMPLED_NS: u64 = 2_000_000;
/// The most addresses in code that makes system calls that are remembered of a process.
const MAX_CALLS: usize = 4096;

/// What was read from a suspended thread.
struct StoppedThread<R> {
    registers: R,
    /// When it was suspended.
    at: u64,
    /// How many bytes of the stack are in the room of the queue.
    len: usize,
    /// Whether there is more of it.
    limited: bool,
}

impl<S: System> Sampler<S> {
    /// Samples the running threads in turn, as many as the budget allows, and then some of the waiting ones. They
    /// may be many, and each costs as much as a running one, but they show less.
    pub(super) fn sample_all(&mut self) {
        let began = self.system.now();
        self.budget.begin_round(began, self.tasks.running());
        if self.rounds_without_waiting >= MAX_ROUNDS_WITHOUT_WAITING && self.budget.allows() {
            self.sample_waiting(began, 1);
        }
        if !self.sample_running() {
            return self.budget.cut_round();
        }
        if !self.sample_waiting(began, MAX_WAITING_THREADS) {
            self.budget.cut_round();
        }
    }

    /// Samples the threads that ran at their last look. Returns whether the budget was enough for all.
    fn sample_running(&mut self) -> bool {
        let mut has_looked = false;
        for place in self.tasks.places(Pass::Running) {
            if !self.tasks.all().get(place).is_some_and(RecordedThread::is_running) {
                continue;
            }
            if !self.budget.allows() {
                self.tasks.continue_with(Pass::Running, place);
                self.rounds_without_waiting += u32::from(has_looked);
                return false;
            }
            has_looked |= self.sample_if_run(place);
        }
        if has_looked && !self.budget.allows() {
            self.rounds_without_waiting += 1;
        }
        true
    }

    /// Checks threads that waited at their last look, which was before this round, and samples those that may have
    /// run, up to a number of them. Returns whether the budget was enough.
    fn sample_waiting(&mut self, began: u64, most_sampled: usize) -> bool {
        let (mut checked, mut sampled) = (0, 0);
        for place in self.tasks.places(Pass::Waiting) {
            let is_due = |task: &RecordedThread<S::Thread>| !task.is_running() && task.looked_at < began;
            if !self.tasks.all().get(place).is_some_and(is_due) {
                continue;
            }
            let is_allowed = self.budget.allows();
            if !is_allowed || checked == MAX_WAITING_THREADS || sampled == most_sampled {
                self.tasks.continue_with(Pass::Waiting, place);
                return is_allowed;
            }
            self.rounds_without_waiting = 0;
            checked += 1;
            sampled += usize::from(self.sample_if_run(place));
        }
        true
    }

    /// Checks whether a thread may have run, and samples it then. Returns whether it was sampled.
    fn sample_if_run(&mut self, place: usize) -> bool {
        let now = self.system.now();
        let Some(task) = self.tasks.all_mut().get_mut(place) else { return false };
        let Some(read) = self.system.cpu_time_ns(&task.thread) else {
            self.wants_listing = true;
            return false;
        };
        let read =
            CpuReading { counted_ns: read, estimated_run_ns: self.system.estimated_run_ns(&task.thread) };
        task.is_due |= self.system.was_active(&task.thread);
        if task.may_have_run(read, now) {
            self.suspend(place, read);
            return true;
        }
        task.is_disturbed = false;
        task.account(read.counted_ns, 0, now);
        if task.waited_ns >= BETWEEN_WAITING_SAMPLES_NS {
            self.report_waiting_at(place, now);
        }
        false
    }

    /// Suspends a thread, copies its registers and its stack, and lets it run again.
    fn suspend(&mut self, place: usize, read: CpuReading) {
        self.prepare_room();
        let Self { system, tasks, processes, out, plan, .. } = self;
        let Some(task) = tasks.all_mut().get_mut(place) else { return };
        let Some(process) = processes.get(&task.pid) else { return };
        let most = MAX_COPY_BYTES.min(plan.most_copied);
        if !out.takes_sample(most) {
            // It would be suspended for nothing. Its next sample has the time since its last one.
            if task.is_running() {
                out.drop_sample();
            }
            return;
        }
        let before = system.now();
        if !system.suspend(&task.thread) {
            self.wants_listing = true;
            return;
        }
        // The thread may hold a lock of its process. Until it runs again, nothing is allocated or printed.
        let registers = system.registers(&task.thread);
        let at = system.now();
        let stopped = registers.map(|registers| {
            let pointer = registers.stack_pointer();
            if !task.stack.contains(&pointer) {
                task.stack = system.stack(&process.handle, &task.thread, pointer).unwrap_or(0..0);
            }
            let (window, more) = window(&task.stack, pointer, most);
            let room = out.room().get_mut(..window).unwrap_or_default();
            let len = system.read_memory(&process.handle, pointer, room);
            StoppedThread { registers, at, len, limited: more && len == window }
        });
        system.resume(&task.thread);
        let now = system.now();
        self.holds.add(now.saturating_sub(before));
        // A thread that has a CPU stops soon. Another one waits for a CPU meanwhile, which is no hold.
        let charged_ns = at.saturating_sub(before).min(MAX_STOP_NS) + now.saturating_sub(at);
        self.budget.spend(charged_ns, now.saturating_sub(at));
        match stopped {
            Some(stopped) => self.sample(place, read, &stopped),
            // It is ending.
            None => self.wants_listing = true,
        }
    }

    /// Records what a look has found.
    fn sample(&mut self, place: usize, read: CpuReading, stopped: &StoppedThread<S::Registers>) {
        let Some(task) = self.tasks.all().get(place) else { return };
        let (pid, ip) = (task.pid, stopped.registers.instruction_pointer());
        self.note_sample(pid, ip, stopped.at);
        let in_call = self.is_in_call(pid, ip);
        let interval = self.plan.interval_ns;
        let registers = stopped.registers.event_registers();
        let Some(task) = self.tasks.all().get(place) else { return };
        let is_same = task.registers.as_ref() == Some(&registers);
        if in_call && is_same && !task.is_running() && task.moved_ns(read) == 0 {
            // It still waits, and its stack is known.
            return self.note_still_waiting(place, read.counted_ns, stopped.at);
        }
        self.report_waiting_at(place, stopped.at);
        let Some(task) = self.tasks.all_mut().get_mut(place) else { return };
        let state = task.judge((read, stopped.at), (in_call, is_same), interval);
        task.registers = Some(registers.clone());
        task.note_place(in_call && is_same, interval, stopped.at);
        let sampled_ns = task.sampled_ns;
        let id = (task.pid, task.shown_tid);
        let user = |stack| UserStack::Copied {
            registers: Box::new(registers.clone()),
            stack,
            limited: stopped.limited,
        };
        if in_call {
            // Its stack stays the same as long as it waits.
            let room = self.out.room().get(..stopped.len).unwrap_or_default();
            let stack = user(Bytes::copy_from_slice(room));
            if let Some(task) = self.tasks.all_mut().get_mut(place) {
                task.activity = Activity::Waiting(stack);
            }
        }
        if let Some(state) = state {
            let sample = sample(id, state, sampled_ns, user(Bytes::new()));
            self.out.push_sample(stopped.at, sample, stopped.len);
        }
    }

    fn note_still_waiting(&mut self, place: usize, read: u64, now: u64) {
        let interval = self.plan.interval_ns;
        let Some(task) = self.tasks.all_mut().get_mut(place) else { return };
        task.account(read, 0, now);
        task.note_place(true, interval, now);
        (task.is_due, task.is_disturbed) = (false, true);
        if task.waited_ns >= BETWEEN_WAITING_SAMPLES_NS {
            self.report_waiting_at(place, now);
        }
    }

    fn report_waiting_at(&mut self, place: usize, now: u64) {
        let Some(task) = self.tasks.all_mut().get_mut(place) else { return };
        if let Some(sample) = take_waiting(task) {
            self.out.push(now, sample);
        }
    }

    /// Records how long a thread has waited in its current place.
    pub(super) fn report_waiting(&mut self, task: &mut RecordedThread<S::Thread>, now: u64) {
        if let Some(sample) = take_waiting(task) {
            self.out.push(now, sample);
        }
    }

    /// Whether a thread is in a system call, given its instruction pointer.
    fn is_in_call(&mut self, pid: u32, ip: u64) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        if process.images.find(ip) != Some(true) {
            return false;
        }
        if let Some(known) = process.calls.get(&ip) {
            return *known;
        }
        let is_at_call = self.system.is_at_call(&process.handle, ip);
        if process.calls.len() < MAX_CALLS {
            process.calls.insert(ip, is_at_call);
        }
        is_at_call
    }

    /// Notes that a process was sampled at an address. Reads its images at once if the code there is unknown,
    /// and then looks for code that was made at run time. Reads them more often while the process is new, because it
    /// loads libraries then.
    fn note_sample(&mut self, pid: u32, ip: u64, now: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.has_samples = true;
        process.samples += 1;
        let is_unknown = process.images.find(ip).is_none() && !process.made_code.has(ip);
        if is_unknown {
            process.made_code.seek(ip);
        }
        if (is_unknown && process.images.may_look_again(now)) || process.samples.is_power_of_two() {
            self.refresh_images(pid, now);
        }
    }

    /// Makes room for the next stack, so that no memory is allocated while a thread is suspended.
    fn prepare_room(&mut self) {
        if !self.out.has_room(MAX_COPY_BYTES) {
            self.send();
        }
        self.out.prepare();
    }
}

impl<T> RecordedThread<T> {
    /// How much CPU time it may use before it is sampled even in a system call, in nanoseconds. Such a sample stands
    /// for no more: the rest was used elsewhere, and waits for a sample that finds it running.
    fn longest_unsampled_ns(&self, interval_ns: u64, shows_runs: bool) -> u64 {
        let uncertain_ns = if shows_runs { 0 } else { 2 * self.clock.step_ns() };
        MIN_UNSAMPLED_NS.max(interval_ns * UNSAMPLED_INTERVALS) + uncertain_ns
    }

    /// Accounts for the time until a look that has suspended it. Returns the state to be sampled, or `None` if
    /// it has begun to wait: how long it waits there is not known yet.
    fn judge(
        &mut self,
        (read, now): (CpuReading, u64),
        (in_call, is_same): (bool, bool),
        interval_ns: u64,
    ) -> Option<SampleState> {
        let passed = now.saturating_sub(self.looked_at);
        let was_running = self.is_running();
        let has_moved = self.moved_ns(read) > 0;
        let ran = !in_call && (has_moved || !is_same);
        // On average, a thread that waited at the last look has run for half of the time since.
        let most = if was_running { interval_ns.saturating_mul(2) } else { interval_ns / 2 };
        let guessed_ns = if ran { passed.min(most) } else { 0 };
        let about_ns = read.estimated_run_ns.map(|ran| ran.min(passed));
        let used = self.account(read.counted_ns, about_ns.unwrap_or(guessed_ns), now);
        (self.is_due, self.is_disturbed, self.has_run) = (false, true, true);
        // It has run nearly all the time, so it works in the kernel.
        let shows_runs = about_ns.is_some() || !self.clock.is_coarse();
        let worked = about_ns.unwrap_or(used);
        let in_kernel = shows_runs && worked > 0 && worked.saturating_mul(8) >= passed * 7;
        let most_ns = self.longest_unsampled_ns(interval_ns, about_ns.is_some());
        let is_overdue = self.unsampled_ns() > most_ns;
        if ran || (in_call && (in_kernel || is_overdue)) {
            let in_call_ns = if in_kernel { most_ns.saturating_add(used.min(passed)) } else { most_ns };
            self.sampled_ns += if ran { u64::MAX } else { in_call_ns }.min(self.unsampled_ns());
            self.activity = Activity::Running;
            return Some(SampleState::Running { waited_ns: std::mem::take(&mut self.waited_ns) });
        }
        if in_call {
            return None;
        }
        self.activity = Activity::Running;
        Some(SampleState::Runnable { waited_ns: std::mem::take(&mut self.waited_ns) })
    }
}

/// The sample of a waiting thread, with its time since the last one.
fn take_waiting<T>(task: &mut RecordedThread<T>) -> Option<EventKind> {
    let Activity::Waiting(stack) = &task.activity else { return None };
    let state = SampleState::Waiting { waited_ns: std::mem::take(&mut task.waited_ns), reason: None };
    Some(sample((task.pid, task.shown_tid), state, task.sampled_ns, stack.clone()))
}

/// How much of a stack to copy from its pointer on, and whether there is more.
fn window(stack: &std::ops::Range<u64>, pointer: u64, most: usize) -> (usize, bool) {
    if !stack.contains(&pointer) {
        return (0, false);
    }
    let all = stack.end - pointer;
    let len = usize::try_from(all).unwrap_or(usize::MAX).min(most);
    (len, all > len as u64)
}

fn sample((pid, tid): (u32, u32), state: SampleState, sampled_ns: u64, user: UserStack) -> EventKind {
    EventKind::Sample(Sample {
        pid: Pid(pid),
        tid: Tid(tid),
        in_kernel: false,
        state,
        period_ns: 0,
        cpu_time_ns: Some(sampled_ns),
        counts_anew: false,
        kernel_stack: Vec::new(),
        user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_stays_in_the_stack() {
        assert_eq!(window(&(0x1000..0x2000), 0x1f00, 0x80), (0x80, true));
        assert_eq!(window(&(0x1000..0x2000), 0x1f00, 0x1000), (0x100, false));
        assert_eq!(window(&(0x1000..0x2000), 0x2000, 0x1000), (0, false));
        assert_eq!(window(&(0..u64::MAX), 8, 0x1000), (0x1000, true));
    }
}
