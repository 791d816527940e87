//! A perf event's ring buffer: shared memory that the kernel writes records to and this process reads from
//! (perf_event_open(2), "MMAP layout").

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, copy_nonoverlapping};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::limits::page_size;

/// A mapped ring. Positions count bytes since the ring was made and never wrap. The bytes from the tail to
/// the head are whole records that the kernel does not modify until they are released.
#[derive(Debug)]
pub(crate) struct Ring {
    control: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    /// A power of two.
    len: usize,
    mapping: Arc<RingMapping>,
}

// SAFETY: nothing in the memory is bound to the thread that mapped it. While this thread gives bytes back to
// the kernel, other threads only read single words.
unsafe impl Send for Ring {}

/// The memory of a ring. It is unmapped when nothing reads it any more.
#[derive(Debug)]
struct RingMapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: nothing is done with the address before the mapping is dropped, and any thread may unmap memory.
unsafe impl Send for RingMapping {}
// SAFETY: a shared reference gives access to nothing: both fields are read only when the mapping is dropped.
unsafe impl Sync for RingMapping {}

impl Ring {
    /// Maps the ring of an event, with `pages` pages for records (a power of two).
    pub(crate) fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Self> {
        let mapped = (pages + 1) * page_size();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice affects no memory of this process.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), mapped, protection, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::InvalidData)?;
        // SAFETY: the mapping is `pages + 1` pages long, and the records follow its first page.
        let data = unsafe { base.add(page_size()) };
        let mapping = Arc::new(RingMapping { base, len: mapped });
        Ok(Self { control: base.cast(), data, len: pages * page_size(), mapping })
    }

    /// A view of the same records that releases none of them.
    pub(crate) fn view(&self) -> RingView {
        let mapping = Arc::clone(&self.mapping);
        RingView { control: self.control, data: self.data, len: self.len, _mapping: mapping }
    }

    /// Where the kernel will write the next record. What is before it is readable.
    pub(crate) fn head(&self) -> u64 {
        // SAFETY: the control page is mapped for as long as `self` lives.
        unsafe { head_field(self.control) }.load(Ordering::Acquire)
    }

    fn tail_field(&self) -> &AtomicU64 {
        // SAFETY: the control page is mapped for as long as `self` lives.
        unsafe { tail_field(self.control) }
    }

    /// Where the oldest unreleased record begins.
    pub(crate) fn tail(&self) -> u64 {
        self.tail_field().load(Ordering::Relaxed)
    }

    /// Releases the bytes before `tail` to the kernel.
    pub(crate) fn release(&mut self, tail: u64) {
        self.tail_field().store(tail, Ordering::Release);
    }

    /// Copies the bytes from `position` on, which must lie between the tail and the head.
    #[inline]
    pub(crate) fn copy(&self, position: u64, out: &mut [u8]) {
        let at = position as usize & (self.len - 1);
        if out.len() <= self.len - at {
            // SAFETY: the bytes from `at` on are within the ring, and `out` has room for them. The kernel
            // does not write to bytes between the tail and the head.
            unsafe { copy_nonoverlapping(self.data.as_ptr().add(at), out.as_mut_ptr(), out.len()) };
        } else {
            self.copy_around_end(at, out);
        }
    }

    /// Copies bytes that begin before the ring's end and continue at its start.
    #[cold]
    fn copy_around_end(&self, at: usize, out: &mut [u8]) {
        let first = out.len().min(self.len - at);
        let second = (out.len() - first).min(self.len);
        // SAFETY: `at + first` is at most the ring's length, `second` too, and `out` has room for both. The
        // kernel does not write to bytes between the tail and the head.
        unsafe {
            copy_nonoverlapping(self.data.as_ptr().add(at), out.as_mut_ptr(), first);
            copy_nonoverlapping(self.data.as_ptr(), out.as_mut_ptr().add(first), second);
        }
    }
}

/// A view of a ring for a thread other than the one that drains it. What it reads may be released to the
/// kernel at the same time, and be overwritten.
#[derive(Debug)]
pub(crate) struct RingView {
    control: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    len: usize,
    _mapping: Arc<RingMapping>,
}

// SAFETY: nothing in the memory is bound to a thread, and it is read word by word, atomically.
unsafe impl Send for RingView {}

impl RingView {
    /// Where the kernel will write the next record.
    pub(crate) fn head(&self) -> u64 {
        // SAFETY: the control page is mapped for as long as `self` lives.
        unsafe { head_field(self.control) }.load(Ordering::Acquire)
    }

    /// Where the oldest unreleased record begins. The value is at least as recent as everything that was read
    /// before.
    pub(crate) fn tail(&self) -> u64 {
        fence(Ordering::Acquire);
        // SAFETY: the control page is mapped for as long as `self` lives.
        unsafe { tail_field(self.control) }.load(Ordering::Relaxed)
    }

    /// The aligned word that contains `position`. It is what the kernel wrote if the tail has not passed it
    /// afterwards.
    pub(crate) fn word(&self, position: u64) -> u64 {
        let at = position as usize & (self.len - 1) & !7;
        // SAFETY: the word is aligned and within the ring, which is mapped for as long as `self` lives. The
        // kernel may write to it at the same time, but nothing in this process does.
        let word = unsafe { AtomicU64::from_ptr(self.data.as_ptr().add(at).cast()) };
        word.load(Ordering::Relaxed)
    }
}

/// The kernel's end of a ring.
///
/// # Safety
///
/// The control page must be mapped for as long as the field is used.
unsafe fn head_field<'a>(control: NonNull<perf_event_mmap_page>) -> &'a AtomicU64 {
    // SAFETY: `data_head` is an aligned u64 that this process and the kernel access atomically only.
    unsafe { AtomicU64::from_ptr(&raw mut (*control.as_ptr()).data_head) }
}

/// The reader's end of a ring.
///
/// # Safety
///
/// The control page must be mapped for as long as the field is used.
unsafe fn tail_field<'a>(control: NonNull<perf_event_mmap_page>) -> &'a AtomicU64 {
    // SAFETY: `data_tail` is an aligned u64 that this process and the kernel access atomically only.
    unsafe { AtomicU64::from_ptr(&raw mut (*control.as_ptr()).data_tail) }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// The offset of `data_head` in the control page (`struct perf_event_mmap_page`).
    const DATA_HEAD: u64 = 1024;

    /// The kernel's side of a ring, which is a file here.
    pub(crate) struct Kernel {
        file: File,
        bytes: usize,
        pub(crate) head: u64,
    }

    /// An empty ring with this many bytes for records (whole pages), and its writer.
    pub(crate) fn empty_ring(bytes: usize) -> (Ring, Kernel) {
        static RINGS: AtomicU32 = AtomicU32::new(0);
        let number = RINGS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nyquist-ring-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len((page_size() + bytes) as u64).unwrap();
        let ring = Ring::map(file.as_fd(), bytes / page_size()).unwrap();
        (ring, Kernel { file, bytes, head: 0 })
    }

    impl Kernel {
        /// Writes bytes at an offset from the head. They must not wrap around to the ring's start.
        pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) {
            let at = page_size() as u64 + (self.head + offset) % self.bytes as u64;
            self.file.write_all_at(bytes, at).unwrap();
        }

        /// Moves the head forward by this many bytes.
        pub(crate) fn advance(&mut self, len: u64) {
            self.head += len;
            self.file.write_all_at(&self.head.to_ne_bytes(), DATA_HEAD).unwrap();
        }
    }
}
