//! A lock for work of nanoseconds.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// A lock for work of nanoseconds, which costs half as much as a mutex. No thread sleeps, so none must be
/// woken.
#[derive(Debug, Default)]
pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only one thread at a time accesses the value, the one that has set `taken`.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Calls `then` with exclusive access to the value. It must not lock again.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&mut T) -> R) -> R {
        let mut tries = 0_u32;
        while self.taken.swap(true, Ordering::Acquire) {
            tries += 1;
            // The thread that holds the lock may wait for the CPU that spins here.
            if tries % 64 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let _release = Release(&self.taken);
        // SAFETY: this thread has changed `taken` to true. No other thread can do so before `_release` is
        // dropped, after the last use of the reference.
        then(unsafe { &mut *self.value.get() })
    }
}

/// Releases a lock, also if the code under it panics.
struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
