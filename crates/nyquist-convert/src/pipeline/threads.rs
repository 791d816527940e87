//! The births, names and ends of threads and processes.

use super::Pipeline;
use crate::account::off_cpu::Cause;
use crate::account::switch_reason::SwitchReason;
use crate::event::{Pid, Tid, Timestamp};

impl Pipeline {
    /// A thread was born.
    pub(super) fn fork(&mut self, now: Timestamp, (pid, tid): (Pid, Tid), parent: (Pid, Tid)) {
        self.account.on_cpu.forget(tid);
        if let Some(process) = self.processes.tracker.fork(pid, tid, parent, now) {
            self.sink.name_process(&process);
        }
        // The new thread is ready to run, but has no CPU yet.
        self.begin_wait(now, None, (pid, tid), Cause::Preempted);
    }

    /// A thread took a name, or its process became another program.
    pub(super) fn name(&mut self, now: Timestamp, (pid, tid): (Pid, Tid), name: &str, exec: bool) {
        let line = self.processes.program_arguments.take(pid, now);
        if self.sink.shape.reuse_threads {
            let process = self.processes.process(pid, now);
            self.sink.note_new_name(process, (pid, tid), (name, exec), line.as_ref());
        } else if exec {
            self.sink.leave_program(self.processes.process(pid, now), pid, name, now);
        }
        self.processes.tracker.name(pid, tid, name, exec, now);
        if let Some(line) = line {
            self.processes.process(pid, now).set_command_line(line, name);
        }
        self.wanted.note_name(pid, exec, now, &mut self.processes.tracker);
    }

    /// A thread ended.
    pub(super) fn exit(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid)) {
        self.end_wait(id.1, now);
        if self.sink.shape.waits {
            self.end_unseen_waits(id, now);
        }
        self.account.off_cpu.forget(id.1);
        self.end_on_cpu_interval(now, cpu, id, SwitchReason::Ended);
        self.end_thread(now, id);
        self.walker.forget(id.1);
        self.processes.note_exit(id, cpu);
    }

    /// Notes the end of a thread, after which another thread may use its row.
    fn end_thread(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        if !self.sink.shape.reuse_threads {
            let ends = self.processes.tracker.living_thread(pid, tid);
            if let Some(row) = ends.and_then(|thread| thread.index) {
                self.sink.builder.end_samples(row);
            }
            return self.processes.tracker.exit(pid, tid, now);
        }
        let thread = self.processes.process(pid, now).threads.get(&tid);
        let ends_now = thread.is_some_and(|thread| thread.end.is_none());
        self.processes.tracker.exit(pid, tid, now);
        if ends_now {
            self.sink.give_back(self.processes.process(pid, now), (pid, tid));
        }
    }
}
