//! The births, names and ends of threads and processes.

use super::Pipeline;
use crate::account::off_cpu_interval::Cause;
use crate::account::switch_reason::SwitchReason;
use crate::event::{Pid, Tid, Timestamp};

impl Pipeline {
    /// A thread was born.
    pub(super) fn fork(&mut self, now: Timestamp, id: (Pid, Tid), parent: (Pid, Tid)) {
        self.on_cpu.forget(id.1);
        if id.0 != parent.0 {
            self.settle_former_process(id.0);
        }
        if let Some(process) = self.processes.fork(id, parent, now) {
            self.sink.name_process(&process);
        }
        // The new thread is ready to run, but has no CPU yet.
        self.begin_wait(now, None, id, Cause::Preempted);
    }

    /// A thread took a name, or its process became another program.
    pub(super) fn name(&mut self, now: Timestamp, (pid, tid): (Pid, Tid), name: &str, exec: bool) {
        let line = self.processes.take_command_line(pid, now);
        if self.shape.reuse_threads {
            let process = self.processes.process(pid, now);
            self.sink.note_new_name(process, (pid, tid), (name, exec), line.as_ref());
        } else if exec {
            self.sink.leave_program(self.processes.process(pid, now), pid, name, now);
        }
        self.processes.name((pid, tid), (name, exec), line, now);
        self.requested.note_name(pid, exec, now, &mut self.processes);
        if exec {
            self.heaps.end_program(pid);
        }
    }

    /// A thread ended.
    pub(super) fn exit(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid)) {
        self.end_wait(id.1, now);
        if self.shape.waits {
            self.end_unseen_waits(id, now);
        }
        self.off_cpu.forget(id.1);
        self.end_on_cpu_interval(now, cpu, id, SwitchReason::Ended);
        self.end_thread(now, cpu, id);
        if self.heaps.has_heap_of(id.0) && !self.processes.process(id.0, now).has_live_thread() {
            self.heaps.end_program(id.0);
        }
        self.walker.forget(id.1);
    }

    /// Notes the end of a thread, after which another thread may use its row.
    fn end_thread(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid)) {
        if !self.shape.reuse_threads {
            let row = self.processes.live_thread(id).and_then(|thread| thread.index);
            self.processes.exit(id, cpu, now);
            if let Some(row) = row {
                self.sink.end_samples(row);
            }
            return;
        }
        let ends_now = self.processes.process(id.0, now).has_live(id.1);
        self.processes.exit(id, cpu, now);
        if ends_now {
            self.sink.give_back(self.processes.process(id.0, now), id);
        }
    }
}
