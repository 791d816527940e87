//! The unsafe code: the memory allocator of the C library and the system's limit of it, and descriptors that
//! are known by their numbers.
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;
use std::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The first descriptor that is not one of the standard streams.
const FIRST_OTHER: libc::c_int = 3;

/// A duplicate of a descriptor that this program was given, by its number. The given one, unless it is a
/// standard stream, is not handed on to other programs any more: a pipe ends when all have closed it.
pub(crate) fn duplicate(number: u32) -> io::Result<File> {
    let number = libc::c_int::try_from(number).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: fcntl takes any number, and answers EBADF for one that is not open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FIRST_OTHER) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    if number >= FIRST_OTHER {
        // SAFETY: the flag has no memory behind it, and keeps the descriptor open here.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the kernel has just given us this descriptor, and no other code has its number.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// Makes each large block of memory a mapping of its own, always: such blocks grow without being copied, and go back to the
/// system when they are freed. Left alone, glibc puts them onto its heaps as soon as some have been freed (mallopt(3),
/// `M_MMAP_THRESHOLD`), and a conversion keeps a quarter more memory than it uses.
pub(crate) fn map_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// In bytes.
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: mallopt only stores a number, under the allocator's own lock. Where it refuses, nothing has changed.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}

/// How much memory the process may take, and the message when it would take more.
#[derive(Debug)]
pub(crate) struct DataLimit {
    pub(crate) bytes: u64,
    pub(crate) said: String,
}

/// The message when there is no more memory. It is null while that must not end the process.
static SAID: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// Whether the process is about to end for want of memory.
static ENDS: AtomicBool = AtomicBool::new(false);

/// The limit that there was before.
static BEFORE: Mutex<Option<Rlimit>> = Mutex::new(None);

/// Holds the process to a limit.
pub(crate) fn hold_data(limit: DataLimit) {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = *before.get_or_insert_with(|| getrlimit(Resource::Data));
    let least = |limit: Option<u64>, other: u64| Some(limit.map_or(other, |limit| limit.min(other)));
    let current = least(old.current, least(old.maximum, limit.bytes).unwrap_or(limit.bytes));
    // Never freed: another thread may be about to say it.
    SAID.store(Box::into_raw(Box::new(limit.said)), Ordering::Release);
    // Where the system refuses, memory ends where it did before.
    let _ = setrlimit(Resource::Data, Rlimit { current, maximum: old.maximum });
}

/// Restores the limit of before.
pub(crate) fn lift_data() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = before.take() {
        // It was allowed then, and the hard limit is still the same.
        let _ = setrlimit(Resource::Data, before);
        SAID.store(ptr::null_mut(), Ordering::Release);
    }
}

/// How large the address space may become, if there is a limit.
pub(crate) fn address_space() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// The system's allocator. If it has no more memory while the process has a limit, the process prints a
/// message and ends. The caller cannot go on without memory, and the standard library can only abort.
struct ReportingAllocator;

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator;

// SAFETY: all arguments are passed on to the system's allocator unchanged, and its results are returned
// unchanged.
unsafe impl GlobalAlloc for ReportingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the trait's requirements.
        there(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the trait's requirements.
        there(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller meets the trait's requirements.
        there(unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller meets the trait's requirements.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn there(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        end_if_held();
    }
    block
}

#[cold]
fn end_if_held() {
    // SAFETY: it is null, or comes from a box that is never freed, and whose text is not changed.
    let Some(said) = (unsafe { SAID.load(Ordering::Acquire).as_ref() }) else { return };
    if ENDS.swap(true, Ordering::AcqRel) {
        // Another thread is about to end the process. Without memory this one can only abort it before.
        loop {
            // SAFETY: it only waits.
            unsafe { libc::pause() };
        }
    }
    // By no lock that a waiting thread may have. Nothing can be said about a standard error that cannot be written to.
    let mut rest = said.as_bytes();
    while let Ok(written @ 1..) = rustix::io::write(rustix::stdio::stderr(), rest) {
        rest = &rest[written..];
    }
    // SAFETY: nothing of this process is used afterwards. A library's work at a regular exit may need memory.
    unsafe { libc::_exit(crate::failure::FAILED.into()) }
}
