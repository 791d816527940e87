//! One check of a thread: whether it waits, where, and for what.

use std::ops::Range;

use nyquist_convert::event::{
    Event, EventKind, Pid, Sample, SampleState, Tid, Timestamp, UserStack, Waiting,
};

use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::target_access;
use crate::linux::thread_state::{KernelWait, RunState, ThreadFiles, window};
use crate::linux::wait_reason::{WaitCause, cause_of_wait};

/// The largest copy of a stack.
const MAX_COPY_BYTES: usize = 64 << 10;

/// The result of a check.
#[derive(Debug)]
pub(super) enum CheckOutcome {
    /// The thread no longer exists.
    Gone,
    /// This process may not read the thread.
    Refused,
    /// The thread runs, or its wait was recorded already.
    Nothing,
    /// It waits.
    Waits(Event),
}

/// A thread and its last known state.
#[derive(Debug)]
pub(super) struct WatchedThread {
    pid: u32,
    tid: u32,
    files: ThreadFiles,
    /// When it was last checked, in nanoseconds.
    checked_at: Option<u64>,
    /// How many times it had got a CPU when its last wait was recorded.
    noted: Option<u64>,
    /// The memory that contains its stack.
    stack: Range<u64>,
    /// Whether it runs a 32-bit program; determined when it is first needed.
    has_32_bits: Option<bool>,
}

impl WatchedThread {
    /// A thread that was not checked yet.
    pub(super) fn new(pid: u32, tid: u32) -> Self {
        let files = ThreadFiles::open(pid, tid);
        Self { pid, tid, files, checked_at: None, noted: None, stack: 0..0, has_32_bits: None }
    }

    /// Whether it belongs to a process.
    pub(super) fn is_of(&self, pid: u32) -> bool {
        self.pid == pid
    }

    /// Checks it. If it has not got a CPU meanwhile, it has not run, and all values belong to the same state.
    pub(super) fn check(&mut self, scratch: &mut Vec<u8>) -> CheckOutcome {
        let Some(before) = self.files.schedule() else { return CheckOutcome::Gone };
        let now = monotonic_ns();
        let checked_before_ns = self.checked_at.replace(now).map_or(0, |at| now.saturating_sub(at));
        if self.noted == Some(before.turns) {
            return CheckOutcome::Nothing;
        }
        let waits = match self.files.run_state() {
            RunState::Running => return CheckOutcome::Nothing,
            RunState::Unknown => return CheckOutcome::Refused,
            // A zombie has no stack any more.
            RunState::Waiting(waits) if waits.stack_pointer == 0 => return CheckOutcome::Nothing,
            RunState::Waiting(waits) => waits,
        };
        let at = monotonic_ns();
        let user = self.stack(&waits, scratch);
        let WaitCause { reason, object, holder } = cause_of_wait(self.pid, self.tid, waits.call);
        if self.files.schedule().is_none_or(|after| after.turns != before.turns) {
            return CheckOutcome::Nothing;
        }
        self.noted = Some(before.turns);
        let sample = self.sample(user);
        let kind = EventKind::Waiting(Box::new(Waiting {
            sample,
            reason: Some(reason),
            object,
            holder,
            checked_before_ns,
        }));
        CheckOutcome::Waits(Event { time: Timestamp(at), cpu: None, kind })
    }

    /// The stack, as far as the thread's registers and memory are readable without stopping it.
    fn stack(&mut self, waits: &KernelWait, scratch: &mut Vec<u8>) -> UserStack {
        let pointer = waits.stack_pointer;
        if !self.stack.contains(&pointer) {
            self.stack = target_access::writable_memory_at(self.pid, pointer).unwrap_or_default();
        }
        let stack = Some(&self.stack).filter(|stack| !stack.is_empty());
        let (len, rest) = window(stack, pointer, MAX_COPY_BYTES);
        scratch.resize(MAX_COPY_BYTES, 0);
        let room = scratch.get_mut(..len).unwrap_or_default();
        let has_32_bits = || *self.has_32_bits.get_or_insert_with(|| proc::has_32_bits(self.pid));
        waits.stack(self.pid, rest, room, has_32_bits)
    }

    fn sample(&self, user: UserStack) -> Sample {
        Sample {
            pid: Pid(self.pid),
            tid: Tid(self.tid),
            in_kernel: true,
            state: SampleState::Clocked,
            period_ns: 0,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: Vec::new(),
            user,
        }
    }
}
