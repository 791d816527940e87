//! Pages of living processes' stacks, read repeatedly. Pages that have not changed share the same memory.

use std::ops::Range;

use bytes::Bytes;
use nyquist_convert::event::LiveStack;
use nyquist_object::Avma;

use crate::linux::sys::ptrace::read_memory_parts;
use crate::pool::Pool;

/// Stacks are read in pages of this size.
pub(super) const PAGE: u64 = LiveStack::PAGE as u64;
/// The same, as the length of a page in memory.
const PAGE_LEN: usize = LiveStack::PAGE;
/// The maximum that is read of a stack at once. What lies beyond is not read.
pub(super) const MOST_READ: u64 = 2 << 20;
/// How many pages are kept in one buffer. With single allocations, the page faults would take longer than the
/// reading.
const PIECE: usize = 8;
/// The most buffers that are reused: 16 MB. Most recordings need a few dozen of them.
const POOLED: usize = 512;

/// The buffer that memory is read into, and the pool for the pages that are kept.
pub(crate) struct Memory {
    scratch: Vec<u8>,
    /// The parts of the process's memory in it, one after the other.
    parts: Vec<Range<u64>>,
    /// How many bytes were read.
    read: usize,
    /// New memory costs a page fault for each page, which takes longer than reading it.
    pool: Pool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { scratch: Vec::new(), parts: Vec::new(), read: 0, pool: Pool::of(POOLED, PIECE * PAGE_LEN) }
    }

    /// Reads parts of a process's memory, each of whole pages, in order, up to the first unreadable byte.
    /// Returns whether any page was read.
    pub(crate) fn read(&mut self, pid: u32, parts: Vec<Range<u64>>) -> bool {
        let len = parts.iter().map(|part| part.end.saturating_sub(part.start) as usize).sum::<usize>();
        self.scratch.resize(len.max(self.scratch.len()), 0);
        self.read = self.scratch.get_mut(..len).map_or(0, |room| read_memory_parts(pid, &parts, room));
        self.parts = parts;
        self.read_pages().next().is_some()
    }

    /// The pages of the last reading, with their addresses.
    fn read_pages(&self) -> impl Iterator<Item = (u64, &[u8; PAGE_LEN])> {
        let addresses = self.parts.iter().flat_map(|part| part.clone().step_by(PAGE_LEN));
        addresses.zip(self.scratch.get(..self.read).unwrap_or_default().as_chunks().0)
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

    /// The last reading: its first address, and its pages from there on; a page that was not read is empty.
    /// Pages that are the same as in an earlier reading share its memory.
    pub(crate) fn pages_since(&self, earlier: Option<&LiveStack>) -> (Avma, Vec<Bytes>) {
        let start = self.read_pages().next().map_or(0, |(start, _)| start);
        let end = self.parts.last().map_or(start, |part| part.end);
        let mut pages = Vec::with_capacity(end.saturating_sub(start) as usize / PAGE_LEN);
        let mut changed = Vec::new();
        for (address, page) in self.read_pages() {
            let index = (address - start) as usize / PAGE_LEN;
            pages.resize(index + 1, Bytes::new());
            let known = earlier.and_then(|earlier| earlier.page_at(Avma(address)));
            match known.filter(|known| known.as_ref() == page) {
                Some(known) => pages[index] = known.clone(),
                None => changed.push((index, page)),
            }
        }
        for piece in changed.chunks(PIECE) {
            let kept = self.keep(piece);
            for (place, (index, _)) in piece.iter().enumerate() {
                pages[*index] = kept.slice(place * PAGE_LEN..(place + 1) * PAGE_LEN);
            }
        }
        (Avma(start), pages)
    }
}

#[cfg(test)]
mod tests {
    use nyquist_convert::event::{Pid, Tid, Timestamp};

    use super::*;

    /// Memory into which pages were read from an address on.
    fn filled(memory: Memory, start: u64, pages: &[[u8; PAGE_LEN]]) -> Memory {
        let scratch = pages.concat();
        let part = start..start + scratch.len() as u64;
        Memory { read: scratch.len(), scratch, parts: vec![part], ..memory }
    }

    /// A reading that follows an earlier one.
    fn next(earlier: Option<&LiveStack>, memory: &Memory) -> LiveStack {
        let (start, pages) = memory.pages_since(earlier);
        LiveStack { pid: Pid(1), tid: Tid(1), read_at: Timestamp(0), start, pages }
    }

    fn page(byte: u8) -> [u8; PAGE_LEN] {
        [byte; PAGE_LEN]
    }

    #[test]
    fn pages_that_have_changed_are_new_and_no_others() {
        let before: Vec<_> = (0..40).map(page).collect();
        let memory = filled(Memory::new(), 0x10_0000, &before);
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
    fn what_is_not_read_is_a_gap() {
        let own: Vec<u8> = (0..20 * PAGE_LEN).map(|at| (at / PAGE_LEN) as u8).collect();
        let start = (own.as_ptr() as u64).next_multiple_of(PAGE_LEN as u64);
        let part =
            |pages: Range<u64>| start + pages.start * PAGE_LEN as u64..start + pages.end * PAGE_LEN as u64;
        let mut memory = Memory::new();
        assert!(memory.read(std::process::id(), vec![part(0..2), part(5..6), part(9..11)]));
        let pages = next(None, &memory);
        let lens: Vec<usize> = pages.pages.iter().map(Bytes::len).collect();
        let is_read = |page: &usize| [0, 1, 5, 9, 10].contains(page);
        assert_eq!(lens, (0..11).map(|page| if is_read(&page) { PAGE_LEN } else { 0 }).collect::<Vec<_>>());
        for (index, page) in pages.pages.iter().enumerate() {
            let at = start as usize - own.as_ptr() as usize + index * PAGE_LEN;
            assert!(page.is_empty() || page[..] == own[at..at + PAGE_LEN], "{index}");
        }
        let next = next(Some(&pages), &memory);
        let is_same = |(before, now): (&Bytes, &Bytes)| now.is_empty() || before.as_ptr() == now.as_ptr();
        assert!(pages.pages.iter().zip(&next.pages).all(is_same), "what lies behind a gap is known again");
        let nothing = 0..PAGE_LEN as u64;
        assert!(!memory.read(std::process::id(), vec![nothing]));
    }

    #[test]
    fn memory_is_reused_once_no_page_of_it_is_held() {
        let mut memory = Memory::new();
        let mut seen = std::collections::BTreeSet::new();
        let mut last = None;
        for byte in 0..100 {
            memory = filled(memory, 0x10_0000, &[page(byte), page(byte)]);
            let now = next(last.as_ref(), &memory);
            seen.extend(now.pages.iter().map(|page| page.as_ptr()));
            last = Some(now);
        }
        assert_eq!(seen.len(), 4, "what was read last and what is read now");
    }

    #[test]
    fn more_than_the_pool_holds_is_kept() {
        let memory = filled(Memory::new(), 0, &[page(7)]);
        let kept: Vec<_> = (0..POOLED + 5).map(|_| next(None, &memory)).collect();
        assert!(kept.iter().all(|pages| pages.pages[0][..] == page(7)));
    }
}
