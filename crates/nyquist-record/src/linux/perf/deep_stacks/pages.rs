//! Pages of living processes' stacks, read again and again: what has not changed since is the same memory.

use std::ops::Range;

use bytes::Bytes;
use nyquist_convert::event::LiveStack;
use nyquist_object::Avma;

use crate::linux::pool::Pool;
use crate::linux::sys::ptrace::read_memory_parts;

/// What is read, is read in pages.
pub(super) const PAGE: u64 = LiveStack::PAGE as u64;
/// The same, as the length of a page in memory.
const PAGE_LEN: usize = LiveStack::PAGE;
/// The most bytes of a stack that are read at once. What lies behind is not reached.
pub(super) const MOST_READ: u64 = 2 << 20;
/// The pages that are kept in one piece of memory: the system gives it page by page otherwise, and takes longer for that than it
/// takes to read them.
const PIECE: usize = 8;
/// The most pieces whose memory is used again: 16 MB. Most recordings need a few dozen of them.
const POOLED: usize = 512;

/// Where memory is read into, and where pages are kept.
pub(crate) struct Memory {
    scratch: Vec<u8>,
    /// What of the process is in there, one part behind the other.
    parts: Vec<Range<u64>>,
    /// How many bytes were read.
    read: usize,
    /// Memory of the system's costs a page fault for each page, which takes longer than reading it.
    pool: Pool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { scratch: Vec::new(), parts: Vec::new(), read: 0, pool: Pool::of(POOLED, PIECE * PAGE_LEN) }
    }

    /// Reads parts of a process's memory, each of whole pages, in their order up to the first byte that there is not; says
    /// whether any page could be read.
    pub(crate) fn read(&mut self, pid: u32, parts: Vec<Range<u64>>) -> bool {
        let len = parts.iter().map(|part| part.end.saturating_sub(part.start) as usize).sum::<usize>();
        self.scratch.resize(len.max(self.scratch.len()), 0);
        self.read = self.scratch.get_mut(..len).map_or(0, |room| read_memory_parts(pid, &parts, room));
        self.parts = parts;
        self.read_pages().next().is_some()
    }

    /// What was read last, with its addresses.
    fn read_pages(&self) -> impl Iterator<Item = (u64, &[u8; PAGE_LEN])> {
        let addresses = self.parts.iter().flat_map(|part| part.clone().step_by(PAGE_LEN));
        addresses.zip(self.scratch.get(..self.read).unwrap_or_default().as_chunks().0)
    }

    /// Keeps pages, one behind the other, in memory that was used before if there is any.
    fn keep(&self, pages: &[(usize, &[u8; PAGE_LEN])]) -> Bytes {
        let Some(mut filling) = self.pool.take_leaving(0) else {
            return pages.iter().flat_map(|(_, page)| page.iter().copied()).collect();
        };
        for (_, page) in pages {
            if let Some(room) = filling.room().first_chunk_mut() {
                *room = **page;
                filling.advance(PAGE_LEN);
            }
        }
        filling.into_bytes()
    }

    /// What was read last: its first address, and the pages from there on, empty where one was not read. Those that are as they were in
    /// an earlier reading are the same memory.
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

    /// A reading of what memory has read, after an earlier one.
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
        // The stack has grown by a page, and every third page of the rest is another one.
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
