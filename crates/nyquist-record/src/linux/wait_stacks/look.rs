//! One look at a thread: whether it waits, where, and what for.

use std::ops::Range;

use bytes::Bytes;
use nyquist_convert::event::{
    Event, EventKind, Pid, Registers, Sample, SampleState, Tid, Timestamp, UserStack, Waiting,
};

use super::call;
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace::read_memory;
use crate::linux::thread_state::{Files, Place, Waiting as Waits};

/// The most that is copied of a stack.
const LARGEST_COPY: u64 = 64 << 10;
/// The same where the stack lies in memory that is much larger than stacks are, or in none that is known.
const COPY_OF_UNKNOWN: u64 = 32 << 10;
/// Memory larger than that is no stack alone.
const LARGEST_STACK: u64 = 64 << 20;

/// What a look has found.
#[derive(Debug)]
pub(super) enum Looked {
    /// There is no such thread any more.
    Gone,
    /// The thread may not be looked at.
    Refused,
    /// The thread runs, or what it waits for was noted already.
    Nothing,
    /// It waits.
    Waits(Event),
}

/// A thread, and what was seen of it.
#[derive(Debug)]
pub(super) struct WatchedThread {
    pid: u32,
    tid: u32,
    files: Files,
    /// When it was last looked at, in nanoseconds.
    looked_at: Option<u64>,
    /// How many times it had got a CPU when it was last seen to wait.
    noted: Option<u64>,
    /// The memory that its stack is in.
    stack: Range<u64>,
    /// Whether its program is one of 32 bits; found out when it is first needed.
    has_32_bits: Option<bool>,
}

impl WatchedThread {
    /// A thread that was not looked at.
    pub(super) fn new(pid: u32, tid: u32) -> Self {
        let files = Files::open(pid, tid);
        Self { pid, tid, files, looked_at: None, noted: None, stack: 0..0, has_32_bits: None }
    }

    /// Whether it is one of a process.
    pub(super) fn is_of(&self, pid: u32) -> bool {
        self.pid == pid
    }

    /// Looks at it. It has not run in between if it has not got a CPU: all that was read belongs together then.
    pub(super) fn look(&mut self, scratch: &mut Vec<u8>) -> Looked {
        let Some(before) = self.files.schedule() else { return Looked::Gone };
        let now = monotonic_ns();
        let looked_before_ns = self.looked_at.replace(now).map_or(0, |at| now.saturating_sub(at));
        if self.noted == Some(before.turns) {
            return Looked::Nothing;
        }
        let waits = match self.files.place() {
            Place::Running => return Looked::Nothing,
            Place::Unknown => return Looked::Refused,
            // A process that has ended and has not been asked how has no stack any more.
            Place::Waiting(waits) if waits.stack_pointer == 0 => return Looked::Nothing,
            Place::Waiting(waits) => waits,
        };
        let at = monotonic_ns();
        let user = self.stack(&waits, scratch);
        let call::Found { reason, object, holder } = call::what_for(self.pid, self.tid, waits.call);
        if self.files.schedule().is_none_or(|after| after.turns != before.turns) {
            return Looked::Nothing;
        }
        self.noted = Some(before.turns);
        let sample = self.sample(user);
        let kind = EventKind::Waiting(Box::new(Waiting { sample, reason, object, holder, looked_before_ns }));
        Looked::Waits(Event { time: Timestamp(at), cpu: None, kind })
    }

    /// The stack, as far as its registers and memory can be had without stopping the thread.
    fn stack(&mut self, waits: &Waits, scratch: &mut Vec<u8>) -> UserStack {
        // The kernel does not say of what kind the registers are. A program of 32 bits has no stack further up.
        if let Ok(ip) = u32::try_from(waits.instruction_pointer)
            && u32::try_from(waits.stack_pointer).is_ok()
            && *self.has_32_bits.get_or_insert_with(|| proc::has_32_bits(self.pid))
        {
            let registers = Box::new(Registers::X86 { ip });
            return UserStack::Copied { registers, stack: Bytes::new(), limited: false };
        }
        let (len, limited) = self.window(waits.stack_pointer);
        scratch.resize(LARGEST_COPY as usize, 0);
        let room = scratch.get_mut(..len).unwrap_or_default();
        let read = read_memory(self.pid, waits.stack_pointer, room);
        let (values, known) = waits.registers();
        UserStack::Copied {
            registers: Box::new(Registers::X86_64Partial { values, known }),
            stack: Bytes::copy_from_slice(scratch.get(..read).unwrap_or_default()),
            limited: limited && read == len,
        }
    }

    /// How much of the stack to copy, and whether there is more: what is between its pointer and its end.
    fn window(&mut self, pointer: u64) -> (usize, bool) {
        if !self.stack.contains(&pointer) {
            self.stack = proc::writable_memory_at(self.pid, pointer).unwrap_or_default();
        }
        let len = self.stack.end.saturating_sub(pointer);
        let is_stack = len > 0 && self.stack.end - self.stack.start <= LARGEST_STACK;
        let most = if is_stack { LARGEST_COPY } else { COPY_OF_UNKNOWN };
        let wanted = if len > 0 { len } else { most };
        (wanted.min(most) as usize, wanted > most)
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
