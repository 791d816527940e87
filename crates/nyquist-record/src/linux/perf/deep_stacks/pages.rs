//! Pages of living processes' stacks, read repeatedly. Pages that have not changed share the same memory.

use std::ops::Range;

use bytes::Bytes;
use nyquist_convert::event::LiveStack;
use nyquist_object::Avma;

use crate::linux::target_access;
use crate::pool::Pool;

/// Stacks are read in pages of this size.
pub(super) const PAGE: u64 = LiveStack::PAGE as u64;
/// The same, as the length of a page in memory.
const PAGE_LEN: usize = LiveStack::PAGE;
/// A page that was never written to.
static UNUSED: [u8; PAGE_LEN] = [0; PAGE_LEN];
/// The maximum that is read of a stack at once. What lies beyond is not read.
pub(super) const MAX_READ_BYTES: u64 = 2 << 20;
/// How many pages are kept in one buffer. With single allocations, the page faults would take longer than the
/// reading.
const PAGES_PER_BUFFER: usize = 8;
/// The most buffers that are reused: 16 MB. Most recordings need a few dozen of them.
const POOLED: usize = 512;

/// The buffer that memory is read into, and the pool for the pages that are kept.
pub(crate) struct PageBuffers {
    scratch: Vec<u8>,
    /// The address of the memory in it.
    start: u64,
    /// How many bytes were read.
    read: usize,
    store: PageStore,
}

/// The memory of pages that are kept.
#[derive(Debug)]
pub(super) struct PageStore {
    /// New memory costs a page fault for each page, which takes longer than reading it.
    pool: Pool,
}

impl PageBuffers {
    pub(crate) fn new() -> Self {
        Self { scratch: Vec::new(), start: 0, read: 0, store: PageStore::new() }
    }

    /// Reads a part of a process's memory, of whole pages, up to the first unreadable byte. Returns whether
    /// any page was read.
    pub(crate) fn read(&mut self, pid: u32, part: Range<u64>) -> bool {
        let len = part.end.saturating_sub(part.start) as usize;
        self.scratch.resize(len.max(self.scratch.len()), 0);
        self.start = part.start;
        self.read = self.scratch.get_mut(..len).map_or(0, |room| target_access::read(pid, part.start, room));
        !self.read_pages().is_empty()
    }

    /// The pages of the last reading.
    fn read_pages(&self) -> &[[u8; PAGE_LEN]] {
        self.scratch.get(..self.read).unwrap_or_default().as_chunks().0
    }

    /// The last reading: its first address, and its pages. Pages that are the same as in an earlier reading
    /// share its memory.
    pub(crate) fn pages_since(&self, earlier: Option<&LiveStack>) -> (Avma, Vec<Bytes>) {
        (Avma(self.start), self.store.shared(self.start, self.read_pages(), earlier).0)
    }
}

impl PageStore {
    pub(super) fn new() -> Self {
        Self { pool: Pool::of(POOLED, PAGES_PER_BUFFER * PAGE_LEN) }
    }

    /// Copies pages, one after the other, into a buffer of the pool, or into new memory if the pool is empty.
    fn keep(&self, pages: &[(usize, &[u8; PAGE_LEN])]) -> Bytes {
        let Some(mut writer) = self.pool.take_leaving(0) else {
            return pages.iter().flat_map(|(_, page)| page.iter().copied()).collect();
        };
        for (_, page) in pages {
            if let Some(room) = writer.room().first_chunk_mut() {
                *room = **page;
                writer.advance(PAGE_LEN);
            }
        }
        writer.into_bytes()
    }

    /// Keeps pages from an address on. Those that are the same as in an earlier reading share its memory. Also returns
    /// how many do not.
    pub(super) fn shared(
        &self,
        start: u64,
        read: &[[u8; PAGE_LEN]],
        earlier: Option<&LiveStack>,
    ) -> (Vec<Bytes>, usize) {
        let mut pages = vec![Bytes::new(); read.len()];
        let mut changed = Vec::new();
        let addresses = (start..).step_by(PAGE_LEN);
        for (index, (page, address)) in read.iter().zip(addresses).enumerate() {
            let known = earlier.and_then(|earlier| earlier.page_at(Avma(address)));
            match known.filter(|known| known.as_ref() == page) {
                Some(known) => pages[index] = known.clone(),
                None if *page == UNUSED => pages[index] = Bytes::from_static(&UNUSED),
                None => changed.push((index, page)),
            }
        }
        for piece in changed.chunks(PAGES_PER_BUFFER) {
            let retained = self.keep(piece);
            for (place, (index, _)) in piece.iter().enumerate() {
                pages[*index] = retained.slice(place * PAGE_LEN..(place + 1) * PAGE_LEN);
            }
        }
        (pages, changed.len())
    }
}

