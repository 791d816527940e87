//! The unsafe code: an allocator that keeps this process within a limit.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write as _};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The memory limit of the process, and the message if it is exceeded.
#[derive(Debug)]
pub(crate) struct DataLimit {
    pub(crate) bytes: u64,
    pub(crate) message: String,
}

/// The bytes that are allocated now.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// The most bytes that may be allocated.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The message if memory is exhausted. It is null while that must not end the process.
static MESSAGE: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// Whether the process is about to end because of exhausted memory.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Sets a limit for the process.
pub(crate) fn set_limit(limit: DataLimit) {
    // Never freed, because another thread may be about to print it.
    MESSAGE.store(Box::into_raw(Box::new(limit.message)), Ordering::Release);
    LIMIT.store(limit.bytes, Ordering::Release);
}

/// Removes the limit.
pub(crate) fn clear_limit() {
    LIMIT.store(u64::MAX, Ordering::Release);
    MESSAGE.store(ptr::null_mut(), Ordering::Release);
}

/// The system's allocator. If the process needs more memory than its limit, it prints a message and ends.
struct LimitedAllocator;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

// SAFETY: all arguments are passed on to the system's allocator unchanged, and its results are returned
// unchanged, or null, which stands for no memory.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the trait's requirements.
        within_limit(layout.size(), 0, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the trait's requirements.
        within_limit(layout.size(), 0, || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller meets the trait's requirements.
        within_limit(size, layout.size(), || unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller meets the trait's requirements.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocates `size` bytes in place of `before`, if that is within the limit.
#[inline]
fn within_limit(size: usize, before: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    let more = size as u64;
    let allocated = ALLOCATED.fetch_add(more, Ordering::Relaxed).saturating_add(more);
    let is_within = allocated.saturating_sub(before as u64) <= LIMIT.load(Ordering::Relaxed);
    let block = if is_within { allocate() } else { ptr::null_mut() };
    let unused = if block.is_null() { size } else { before };
    ALLOCATED.fetch_sub(unused as u64, Ordering::Relaxed);
    if block.is_null() {
        exit_if_limited();
    }
    block
}

#[cold]
fn exit_if_limited() {
    // SAFETY: it is null, or comes from a box that is never freed, and whose text is not changed.
    let Some(message) = (unsafe { MESSAGE.load(Ordering::Acquire).as_ref() }) else { return };
    // The message may need memory.
    LIMIT.store(u64::MAX, Ordering::Release);
    if EXITING.swap(true, Ordering::AcqRel) {
        // Another thread is about to end the process.
        loop {
            std::thread::park();
        }
    }
    #[expect(clippy::disallowed_methods, reason = "the process ends at once, and nothing else is printed")]
    let _ = io::stderr().write_all(message.as_bytes());
    std::process::exit(crate::failure::FAILED.into());
}
