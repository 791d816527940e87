//! An allocator around another one, which records what is allocated.

use core::alloc::{GlobalAlloc, Layout};

/// An allocator that calls another one, and records what a program allocates while it is recorded.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: nyquist_alloc::Recorded<std::alloc::System> = nyquist_alloc::Recorded::new(std::alloc::System);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded<A> {
    inner: A,
}

impl<A> Recorded<A> {
    /// Records what `inner` allocates.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(nyquist_preloaded)
))]
mod recorded {
    use super::{GlobalAlloc, Layout, Recorded};
    use crate::sys::linux;

    /// Tells the recorder that the program records its allocations itself, so that it preloads nothing. It is in
    /// programs that use it, and not in all that link this crate.
    #[link_section = ".nyquist_alloc"]
    static WRAPS: [u8; 8] = crate::protocol::MAGIC;

    // SAFETY: every call is passed on with the same arguments, and what it returns is returned.
    unsafe impl<A: GlobalAlloc> GlobalAlloc for Recorded<A> {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's promises are passed on.
            let block = unsafe { self.inner.alloc(layout) };
            note(block, layout.size());
            block
        }

        #[inline]
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's promises are passed on.
            let block = unsafe { self.inner.alloc_zeroed(layout) };
            note(block, layout.size());
            block
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            if !linux::is_off() {
                linux::release(block as usize, layout.size()).record();
            }
            // SAFETY: the caller's promises are passed on.
            unsafe { self.inner.dealloc(block, layout) };
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if linux::is_off() {
                // SAFETY: the caller's promises are passed on.
                return unsafe { self.inner.realloc(block, layout, size) };
            }
            let released = linux::release(block as usize, layout.size());
            // SAFETY: the caller's promises are passed on.
            let moved = unsafe { self.inner.realloc(block, layout, size) };
            if moved.is_null() {
                linux::restore(released);
            } else {
                released.record();
                note(moved, size);
            }
            moved
        }
    }

    #[inline(always)]
    fn note(block: *mut u8, size: usize) {
        if !linux::is_off() && !block.is_null() {
            core::hint::black_box(&WRAPS);
            linux::allocated(block as usize, size, size, linux::here);
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
// SAFETY: every call is passed on with the same arguments, and what it returns is returned.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recorded<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.realloc(block, layout, size) }
    }
}
