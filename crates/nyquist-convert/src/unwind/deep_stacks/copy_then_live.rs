//! The memory for a walk beyond the end of a stack copy: the copy, and behind it a reading of the living
//! process.

use crate::event::LiveStack;
use nyquist_object::Avma;
use nyquist_unwind::{StackCopy, StackMemory};
use std::cell::Cell;

/// A copy, and behind it a later reading.
pub(super) struct CopyThenLive<'a> {
    pub(super) copy: StackCopy<'a>,
    pub(super) end: u64,
    pub(super) live: &'a LiveStack,
    /// The number of words that the walk has read and that are in both.
    pub(super) in_both: Cell<usize>,
    /// Whether one of these words differs between the two.
    pub(super) differs: Cell<bool>,
    /// The outermost word that the walk has read.
    pub(super) outermost: Cell<u64>,
}

impl CopyThenLive<'_> {
    /// Whether the page of an address may be missing in a reading that was made at the moment of a sample. It is all
    /// zeros then.
    fn lacks(&self, address: Avma) -> bool {
        let page = self.live.page_at(LiveStack::page_of(address));
        self.live.stack_pointer.is_some() && page.is_none_or(|page| page.iter().all(|byte| *byte == 0))
    }

    /// The value of a word behind the copy.
    fn read_live(&self, address: Avma) -> Option<u64> {
        let word = self.live.read_u64(address).filter(|word| *word != 0 || !self.lacks(address))?;
        self.outermost.set(self.outermost.get().max(address.0));
        Some(word)
    }
}

impl StackMemory for CopyThenLive<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        if let Some(word) = self.copy.read_u64(address) {
            if let Some(later) = self.live.read_u64(address) {
                self.in_both.set(self.in_both.get() + 1);
                self.differs.set(self.differs.get() || later != word);
            }
            return Some(word);
        }
        // Memory below the copy is not part of the stack.
        if address.0 >= self.end.saturating_sub(7) { self.read_live(address) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Pid, Tid, Timestamp};
    use bytes::Bytes;

    #[test]
    fn a_word_behind_the_copy_is_read_from_its_page() {
        let page = |byte: u8| Bytes::from(vec![byte; LiveStack::PAGE]);
        let pages = vec![page(1), page(2)];
        let (pid, tid, read_at, start) = (Pid(1), Tid(1), Timestamp(5), Avma(0x1000));
        let live = LiveStack { pid, tid, read_at, start, pages, stack_pointer: None };
        let copied = [1; 0x800];
        let memory = CopyThenLive {
            copy: StackCopy { start: Avma(0x1000), bytes: &copied },
            end: 0x1800,
            live: &live,
            in_both: Cell::new(0),
            differs: Cell::new(false),
            outermost: Cell::new(0),
        };
        let check = |address: u64, byte: Option<u8>| {
            let word = byte.map(|byte| u64::from_le_bytes([byte; 8]));
            assert_eq!(memory.read_u64(Avma(address)), word, "{address:x}");
        };
        check(0xff8, None);
        check(0x1000, Some(1));
        check(0x17f8, Some(1));
        assert_eq!((memory.in_both.get(), memory.outermost.get()), (2, 0));
        check(0x1800, Some(1));
        check(0x2008, Some(2));
        check(0x3000, None);
        assert_eq!((memory.in_both.get(), memory.outermost.get()), (2, 0x2008));
    }

    #[test]
    fn a_page_without_contents_may_be_missing() {
        let page = |byte: u8| Bytes::from(vec![byte; LiveStack::PAGE]);
        let used = Bytes::from([vec![1; 8], vec![0; LiveStack::PAGE - 8]].concat());
        let read = |stack_pointer: Option<Avma>, address: u64| {
            let pages = vec![page(0), used.clone()];
            let (pid, tid, read_at, start) = (Pid(1), Tid(1), Timestamp(5), Avma(0x1000));
            let live = LiveStack { pid, tid, read_at, start, pages, stack_pointer };
            let (in_both, differs, outermost) = (Cell::new(0), Cell::new(false), Cell::new(0));
            let copy = StackCopy { start: Avma(0x800), bytes: &[1; 0x800] };
            CopyThenLive { copy, end: 0x1000, live: &live, in_both, differs, outermost }
                .read_u64(Avma(address))
        };
        let at_sample = Some(Avma(0x800));
        assert_eq!([0x1008, 0x2008].map(|address| read(None, address)), [Some(0); 2]);
        assert_eq!([0x1008, 0x2008].map(|address| read(at_sample, address)), [None, Some(0)]);
    }
}
