//! The time that threads are off the CPU: its begin, the looks during it, and the sample that it becomes.

use super::Pipeline;
use crate::account::off_cpu_interval::{Cause, Look, OffCpuInterval, Waker};
use crate::event::{Pid, RELEASED_TID, Sample, Tid, Timestamp, Waiting, Wakeup};
use nyquist_profile::StackId;

/// The idle task of every CPU.
const IDLE: Tid = Tid(0);

impl Pipeline {
    /// A thread has left the CPU at a stack. If it left a CPU before and its return was not recorded, it must
    /// have returned since.
    pub(super) fn switch_out(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        let id = (sample.pid, sample.tid);
        self.end_wait(id.1, now);
        if self.selects(id, cpu, now) {
            let stack = self.intern_stack_only(now, sample);
            self.off_cpu.begin_at_stack(id, now, stack);
        }
    }

    /// Interns the stack of a sample that is not added to the profile.
    fn intern_stack_only(&mut self, now: Timestamp, sample: &Sample) -> Option<StackId> {
        let truncated = self.walker.walk_uncounted((sample, now), &mut self.processes);
        self.place_frames(now, sample, truncated);
        self.sink.intern_stack(sample.tid, &self.processes)
    }

    /// Whether waits of a living thread are requested.
    fn wants_waits(&mut self, id: (Pid, Tid), cpu: Option<u32>, now: Timestamp) -> bool {
        self.processes.live_thread(id).is_some()
            && !self.sink.is_left_out(id)
            && self.is_kept(id.0, now)
            && self.selects(id, cpu, now)
    }

    /// A thread is about to leave its CPU at a stack.
    pub(super) fn leave(&mut self, now: Timestamp, cpu: Option<u32>, sample: Sample) {
        let id = (sample.pid, sample.tid);
        if self.shape.waits && self.wants_waits(id, cpu, now) {
            let stack = self.intern_stack_only(now, &sample);
            let argument = sample.user.call_argument();
            self.off_cpu.note_leaving((id.1, now), stack, argument, sample.kernel_stack);
        }
    }

    /// A thread was made ready to run. Only a long wait shows which thread did that.
    pub(super) fn wake(&mut self, now: Timestamp, wakeup: Wakeup) {
        let Wakeup { sample, woken, in_interrupt } = wakeup;
        if !self.off_cpu.is_long(woken, now) {
            return;
        }
        let id = (sample.pid, sample.tid);
        let waker = if in_interrupt {
            Waker { at: now, thread: None, label: "an interrupt".into() }
        } else {
            let label = self.processes.thread_label(id).into();
            let is_requested = self.wants_waits(id, None, now);
            let stack = if is_requested { self.intern_stack_only(now, &sample) } else { None };
            Waker { at: now, thread: is_requested.then_some((id, stack)), label }
        };
        self.off_cpu.wake(woken, waker);
    }

    /// A thread has left the CPU at an unknown place.
    pub(super) fn begin_wait(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid), cause: Cause) {
        // A thread that has ended leaves its CPU shortly afterwards, with or without its number.
        let lives = || self.processes.live_thread(id).is_some();
        if !self.shape.waits || id.1 == RELEASED_TID || id.1 == IDLE || !lives() {
            return;
        }
        self.end_wait(id.1, now);
        let leaving = self.off_cpu.take_leaving(id.1, now);
        if self.is_kept(id.0, now) && self.selects(id, cpu, now) {
            self.off_cpu.begin(id, (now, cause), leaving);
        }
    }

    /// A thread was found waiting. A thread without earlier events has waited since it began. A look copies
    /// more of the user stack than a switch does. If it has no kernel part, the switch's one is used.
    pub(super) fn see_wait(&mut self, now: Timestamp, waiting: Waiting) {
        let Waiting { mut sample, reason, object, holder, checked_before_ns } = waiting;
        let id = (sample.pid, sample.tid);
        if !self.shape.waits || !self.wants_waits(id, None, now) {
            return;
        }
        let since = self.processes.thread(now, id).start.max(self.recorded_since);
        if !self.off_cpu.is_off(id, since) {
            return;
        }
        if sample.kernel_stack.is_empty() {
            sample.kernel_stack = self.off_cpu.take_kernel_stack(id.1);
        }
        let holder = holder.map(|holder| self.processes.thread_label((id.0, holder)).into());
        let stack = self.intern_stack_only(now, &sample);
        self.off_cpu.see(id.1, Look { stack, reason, object, holder, checked_before_ns });
    }

    /// A thread is on a CPU. If it was off the CPU before, that time becomes a sample.
    pub(super) fn end_wait(&mut self, tid: Tid, now: Timestamp) {
        if let Some(wait) = self.off_cpu.end(tid) {
            self.add_wait(tid, &wait, now);
        }
    }

    /// Ends all waits at the last event.
    pub(super) fn end_all_waits(&mut self) {
        for (tid, wait) in self.off_cpu.end_all() {
            self.add_wait(tid, &wait, self.last_time);
        }
        for id in self.processes.threads_with_unseen_waits() {
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

    /// Adds a thread's time off the CPU.
    pub(super) fn add_wait(&mut self, tid: Tid, wait: &OffCpuInterval, end: Timestamp) {
        let id = (wait.pid, tid);
        if self.sink.is_left_out(id) {
            return;
        }
        let thread = self.processes.thread(wait.since, id);
        if let Some(waited) = wait.stands_for(end, &mut thread.unseen_waits) {
            self.add_waited(id, wait, (end, waited));
        } else if thread.unseen_waits.are_long() {
            self.end_unseen_waits(id, end);
        }
    }

    /// Adds a sample for the intervals that a thread was off the CPU, `waited` nanoseconds in all. Adds a
    /// marker if the wait was long, or stands for long ones.
    fn add_waited(&mut self, id: (Pid, Tid), wait: &OffCpuInterval, (end, waited): (Timestamp, u64)) {
        let weight = self.account.waited(self.processes.thread(wait.since, id), waited, end);
        let is_marked = self.shape.waits && wait.is_marked(end, waited);
        if weight == 0 && !is_marked {
            return;
        }
        let row = self.sink.thread_row(wait.since, id, &mut self.processes);
        let stack = self.sink.wait_stack(wait);
        if weight > 0 {
            self.sink.add_wait(row, end, stack, weight);
        }
        if is_marked {
            self.sink.add_wait_marker(row, wait, (end, waited), stack);
            self.mark_waker(id, wait, end);
        }
    }

    /// Adds a marker to the waker's thread where it ended the wait of another thread.
    fn mark_waker(&mut self, woken: (Pid, Tid), wait: &OffCpuInterval, end: Timestamp) {
        let Some(Waker { at, thread: Some((waker, stack)), .. }) = wait.waker else { return };
        if self.sink.is_left_out(waker) {
            return;
        }
        let label = self.processes.thread_label(woken);
        let row = self.sink.thread_row(at, waker, &mut self.processes);
        self.sink.add_wake_marker(row, at, (&label, wait.length(end)), stack);
    }
}