#[cfg(test)]
mod tests {
    use nyquist_convert::event::{Pid, Tid, Timestamp};

    use super::*;

    /// Memory into which pages were read from an address on.
    fn filled(memory: PageBuffers, start: u64, pages: &[[u8; PAGE_LEN]]) -> PageBuffers {
        let scratch = pages.concat();
        PageBuffers { read: scratch.len(), scratch, start, ..memory }
    }

    /// A reading that follows an earlier one.
    fn next(earlier: Option<&LiveStack>, memory: &PageBuffers) -> LiveStack {
        let (start, pages) = memory.pages_since(earlier);
        LiveStack { pid: Pid(1), tid: Tid(1), read_at: Timestamp(0), start, pages, stack_pointer: None }
    }

    fn page(byte: u8) -> [u8; PAGE_LEN] {
        [byte; PAGE_LEN]
    }

    #[test]
    fn pages_that_have_changed_are_new_and_no_others() {
        let before: Vec<_> = (0..40).map(page).collect();
        let memory = filled(PageBuffers::new(), 0x10_0000, &before);
        let first = next(None, &memory);
        // The stack has grown by a page, and every third page of the rest has changed.
        let now: Vec<_> = (0..41_u8).map(|n| page(if n % 3 == 0 { 100 + n } else { n - 1 })).collect();
        let second = next(Some(&first), &filled(memory, 0xf_f000, &now));
        for (index, (bytes, now)) in second.pages.iter().zip(&now).enumerate() {
            assert_eq!(bytes.as_ref(), now, "{index}");
            let is_old = index > 0 && first.pages[index - 1].as_ptr() == bytes.as_ptr();
            assert_eq!(is_old, index % 3 != 0, "{index}");
        }
        assert_eq!((second.start, second.pages.len()), (Avma(0xf_f000), 41));
    }

    #[test]
    fn unused_pages_take_no_memory() {
        let store = PageStore::new();
        let (pages, changed) = store.shared(0, &[page(0), page(3), page(0)], None);
        assert_eq!((pages[0].as_ptr(), changed), (pages[2].as_ptr(), 1));
        assert_eq!([pages[0][..] == page(0), pages[1][..] == page(3)], [true; 2]);
    }

    #[test]
    fn memory_is_read_up_to_what_is_unreadable() {
        let own: Vec<u8> = (0..5 * PAGE_LEN).map(|at| (at / PAGE_LEN) as u8).collect();
        let start = (own.as_ptr() as u64).next_multiple_of(PAGE_LEN as u64);
        let mut memory = PageBuffers::new();
        assert!(memory.read(std::process::id(), start..start + 3 * PAGE));
        let pages = next(None, &memory);
        assert_eq!((pages.start, pages.pages.len()), (Avma(start), 3));
        let at = start as usize - own.as_ptr() as usize;
        assert!(pages.pages.concat() == own[at..at + 3 * PAGE_LEN]);
        assert!(!memory.read(std::process::id(), 0..PAGE));
        assert_eq!(memory.pages_since(None).1, Vec::<Bytes>::new());
    }

    #[test]
    fn memory_is_reused_once_no_page_of_it_is_held() {
        let mut memory = PageBuffers::new();
        let mut seen = std::collections::BTreeSet::new();
        let mut last = None;
        for byte in 1..100 {
            memory = filled(memory, 0x10_0000, &[page(byte), page(byte)]);
            let now = next(last.as_ref(), &memory);
            seen.extend(now.pages.iter().map(|page| page.as_ptr()));
            last = Some(now);
        }
        assert_eq!(seen.len(), 4, "what was read last and what is read now");
    }

    #[test]
    fn more_than_the_pool_holds_is_kept() {
        let memory = filled(PageBuffers::new(), 0, &[page(7)]);
        let retained: Vec<_> = (0..POOLED + 5).map(|_| next(None, &memory)).collect();
        assert!(retained.iter().all(|pages| pages.pages[0][..] == page(7)));
    }
}
