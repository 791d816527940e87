//! A reading of a thread's stack.

use super::ids::{Pid, Tid};
use super::timestamp::Timestamp;
use bytes::Bytes;
use nyquist_object::Avma;

/// The outer part of a thread's stack, as it was in the memory of its living process shortly after samples
/// whose copies do not reach that far. [`Event::time`](super::Event::time) is older than these samples, so that the
/// event is converted before them. The time of the reading is [`read_at`](Self::read_at).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveStack {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// When it was read.
    pub read_at: Timestamp,
    /// The first address, that of a page.
    pub start: Avma,
    /// The pages from there on, each of [`PAGE`](Self::PAGE) bytes.
    pub pages: Vec<Bytes>,
    /// If it was read at the moment of a sample, before anything could change: the stack pointer of that sample.
    pub stack_pointer: Option<Avma>,
}

impl LiveStack {
    /// The bytes of a page, whatever the machine's pages are.
    pub const PAGE: usize = 4096;

    /// The eight bytes at an address as a little-endian number, if they were read. `None` if they are in two
    /// pages.
    pub fn read_u64(&self, address: Avma) -> Option<u64> {
        let offset = self.offset(address)?;
        let page = self.pages.get(offset / Self::PAGE)?;
        let bytes = page.get(offset % Self::PAGE..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// The page that begins at an address, if it was read.
    pub fn page_at(&self, address: Avma) -> Option<&Bytes> {
        let offset = self.offset(address)?;
        self.pages.get(offset / Self::PAGE).filter(|_| offset.is_multiple_of(Self::PAGE))
    }

    /// The first address of the page that an address is in.
    pub const fn page_of(address: Avma) -> Avma {
        Avma(address.0 & !(Self::PAGE as u64 - 1))
    }

    /// The distance of an address from the first one.
    fn offset(&self, address: Avma) -> Option<usize> {
        usize::try_from(address.0.checked_sub(self.start.0)?).ok()
    }
}
