//! The time that threads are off the CPU: where it begins, what is seen of it meanwhile, and the sample that it becomes.

use super::Pipeline;
use crate::account::off_cpu::{Cause, OffCpuInterval};
use crate::event::{NAMELESS, Pid, Sample, Tid, Timestamp, Waiting};

/// The CPU's idle task, of every CPU.
const IDLE: Tid = Tid(0);

/// What a thread has waited without being seen to is shown as that when it is so much, in nanoseconds.
const LONGEST_UNSEEN_NS: u64 = 1_000_000_000;

impl Pipeline {
    /// A thread has left the CPU at a stack. What left it before and was not seen to come back must have come back.
    pub(super) fn switch_out(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        if self.selects((sample.pid, sample.tid), cpu, now) {
            let truncated = self.walker.walk((sample, now), &mut self.processes);
            self.place_frames(now, sample, truncated);
            let stack = self.sink.intern_stack(sample.tid, &self.processes.modules);
            let wait = OffCpuInterval { pid: sample.pid, since: now, cause: Cause::AtStack, stack };
            self.account.off_cpu.begin(sample.tid, wait);
        }
    }

    /// A thread has left the CPU, and nothing is known of where.
    pub(super) fn begin_wait(
        &mut self,
        now: Timestamp,
        cpu: Option<u32>,
        (pid, tid): (Pid, Tid),
        cause: Cause,
    ) {
        // A thread that has ended leaves its CPU some moments later, with or without its number.
        let lives = || self.processes.tracker.living_thread(pid, tid).is_some();
        if !self.sink.shape.waits || tid == NAMELESS || tid == IDLE || !lives() {
            return;
        }
        self.end_wait(tid, now);
        if self.is_kept(pid, now) && self.selects((pid, tid), cpu, now) {
            self.account.off_cpu.begin(tid, OffCpuInterval { pid, since: now, cause, stack: None });
        }
    }

    /// A thread was found waiting. One that was not heard of before waits since it is there.
    pub(super) fn see_wait(&mut self, now: Timestamp, waiting: Waiting) {
        let Waiting { sample, reason, object, holder, looked_before_ns } = waiting;
        let id = (sample.pid, sample.tid);
        let lives = self.processes.tracker.living_thread(id.0, id.1).is_some();
        if !lives || self.sink.is_left_out(id) || !self.is_kept(id.0, now) || !self.selects(id, None, now) {
            return;
        }
        let since = self.processes.thread(now, id).start.max(self.start);
        if self.account.off_cpu.get_mut(id, since).is_none() {
            return;
        }
        let holder = holder.map(|holder| self.thread_label(id.0, holder).into());
        let truncated = self.walker.walk((&sample, now), &mut self.processes);
        self.place_frames(now, &sample, truncated);
        let stack = self.sink.intern_stack(sample.tid, &self.processes.modules);
        if let Some(wait) = self.account.off_cpu.get_mut(id, since) {
            wait.stack = stack;
            wait.cause = Cause::Seen { reason, object, holder, looked_before_ns };
        }
    }

    /// A thread of a process by its name and number.
    fn thread_label(&self, pid: Pid, tid: Tid) -> String {
        let name = self.processes.tracker.living_thread(pid, tid).map_or("", |thread| &thread.name);
        format!("{name} ({})", tid.0).trim_start().to_owned()
    }

    /// A thread is on a CPU: if it was off it, that becomes a sample.
    pub(super) fn end_wait(&mut self, tid: Tid, now: Timestamp) {
        if let Some(wait) = self.account.off_cpu.end(tid) {
            self.add_wait(tid, &wait, now);
        }
    }

    /// No thread waits any longer than until the last event.
    pub(crate) fn end_all_waits(&mut self) {
        for (tid, wait) in self.account.off_cpu.end_all() {
            self.add_wait(tid, &wait, self.last_time);
        }
        for id in self.processes.tracker.threads_with_unseen_waits() {
            self.end_unseen_waits(id, self.last_time);
        }
    }

    /// The waits of a thread that nobody has seen become a sample of their own.
    pub(super) fn end_unseen_waits(&mut self, id: (Pid, Tid), now: Timestamp) {
        let unseen = std::mem::take(&mut self.processes.thread(now, id).unseen_ns);
        if unseen > 0 {
            let wait = OffCpuInterval { pid: id.0, since: now, cause: Cause::NotSeen, stack: None };
            self.add_waited(id, &wait, (now, unseen));
        }
    }

    /// Adds what a thread was off the CPU. Short waits are seen by chance: one that was stands for those before it that were not.
    fn add_wait(&mut self, tid: Tid, wait: &OffCpuInterval, end: Timestamp) {
        let id = (wait.pid, tid);
        if self.sink.is_left_out(id) {
            return;
        }
        let length = end.0.saturating_sub(wait.since.0);
        let thread = self.processes.thread(wait.since, id);
        match wait.cause {
            Cause::NotSeen => {
                thread.unseen_ns = thread.unseen_ns.saturating_add(length);
                if thread.unseen_ns >= LONGEST_UNSEEN_NS {
                    self.end_unseen_waits(id, end);
                }
            }
            Cause::Seen { looked_before_ns, .. } if length < looked_before_ns.saturating_mul(2) => {
                let unseen = std::mem::take(&mut thread.unseen_ns);
                self.add_waited(id, wait, (end, length.saturating_add(unseen)));
            }
            _ => self.add_waited(id, wait, (end, length)),
        }
    }

    /// Adds a sample for the intervals that a thread was off the CPU, so many nanoseconds in all, and a marker where a wait was long.
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
        }
    }
}
