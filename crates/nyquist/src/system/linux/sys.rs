//! The unsafe code: the memory allocator of the C library and the system's limit of it, and descriptors
//! given by number.
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

/// Duplicates an inherited descriptor, given by its number. The original, unless it is a standard stream,
/// is no longer passed to other programs, because a pipe ends only when all of them have closed it.
pub(crate) fn duplicate(number: u32) -> io::Result<File> {
    let number = libc::c_int::try_from(number).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: fcntl accepts any number, and returns EBADF for one that is not open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FIRST_OTHER) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    if number >= FIRST_OTHER {
        // SAFETY: the flag refers to no memory, and keeps the descriptor open here.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the kernel has just returned this descriptor, and no other code has its number.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// Gives freed memory back to the system. Memory that threads of the past have used stays with the allocator otherwise.
pub(crate) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes each of the allocator's locks, and gives pages back that no allocation is in.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes each large block of memory a separate mapping, always. Such blocks grow without being copied, and
/// are returned to the system when they are freed. By default, glibc allocates them on its heaps after
/// some have been freed (mallopt(3), `M_MMAP_THRESHOLD`). A conversion then keeps a quarter more memory
/// than it uses.
pub(crate) fn map_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// In bytes.
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: mallopt only stores a number, under the allocator's own lock. If it fails, nothing has
        // changed.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}

/// The memory limit of the process, and the message if it is exceeded.
#[derive(Debug)]
pub(crate) struct DataLimit {
    pub(crate) bytes: u64,
    pub(crate) message: String,
}

/// The message if memory is exhausted. It is null while that must not end the process.
static MESSAGE: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// Whether the process is about to end because of exhausted memory.
static EXITING: AtomicBool = AtomicBool::new(false);

/// The previous limit.
static BEFORE: Mutex<Option<Rlimit>> = Mutex::new(None);

/// Sets a limit for the process.
pub(crate) fn set_limit(limit: DataLimit) {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = *before.get_or_insert_with(|| getrlimit(Resource::Data));
    let least = |limit: Option<u64>, other: u64| Some(limit.map_or(other, |limit| limit.min(other)));
    let current = least(old.current, least(old.maximum, limit.bytes).unwrap_or(limit.bytes));
    // Never freed, because another thread may be about to print it.
    MESSAGE.store(Box::into_raw(Box::new(limit.message)), Ordering::Release);
    // If this fails, the previous limit stays.
    let _ = setrlimit(Resource::Data, Rlimit { current, maximum: old.maximum });
}

/// Restores the previous limit.
pub(crate) fn clear_limit() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = before.take() {
        // This limit was permitted then, and the hard limit is unchanged.
        let _ = setrlimit(Resource::Data, before);
        MESSAGE.store(ptr::null_mut(), Ordering::Release);
    }
}

/// The limit of the address space, if there is one.
pub(crate) fn address_space() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// The system's allocator. If it has no more memory while the process has a limit, the process prints a
/// message and ends. The caller cannot continue without memory, and the standard library can only abort.
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
        exit_if_limited();
    }
    block
}

#[cold]
fn exit_if_limited() {
    // SAFETY: it is null, or comes from a box that is never freed, and whose text is not changed.
    let Some(message) = (unsafe { MESSAGE.load(Ordering::Acquire).as_ref() }) else { return };
    if EXITING.swap(true, Ordering::AcqRel) {
        // Another thread is about to end the process. Without memory, this thread could only abort it
        // earlier.
        loop {
            // SAFETY: it only waits.
            unsafe { libc::pause() };
        }
    }
    // Written without locks that a waiting thread may hold. A failure to write cannot be reported.
    let mut rest = message.as_bytes();
    while let Ok(written @ 1..) = rustix::io::write(rustix::stdio::stderr(), rest) {
        rest = &rest[written..];
    }
    // SAFETY: no data of this process is used afterwards. `exit` is not used, because libraries' exit
    // handlers may need memory.
    unsafe { libc::_exit(crate::failure::FAILED.into()) }
}

#[cfg(test)]
pub(super) mod tests {
    /// Sends a signal that only the calling thread receives. Returns whether it was sent.
    pub(in crate::system::linux) fn raise_with_default_action(signal: libc::c_int) -> bool {
        // A script's shell lets what it starts in the background ignore the signals of keys.
        // SAFETY: the calls take no pointers. Callers block the signal in their thread, so that it ends nothing.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal) == 0
        }
    }
}
