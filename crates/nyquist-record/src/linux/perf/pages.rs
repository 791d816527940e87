//! Pages of living processes' stacks, read again and again: what has not changed since is the same memory.

use bytes::Bytes;
use nyquist_convert::event::LiveStack;

use super::pool::Pool;
use crate::linux::sys::ptrace::read_memory;

const PAGE: usize = LiveStack::PAGE;
/// The most pages whose memory is used again: 16 MB. Most recordings need a few hundred of them.
const POOLED: usize = 4096;

/// Pages of memory, from an address on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    start: u64,
    pages: Vec<Bytes>,
}

/// Where memory is read into, and where pages are kept.
pub(crate) struct Memory {
    scratch: Vec<u8>,
    /// How many bytes were read.
    read: usize,
    /// Memory of the system's costs a page fault for each page, which takes longer than reading it.
    pool: Pool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { scratch: Vec::new(), read: 0, pool: Pool::of(POOLED, PAGE) }
    }

    /// Reads so many bytes of a process, and says how many whole pages could be read.
    pub(crate) fn read(&mut self, pid: u32, start: u64, len: usize) -> usize {
        self.scratch.resize(len.max(self.scratch.len()), 0);
        self.read = self.scratch.get_mut(..len).map_or(0, |room| read_memory(pid, start, room));
        self.pages().len()
    }

    /// What was read last.
    fn pages(&self) -> &[[u8; PAGE]] {
        self.scratch.get(..self.read).unwrap_or_default().as_chunks().0
    }

    /// Keeps a page, in memory that was used before if there is any.
    fn keep(&self, page: &[u8; PAGE]) -> Bytes {
        let Some(mut filling) = self.pool.take_leaving(0) else { return Bytes::copy_from_slice(page) };
        filling.room().copy_from_slice(page);
        filling.advance(PAGE);
        filling.into_bytes()
    }
}

impl Pages {
    /// What was read now, from an address on. Pages that have not changed take no new memory.
    pub(crate) fn next(&self, start: u64, memory: &Memory) -> Self {
        let kept = |(index, page): (usize, &[u8; PAGE])| {
            let known = self.at(start + (index * PAGE) as u64).filter(|known| known.as_ref() == page);
            known.cloned().unwrap_or_else(|| memory.keep(page))
        };
        Self { start, pages: memory.pages().iter().enumerate().map(kept).collect() }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Bytes> {
        self.pages.clone()
    }

    fn at(&self, address: u64) -> Option<&Bytes> {
        let index = address.checked_sub(self.start).map(|offset| offset as usize / PAGE);
        index.and_then(|index| self.pages.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory into which pages were read.
    fn filled(memory: Memory, pages: &[[u8; PAGE]]) -> Memory {
        let scratch = pages.concat();
        Memory { read: scratch.len(), scratch, ..memory }
    }

    fn page(byte: u8) -> [u8; PAGE] {
        [byte; PAGE]
    }

    #[test]
    fn pages_that_have_changed_are_new_and_no_others() {
        let before: Vec<_> = (0..40).map(page).collect();
        let memory = filled(Memory::new(), &before);
        let first = Pages::default().next(0x10_0000, &memory);
        // The stack has grown by a page, and every third page of the rest is another one.
        let now: Vec<_> = (0..41_u8).map(|n| page(if n % 3 == 0 { 100 + n } else { n - 1 })).collect();
        let second = first.next(0xf_f000, &filled(memory, &now));
        for (index, (bytes, now)) in second.pages.iter().zip(&now).enumerate() {
            assert_eq!(bytes.as_ref(), now, "{index}");
            let is_old = index > 0 && first.pages[index - 1].as_ptr() == bytes.as_ptr();
            assert_eq!(is_old, index % 3 != 0, "{index}");
        }
        assert_eq!((second.start, second.pages.len()), (0xf_f000, 41));
    }

    #[test]
    fn memory_is_used_again_when_nobody_has_a_page_of_it() {
        let mut memory = Memory::new();
        let mut seen = std::collections::BTreeSet::new();
        let mut last = Pages::default();
        for byte in 0..100 {
            memory = filled(memory, &[page(byte), page(byte)]);
            last = last.next(0x10_0000, &memory);
            seen.extend(last.pages.iter().map(|page| page.as_ptr()));
        }
        assert_eq!(seen.len(), 4, "what was read last and what is read now");
    }

    #[test]
    fn more_than_the_pool_holds_is_kept() {
        let memory = filled(Memory::new(), &[page(7)]);
        let kept: Vec<Pages> = (0..POOLED + 5).map(|_| Pages::default().next(0, &memory)).collect();
        assert!(kept.iter().all(|pages| pages.pages[0][..] == page(7)));
    }
}
