//! What a thread keeps: how far its next sample is, and what it has counted.

use super::{arch, calls};
use core::cell::Cell;

/// A thread's own memory, which is zero when the thread begins. Signal handlers of the thread see it, too, so
/// each change is one store.
#[repr(C)]
pub(super) struct ThreadState {
    /// How many bytes are left until the next sample.
    pub(super) left: Cell<i64>,
    /// How many allocations the thread has made.
    pub(super) allocations: Cell<u64>,
    /// How much more it has allocated than freed since it last added this to the process's sum.
    pub(super) difference: Cell<i64>,
    /// How large this must be for that. A thread that has just begun adds small amounts, too, because it may end soon.
    pub(super) add_from: Cell<u64>,
    pub(super) random: Cell<u64>,
    /// The outer end of its stack.
    pub(super) stack_end: Cell<usize>,
    /// The lowest address from which all of the stack up to its end was found to be readable.
    pub(super) readable_from: Cell<usize>,
    /// The number of the recording that the state belongs to; 0 before its first sample.
    pub(super) recording: Cell<u32>,
    pub(super) id: Cell<u32>,
    /// Whether the thread is inside the allocator, which may call itself.
    pub(super) is_inside: Cell<bool>,
    /// Whether the thread is recording: what a signal handler allocates meanwhile is not recorded.
    pub(super) is_recording: Cell<bool>,
}

const _: () = assert!(core::mem::size_of::<ThreadState>() <= 128);

/// The thread's state.
#[inline(always)]
pub(super) fn state() -> &'static ThreadState {
    // SAFETY: the memory belongs to the thread for as long as it runs, is aligned to 64 bytes, and zero is a
    // value of each field. A reference does not leave the thread: the type has cells.
    unsafe { &*arch::thread_memory().cast::<ThreadState>() }
}

impl ThreadState {
    /// Prepares the state for a recording.
    pub(super) fn begin(&self, recording: u32) {
        let id = calls::thread_id();
        let is_first = id == calls::process_id();
        let seed = calls::now() ^ (u64::from(id) << 32) ^ (core::ptr::from_ref(self) as u64);
        self.id.set(id);
        self.random.set(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        self.stack_end.set(if is_first { calls::stack_of_first_thread() } else { arch::thread_pointer() });
        self.readable_from.set(self.stack_end.get());
        self.recording.set(recording);
    }
}
