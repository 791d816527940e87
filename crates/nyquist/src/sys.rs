//! What takes unsafe code: the memory allocator of the C library, and descriptors that are known by their numbers.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;

/// The first descriptor that is not one of the standard streams.
const FIRST_OTHER: libc::c_int = 3;

/// A second descriptor of what this program was given under a number. The given one, unless it is a standard stream, is not handed
/// on to other programs any more: a pipe ends when all have closed it.
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
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
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
