//! A perf event's ring buffer: shared memory that the kernel writes records to and this process reads from
//! (perf_event_open(2), "MMAP layout").

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nyquist_convert::sys::fetch;
use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::limits::page_size;

/// A mapped ring. Positions count bytes since the ring was made and never wrap; the bytes from the tail to the
/// head are whole records that the kernel does not touch until they are released.
#[derive(Debug)]
pub(crate) struct Ring {
    control: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    /// A power of two.
    len: usize,
    mapped: usize,
}

// SAFETY: the memory belongs to this value alone; nothing in it is bound to the thread that mapped it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event, with `pages` pages for records (a power of two).
    pub(crate) fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Self> {
        let mapped = (pages + 1) * page_size();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), mapped, protection, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::InvalidData)?;
        // SAFETY: the mapping is `pages + 1` pages long, and the records follow its first page.
        let data = unsafe { base.add(page_size()) };
        Ok(Self { control: base.cast(), data, len: pages * page_size(), mapped })
    }

    /// Where the kernel will write the next record. What is before it can be read.
    pub(crate) fn head(&self) -> u64 {
        // SAFETY: `data_head` is an aligned u64 in the control page, which is mapped for as long as `self` lives,
        // and which this process and the kernel access atomically only.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*self.control.as_ptr()).data_head) };
        head.load(Ordering::Acquire)
    }

    fn tail_field(&self) -> &AtomicU64 {
        // SAFETY: `data_tail` is an aligned u64 in the control page, which is mapped for as long as `self` lives,
        // and which this process and the kernel access atomically only.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control.as_ptr()).data_tail) }
    }

    /// Where the oldest record that was not released begins.
    pub(crate) fn tail(&self) -> u64 {
        self.tail_field().load(Ordering::Relaxed)
    }

    /// Gives the bytes before `tail` back to the kernel.
    pub(crate) fn release(&mut self, tail: u64) {
        self.tail_field().store(tail, Ordering::Release);
    }

    /// Copies the bytes from `position` on, which must lie between the tail and the head.
    #[inline]
    pub(crate) fn copy(&self, position: u64, out: &mut [u8]) {
        let at = position as usize & (self.len - 1);
        if out.len() <= self.len - at {
            // SAFETY: the bytes from `at` on are within the ring, and `out` has room for them. The kernel does not write to bytes
            // between the tail and the head.
            unsafe { std::ptr::copy_nonoverlapping(self.data.as_ptr().add(at), out.as_mut_ptr(), out.len()) };
        } else {
            self.copy_around_end(at, out);
        }
    }

    /// Has the processor fetch the cache line at a position, wherever that is, and does not wait for it.
    #[inline]
    pub(crate) fn fetch(&self, position: u64) {
        fetch(self.data.as_ptr().wrapping_add(position as usize & (self.len - 1)));
    }

    /// Copies bytes that begin before the ring's end and go on at its start.
    #[cold]
    fn copy_around_end(&self, at: usize, out: &mut [u8]) {
        let first = out.len().min(self.len - at);
        let second = (out.len() - first).min(self.len);
        // SAFETY: `at + first` is at most the ring's length, `second` too, and `out` has room for both. The
        // kernel does not write to bytes between the tail and the head.
        unsafe {
            std::ptr::copy_nonoverlapping(self.data.as_ptr().add(at), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(self.data.as_ptr(), out.as_mut_ptr().add(first), second);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.control.as_ptr().cast(), self.mapped) };
    }
}
