//! The time that threads are off the CPU: its begin, the looks during it, and the sample that it becomes.

use super::Pipeline;
use crate::account::off_cpu::{Cause, LeavingStack, OffCpuInterval, Waker};
use crate::event::{Pid, RELEASED_TID, Sample, Tid, Timestamp, Waiting, Wakeup};
use crate::processes::unseen_waits::WaitObservation;
use nyquist_profile::StackId;

/// The idle task of every CPU.
const IDLE: Tid = Tid(0);

/// When a thread's unobserved waits sum to this many nanoseconds, they become a sample of their own.
const LONGEST_UNSEEN_NS: u64 = 1_000_000_000;

impl Pipeline {
    /// A thread has left the CPU at a stack. If it left a CPU before and its return was not recorded, it must
    /// have returned since.
    pub(super) fn switch_out(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        if self.selects((sample.pid, sample.tid), cpu, now) {
            let stack = self.intern_stack_only(now, sample);
            let wait = OffCpuInterval { stack, ..OffCpuInterval::new(sample.pid, now, Cause::AtStack) };
            self.account.off_cpu.begin(sample.tid, wait);
        }
    }

    /// Interns the stack of a sample that is not added to the profile.
    fn intern_stack_only(&mut self, now: Timestamp, sample: &Sample) -> Option<StackId> {
        let truncated = self.walker.walk_uncounted((sample, now), &mut self.processes);
        self.place_frames(now, sample, truncated);
        self.sink.intern_stack(sample.tid, &self.processes.modules)
    }

    /// Whether waits of a living thread are wanted.
    fn wants_waits(&mut self, id: (Pid, Tid), cpu: Option<u32>, now: Timestamp) -> bool {
        self.processes.tracker.living_thread(id.0, id.1).is_some()
            && !self.sink.is_left_out(id)
            && self.is_kept(id.0, now)
            && self.selects(id, cpu, now)
    }

    /// A thread is about to leave its CPU at a stack.
    pub(super) fn leave(&mut self, now: Timestamp, cpu: Option<u32>, sample: Sample) {
        let id = (sample.pid, sample.tid);
        if !self.sink.shape.waits || !self.wants_waits(id, cpu, now) {
            return;
        }
        let stack = self.intern_stack_only(now, &sample);
        let reason = self.account.wait_functions.reason(&sample.kernel_stack);
        let kernel_stack = sample.kernel_stack;
        self.account.off_cpu.leave(id.1, LeavingStack { at: now, reason, stack, kernel_stack });
    }

    /// A thread was made ready to run. Only a long wait shows which thread did that.
    pub(super) fn wake(&mut self, now: Timestamp, wakeup: Wakeup) {
        let Wakeup { sample, woken, in_interrupt } = wakeup;
        let wait = self.account.off_cpu.current_mut(woken);
        let is_long =
            |wait: &mut OffCpuInterval| now.0.saturating_sub(wait.since.0) >= wait.cause.least_marked_ns();
        if !wait.is_some_and(is_long) {
            return;
        }
        let id = (sample.pid, sample.tid);
        let waker = if in_interrupt {
            Waker { at: now, thread: None, label: "an interrupt".into() }
        } else {
            let label = self.thread_label(id.0, id.1).into();
            let is_wanted = self.wants_waits(id, None, now);
            let stack = if is_wanted { self.intern_stack_only(now, &sample) } else { None };
            Waker { at: now, thread: is_wanted.then_some((id, stack)), label }
        };
        if let Some(wait) = self.account.off_cpu.current_mut(woken) {
            wait.waker = Some(waker);
        }
    }

    /// A thread has left the CPU at an unknown place.
    pub(super) fn begin_wait(
        &mut self,
        now: Timestamp,
        cpu: Option<u32>,
        (pid, tid): (Pid, Tid),
        cause: Cause,
    ) {
        // A thread that has ended leaves its CPU shortly afterwards, with or without its number.
        let lives = || self.processes.tracker.living_thread(pid, tid).is_some();
        if !self.sink.shape.waits || tid == RELEASED_TID || tid == IDLE || !lives() {
            return;
        }
        self.end_wait(tid, now);
        let leaving = self.account.off_cpu.take_leaving(tid, now);
        if !self.is_kept(pid, now) || !self.selects((pid, tid), cpu, now) {
            return;
        }
        let mut wait = OffCpuInterval::new(pid, now, cause);
        if let (Cause::NotSeen, Some(leaving)) = (&wait.cause, leaving) {
            let LeavingStack { reason, stack, kernel_stack, .. } = leaving;
            wait.cause =
                Cause::Seen { reason, object: None, holder: None, observation: WaitObservation::Switch };
            (wait.stack, wait.kernel_stack) = (stack, kernel_stack);
        }
        self.account.off_cpu.begin(tid, wait);
    }

