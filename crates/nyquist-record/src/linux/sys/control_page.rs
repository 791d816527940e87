//! The page that a program with markers shares with a recorder that attaches.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nyquist_tracing::protocol::control;

/// A program's control page. Its file is sealed by nobody: should the program shrink it, it does so to itself as well.
#[derive(Debug)]
pub(crate) struct ControlPage {
    start: NonNull<u8>,
}

// SAFETY: the mapping is the process's, not the thread's; it lives as long as the value.
unsafe impl Send for ControlPage {}

impl ControlPage {
    /// Maps the page of a file that has its full length.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < control::LEN as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a place where nothing is mapped, so no memory of ours changes.
        let start = unsafe {
            let null = std::ptr::null_mut();
            libc::mmap(null, control::LEN, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)? })
    }

    /// Tells the program where marker files go from now on, or that nobody wants them any more.
    pub(crate) fn set(&self, folder: Option<&[u8]>) {
        let state = self.word(control::STATE);
        let last = state.load(Ordering::Relaxed);
        let Some(folder) = folder else {
            state.store(0, Ordering::Release);
            return self.wake();
        };
        let len = folder.len().min(control::LEN - control::PATH);
        // SAFETY: the bytes lie in the page, whose whole length is mapped, and nothing else of this program refers to it.
        unsafe {
            let path = self.start.as_ptr().add(control::PATH);
            std::ptr::copy_nonoverlapping(folder.as_ptr(), path, len);
        }
        self.word(control::PATH_LEN).store(len as u32, Ordering::Relaxed);
        state.store(last.wrapping_add(1).max(1), Ordering::Release);
        self.wake();
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `at` is one of the two aligned words at the page's start, which is mapped as long as `self` lives
        // and which this program touches by atomic operations alone.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    fn wake(&self) {
        let word = self.word(control::STATE).as_ptr();
        // SAFETY: `word` is an aligned word of the mapping, which outlives the call. That nobody waits is no error.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Drop for ControlPage {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, whole, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), control::LEN) };
    }
}
