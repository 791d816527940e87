//! Memory shared with the recorder, the clock, and what happens at a fork: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(feature = "tracing")]
use std::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, Ordering},
};

/// The time in nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The calling thread's number.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// A lock for work of nanoseconds, which costs half as much as a mutex. No thread sleeps, so none need be
/// woken.
#[cfg(feature = "tracing")]
#[derive(Debug, Default)]
pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, the one that has set `taken`.
#[cfg(feature = "tracing")]
unsafe impl<T: Send> Sync for SpinLock<T> {}

#[cfg(feature = "tracing")]
impl<T> SpinLock<T> {
    /// Calls `then` with the value, alone. It must not lock again.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&mut T) -> R) -> R {
        let mut tries = 0_u32;
        while self.taken.swap(true, Ordering::Acquire) {
            tries += 1;
            // Whoever has it may wait for the CPU that is used up here.
            if tries.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let _release = Release(&self.taken);
        // SAFETY: this thread has changed `taken` to true. No other thread can do so before `_release` is
        // dropped, after the last use of the reference.
        then(unsafe { &mut *self.value.get() })
    }
}

/// Frees a lock, also when what was done under it panics.
#[cfg(feature = "tracing")]
struct Release<'a>(&'a AtomicBool);

#[cfg(feature = "tracing")]
impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A file's bytes as memory that its other readers and writers see.
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is the process's, not the thread's; it lives as long as the value.
unsafe impl Send for Shared {}

// SAFETY: what a shared reference allows are atomic operations.
unsafe impl Sync for Shared {}

impl Shared {
    /// Gives a file `len` bytes that exist, so that writing to them can never fail, and maps them. They begin
    /// at a multiple of the page's size, and no other code has them mapped.
    pub(crate) fn map_new(file: &File, at: u64, len: usize) -> io::Result<Self> {
        let end = at.checked_add(len as u64).filter(|end| *end <= file_size_limit());
        // Beyond the limit the kernel would end the program (setrlimit(2), RLIMIT_FSIZE).
        end.ok_or(io::ErrorKind::FileTooLarge)?;
        let at = libc::off_t::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: the call takes no memory of ours.
        check(unsafe { libc::fallocate(file.as_raw_fd(), 0, at, len as libc::off_t) })?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: the kernel chooses a place where nothing is mapped, so no memory of ours changes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, file.as_raw_fd(), at) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Copies bytes to a place in the mapping; what would be beyond it is left out.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if at <= self.len && bytes.len() <= self.len - at {
            // SAFETY: the place is in the mapping, as was just checked. `bytes` cannot overlap it, because no
            // reference into the mapping is ever given out.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len());
            }
        }
    }

    /// The number at a place that is a multiple of 8.
    pub(crate) fn u64_at(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len, "no aligned place in the mapping");
        // SAFETY: the place is in the mapping and aligned, as was just checked. The mapping lives as long as
        // `self`, and this program accesses the place only by atomic operations.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The number at a place that is a multiple of 4.
    pub(crate) fn u32_at(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len, "no aligned place in the mapping");
        // SAFETY: as for `u64_at`.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Sleeps until the number's waiters are woken, if it still is `seen`.
    pub(crate) fn wait(&self, at: usize, seen: u32) {
        let word = self.u32_at(at).as_ptr();
        let forever = std::ptr::null::<libc::timespec>();
        // SAFETY: `word` is an aligned word of the mapping, which outlives the call. Whether it was woken,
        // interrupted, or never slept, the caller looks at the word again.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, seen, forever) };
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, whole, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A file in memory, which goes away with its last descriptor. No process can make it shorter. Children that
/// have given up rights have it, too, and a missing page of the mapping would end the program.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a string that ends with a zero byte; the call gives a descriptor of its own.
    let descriptor = check(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: the call takes no memory of ours.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// Gives the memory of a part of a file back; the part has zeros from then on, also where it is mapped.
pub(crate) fn free(file: &File, at: u64, len: u64) -> io::Result<()> {
    let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let (at, len) = (at.try_into().map_err(too_large)?, len.try_into().map_err(too_large)?);
    // SAFETY: the call uses none of this program's memory, and of the mapped pages the program has only atomic
    // numbers.
    check(unsafe { libc::fallocate(file.as_raw_fd(), flags, at, len) }).map(drop)
}

/// How long a file of this process may become.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is a valid rlimit that the call writes to.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// Has a function called in every child that this process forks. It must do nothing but atomic operations.
pub(crate) fn after_fork(in_child: extern "C" fn()) {
    // SAFETY: the function lives as long as the program, and does what is allowed between fork and exec.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