    /// A thread was found waiting. A thread without earlier events has waited since it began. A look copies
    /// more of the user stack than a switch does. If it has no kernel part, the switch's one is used.
    pub(super) fn see_wait(&mut self, now: Timestamp, waiting: Waiting) {
        let Waiting { mut sample, reason, object, holder, checked_before_ns } = waiting;
        let id = (sample.pid, sample.tid);
        if !self.sink.shape.waits || !self.wants_waits(id, None, now) {
            return;
        }
        let since = self.processes.thread(now, id).start.max(self.start);
        let Some(wait) = self.account.off_cpu.get_mut(id, since) else { return };
        if sample.kernel_stack.is_empty() {
            sample.kernel_stack = std::mem::take(&mut wait.kernel_stack);
        }
        let observation = match wait.cause {
            Cause::Seen { observation, .. } => observation,
            _ => WaitObservation::Look { before_ns: checked_before_ns },
        };
        let holder = holder.map(|holder| self.thread_label(id.0, holder).into());
        let stack = self.intern_stack_only(now, &sample);
        if let Some(wait) = self.account.off_cpu.current_mut(id.1) {
            wait.stack = stack;
            if let Some(reason) = reason {
                wait.cause = Cause::Seen { reason, object, holder, observation };
            }
        }
    }

    /// A thread of a process by its name and number. The thread may have ended, because the end of a thread
    /// wakes others.
    fn thread_label(&self, pid: Pid, tid: Tid) -> String {
        let name = self.processes.tracker.known_thread(pid, tid).map_or("", |thread| &thread.name);
        format!("{name} ({})", tid.0).trim_start().to_owned()
    }

    /// A thread is on a CPU. If it was off the CPU before, that time becomes a sample.
    pub(super) fn end_wait(&mut self, tid: Tid, now: Timestamp) {
        if let Some(wait) = self.account.off_cpu.end(tid) {
            self.add_wait(tid, &wait, now);
        }
    }

    /// Ends all waits at the last event.
    pub(crate) fn end_all_waits(&mut self) {
        for (tid, wait) in self.account.off_cpu.end_all() {
            self.add_wait(tid, &wait, self.last_time);
        }
        for id in self.processes.tracker.threads_with_unseen_waits() {
            self.end_unseen_waits(id, self.last_time);
        }
    }

    /// The waits of a thread that were not observed become a sample of their own.
    pub(super) fn end_unseen_waits(&mut self, id: (Pid, Tid), now: Timestamp) {
        let unseen = std::mem::take(&mut self.processes.thread(now, id).unseen_waits).ns;
        if unseen > 0 {
            let wait = OffCpuInterval::new(id.0, now, Cause::NotSeen);
            self.add_waited(id, &wait, (now, unseen));
        }
    }

    /// Adds a thread's time off the CPU. A wait that was seen by chance also stands for the unseen waits
    /// before it.
    pub(super) fn add_wait(&mut self, tid: Tid, wait: &OffCpuInterval, end: Timestamp) {
        let id = (wait.pid, tid);
        if self.sink.is_left_out(id) {
            return;
        }
        let length = end.0.saturating_sub(wait.since.0);
        let thread = self.processes.thread(wait.since, id);
        match wait.cause {
            Cause::NotSeen => {
                thread.unseen_waits.add(length);
                if thread.unseen_waits.ns >= LONGEST_UNSEEN_NS {
                    self.end_unseen_waits(id, end);
                }
            }
            Cause::Seen { observation, .. } => {
                let unseen = thread.unseen_waits.take_share(observation, length);
                self.add_waited(id, wait, (end, length.saturating_add(unseen)));
            }
            _ => self.add_waited(id, wait, (end, length)),
        }
    }

    /// Adds a sample for the intervals that a thread was off the CPU, `waited` nanoseconds in all. Adds a
    /// marker if the wait was long.
    fn add_waited(&mut self, id: (Pid, Tid), wait: &OffCpuInterval, (end, waited): (Timestamp, u64)) {
        let thread = self.processes.thread(wait.since, id);
        let waited = if self.sink.shape.waits { thread.waited_apart(waited, end) } else { waited };
        let weight = self.account.waited(thread, waited);
        let length = end.0.saturating_sub(wait.since.0);
        let is_long = self.sink.shape.waits && length >= wait.cause.least_marked_ns();
        if weight == 0 && !is_long {
            return;
        }
        let row = self.sink.thread_row(wait.since, id, &mut self.processes);
        let stack = self.sink.wait_stack(wait);
        if weight > 0 {
            self.sink.add_wait(row, end, stack, weight);
        }
        if is_long {
            self.sink.add_wait_marker(row, wait, end, stack);
            self.mark_waker(id, wait, end);
        }
    }

    /// Adds a marker to the waker's thread where it ended the wait of another thread.
    fn mark_waker(&mut self, woken: (Pid, Tid), wait: &OffCpuInterval, end: Timestamp) {
        let Some(Waker { at, thread: Some((waker, stack)), .. }) = wait.waker else { return };
        if self.sink.is_left_out(waker) {
            return;
        }
        let label = self.thread_label(woken.0, woken.1);
        let waited_ns = end.0.saturating_sub(wait.since.0);
        let row = self.sink.thread_row(at, waker, &mut self.processes);
        self.sink.add_wake_marker(row, at, (&label, waited_ns), stack);
    }
}
