//! Memory shared with the recorder, the clock, and the fork handler.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The time in nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, std::ptr::addr_of_mut!(time)) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// A file's bytes as memory shared with its other readers and writers.
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to the thread; it lives as long as the value.
unsafe impl Send for Shared {}

// SAFETY: a shared reference permits only atomic operations.
unsafe impl Sync for Shared {}

impl Shared {
    /// Allocates `len` bytes of a file, so that writing to them can never fail, and maps them. They begin
    /// at a multiple of the page size, and no other code has them mapped.
    pub(crate) fn map_new(file: &File, at: u64, len: usize) -> io::Result<Self> {
        let end = at.checked_add(len as u64).filter(|end| *end <= file_size_limit());
        // Beyond the limit, the kernel would end the program (setrlimit(2), RLIMIT_FSIZE).
        end.ok_or(io::ErrorKind::Other)?;
        let at = libc::off_t::try_from(at).map_err(|_| io::ErrorKind::Other)?;
        // SAFETY: the call uses none of this program's memory.
        check(unsafe { libc::fallocate(file.as_raw_fd(), 0, at, len as libc::off_t) })?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: the kernel chooses an unmapped address, so none of this program's memory changes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, file.as_raw_fd(), at) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Copies bytes to an offset in the mapping; bytes beyond the mapping are left out.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if at <= self.len && bytes.len() <= self.len - at {
            // SAFETY: the offset is in the mapping, as checked above. `bytes` cannot overlap it, because no
            // reference into the mapping is ever returned.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len());
            }
        }
    }

    /// The number at an offset that is a multiple of 8.
    pub(crate) fn u64_at(&self, at: usize) -> &AtomicU64 {
        assert!(at % 8 == 0 && at + 8 <= self.len, "no aligned place in the mapping");
        // SAFETY: the offset is in the mapping and aligned, as checked above. The mapping lives as long as
        // `self`, and this program accesses the word only by atomic operations.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The number at an offset that is a multiple of 4.
    pub(crate) fn u32_at(&self, at: usize) -> &AtomicU32 {
        assert!(at % 4 == 0 && at + 4 <= self.len, "no aligned place in the mapping");
        // SAFETY: as for `u64_at`.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Sleeps until the number's waiters are woken, if it still is `seen`.
    pub(crate) fn wait(&self, at: usize, seen: u32) {
        let word = self.u32_at(at).as_ptr();
        let forever = std::ptr::null::<libc::timespec>();
        // SAFETY: `word` is an aligned word of the mapping, which outlives the call. The caller checks the
        // word again, whether the thread was woken, was interrupted, or never slept.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, seen, forever) };
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that was made, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A file in memory, which is removed with its last descriptor. No process can shorten it. Children that
/// have given up rights have it, too, and a missing page of the mapping would end the program.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a string that ends with a zero byte; the call returns a new descriptor.
    let descriptor = check(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: the call uses none of this program's memory.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// Frees the memory of a part of a file. The part then contains zeros, also in mappings.
pub(crate) fn free(file: &File, at: u64, len: u64) -> io::Result<()> {
    let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let too_large = |_| io::Error::from(io::ErrorKind::Other);
    let (at, len) = (at.try_into().map_err(too_large)?, len.try_into().map_err(too_large)?);
    // SAFETY: the call uses none of this program's memory, and the program uses the mapped pages only by
    // atomic operations.
    check(unsafe { libc::fallocate(file.as_raw_fd(), flags, at, len) }).map(drop)
}

/// The size limit of this process's files.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is a valid rlimit that the call writes to.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, std::ptr::addr_of_mut!(limit)) };
    limit.rlim_cur
}

/// Registers a function to call in every child that this process forks. It must do nothing but atomic
/// operations.
pub(crate) fn after_fork(in_child: extern "C" fn()) {
    // SAFETY: the function lives as long as the program, and does only what is permitted between fork and
    // exec.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
