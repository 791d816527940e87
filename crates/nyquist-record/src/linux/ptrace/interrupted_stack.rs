//! The stack of the code that a signal handler on a stack of its own has interrupted.

use bytes::Bytes;
use nyquist_convert::event::{EventKind, LiveStack, Pid, Tid, Timestamp};
use nyquist_object::Avma;

use super::tracer::Tracer;
use crate::linux::sys::ptrace;

/// The most that is read of it while the thread is stopped.
const MAX_BYTES: usize = 64 << 10;
const PAGE: u64 = LiveStack::PAGE as u64;

/// What was read of an interrupted stack. It is in the tracer's buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterruptedStack {
    /// The first address, that of a page.
    start: u64,
    len: usize,
}

impl Tracer {
    /// Reads the interrupted stack of a stopped thread, if its stack pointer is on a known signal stack.
    pub(super) fn read_interrupted(
        &mut self,
        (pid, tid): (u32, u32),
        pointer: u64,
    ) -> Option<InterruptedStack> {
        let signal_stack = self.signal_stacks.find((pid, tid), pointer).filter(|_| !self.out.is_full())?;
        let mut saved = [0; 8];
        if ptrace::read_memory(tid, signal_stack.pointer_at.0, &mut saved) != saved.len() {
            return None;
        }
        let interrupted = u64::from_ne_bytes(saved);
        if signal_stack.holds(Avma(interrupted)) {
            return None;
        }
        let start = interrupted & !(PAGE - 1);
        let (window, _) = self.window(pid, start, MAX_BYTES);
        let room = self.scratch.get_mut(..window)?;
        let len = ptrace::read_memory(tid, start, room);
        Some(InterruptedStack { start, len })
    }

    /// Records an interrupted stack for the sample at a time, whose stack pointer is on the signal stack.
    pub(super) fn report_interrupted(
        &mut self,
        ((pid, tid), time): ((u32, u32), u64),
        pointer: u64,
        interrupted: InterruptedStack,
    ) {
        let read = self.scratch.get(..interrupted.len).unwrap_or_default();
        let pages = read.as_chunks::<{ LiveStack::PAGE }>().0;
        let pages = pages.iter().map(|page| Bytes::copy_from_slice(page)).collect();
        let live = LiveStack {
            pid: Pid(pid),
            tid: Tid(tid),
            read_at: Timestamp(time),
            start: Avma(interrupted.start),
            pages,
            stack_pointer: Some(Avma(pointer)),
        };
        self.out.push(time, EventKind::LiveStack(live.into()));
    }
}
