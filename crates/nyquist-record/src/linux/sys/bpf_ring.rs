//! The ring that programs in the kernel write to (`BPF_MAP_TYPE_RINGBUF`; Linux's `kernel/bpf/ringbuf.c`).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::bpf::{MapKind, create_map};
use super::limits::page_size;

/// The bits of a record's length that say that it is being written, and that it was given up.
const IS_BUSY: u32 = 1 << 31;
const IS_DISCARDED: u32 = 1 << 30;
/// The bytes before each record: its length, and a number that only the kernel uses.
const BEFORE_RECORD: usize = 8;

/// A ring, mapped: a page with the reader's position, one with the kernel's, and the data twice, so that each record is
/// in one piece.
#[derive(Debug)]
pub(crate) struct BpfRing {
    map: OwnedFd,
    consumer: NonNull<u8>,
    producer: NonNull<u8>,
    len: usize,
}

// SAFETY: nothing in the memory is bound to the thread that mapped it, and all access is by `&mut self`.
unsafe impl Send for BpfRing {}

impl AsFd for BpfRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl BpfRing {
    /// A ring with this many bytes, a power of two and whole pages.
    pub(crate) fn new(len: u32) -> io::Result<Self> {
        let map = create_map(MapKind::Ring, 0, 0, len)?;
        let len = len as usize;
        let consumer = mapped(&map, page_size(), libc::PROT_READ | libc::PROT_WRITE, 0)?;
        match mapped(&map, page_size() + 2 * len, libc::PROT_READ, page_size()) {
            Ok(producer) => Ok(Self { map, consumer, producer, len }),
            Err(error) => {
                // SAFETY: the page was mapped above, and nothing refers to it.
                unsafe { libc::munmap(consumer.as_ptr().cast(), page_size()) };
                Err(error)
            }
        }
    }

    /// Takes all finished records, as long as the function wants more.
    pub(crate) fn take(&mut self, mut record: impl FnMut(&[u8]) -> bool) {
        // SAFETY: both pages are mapped for as long as `self` lives; their first words are aligned, and accessed
        // atomically by the kernel, too.
        let (consumed, produced) = unsafe {
            (
                AtomicU64::from_ptr(self.consumer.as_ptr().cast()),
                AtomicU64::from_ptr(self.producer.as_ptr().cast()),
            )
        };
        let mut at = consumed.load(Ordering::Relaxed);
        let end = produced.load(Ordering::Acquire);
        while at < end {
            let place = page_size() + (at as usize & (self.len - 1));
            // SAFETY: the place is within the first copy of the data, and records begin at multiples of eight bytes.
            let len = unsafe { AtomicU32::from_ptr(self.producer.as_ptr().add(place).cast()) }
                .load(Ordering::Acquire);
            if len & IS_BUSY != 0 {
                break;
            }
            let bytes = ((len & !IS_DISCARDED) as usize).min(self.len - BEFORE_RECORD);
            // SAFETY: the record begins in the first copy of the data and is no longer than a copy, so it ends in the
            // second one. The kernel does not write to it until it is released below.
            let data = unsafe {
                std::slice::from_raw_parts(self.producer.as_ptr().add(place + BEFORE_RECORD), bytes)
            };
            if len & IS_DISCARDED == 0 && !record(data) {
                break;
            }
            at += (bytes + BEFORE_RECORD).next_multiple_of(8) as u64;
            consumed.store(at, Ordering::Release);
        }
    }
}

/// Maps a part of a ring.
fn mapped(map: &OwnedFd, len: usize, protection: libc::c_int, at: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice affects no memory of this process.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            protection,
            libc::MAP_SHARED,
            map.as_raw_fd(),
            at as libc::off_t,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

impl Drop for BpfRing {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these addresses and lengths, and nothing borrows from them any more.
        unsafe {
            libc::munmap(self.consumer.as_ptr().cast(), page_size());
            libc::munmap(self.producer.as_ptr().cast(), page_size() + 2 * self.len);
        }
    }
}
