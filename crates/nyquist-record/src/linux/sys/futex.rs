//! Wakes a program that sleeps on a word of a file: futex(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use super::limits::page_size;

/// Wakes all threads that sleep on a word of the file's first page.
pub(crate) fn wake(file: &File, at: usize) -> io::Result<()> {
    let len = page_size();
    assert!(at.is_multiple_of(4) && at < len, "no word of the first page");
    // SAFETY: the kernel chooses an unmapped address, so no memory of this process changes.
    let start = unsafe {
        let null = std::ptr::null_mut();
        libc::mmap(null, len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the word is in the mapping, and only the kernel reads it. If another process has truncated the
    // file, a read by this process would raise SIGBUS, but the kernel returns EFAULT.
    let woken = unsafe { libc::syscall(libc::SYS_futex, start.byte_add(at), libc::FUTEX_WAKE, i32::MAX) };
    let failure = (woken < 0).then(io::Error::last_os_error);
    // SAFETY: this is exactly the mapping that was just made, and nothing refers to it.
    unsafe { libc::munmap(start, len) };
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_such_a_page_is_an_error() {
        let file = crate::linux::sys::beneath::memory_file(c"futex").unwrap();
        file.set_len(4096).unwrap();
        assert!(wake(&file, 8).is_ok());
        file.set_len(0).unwrap();
        assert_eq!(wake(&file, 8).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
