//! The memory for a walk beyond the end of a stack copy: the copy, and behind it a reading of the living
//! process.

use crate::event::LiveStack;
use nyquist_object::Avma;
use nyquist_unwind::{StackCopy, StackMemory};
use std::cell::{Cell, RefCell};

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
    /// The pages behind the copy that the walk has read.
    pub(super) pages: RefCell<Vec<Avma>>,
    /// Whether the walk has come to a page that is missing in the reading.
    pub(super) has_met_gap: Cell<bool>,
}

impl CopyThenLive<'_> {
    /// The value of a word behind the copy.
    fn read_live(&self, address: Avma) -> Option<u64> {
        let page = LiveStack::page_of(address);
        if self.live.is_gap(address) {
            self.has_met_gap.set(true);
        } else if self.pages.borrow().last() != Some(&page) {
            self.pages.borrow_mut().push(page);
        }
        let word = self.live.read_u64(address)?;
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
        let pages = vec![page(1), page(2), Bytes::new(), page(3)];
        let (pid, tid, read_at, start) = (Pid(1), Tid(1), Timestamp(5), Avma(0x1000));
        let live = LiveStack { pid, tid, read_at, start, pages };
        let copied = [1; 0x800];
        let joined = || CopyThenLive {
            copy: StackCopy { start: Avma(0x1000), bytes: &copied },
            end: 0x1800,
            live: &live,
            in_both: Cell::new(0),
            differs: Cell::new(false),
            outermost: Cell::new(0),
            pages: RefCell::default(),
            has_met_gap: Cell::new(false),
        };
        let check = |addresses: &[u64], words: &[Option<u8>], pages: &[u64], has_met_gap: bool| {
            let memory = joined();
            let read: Vec<_> = addresses.iter().map(|address| memory.read_u64(Avma(*address))).collect();
            let words: Vec<_> =
                words.iter().map(|word| word.map(|byte| u64::from_le_bytes([byte; 8]))).collect();
            assert_eq!(read, words, "{addresses:x?}");
            assert_eq!(memory.pages.take(), pages.iter().copied().map(Avma).collect::<Vec<_>>());
            assert_eq!(memory.has_met_gap.get(), has_met_gap, "{addresses:x?}");
        };
        check(
            &[0x17f8, 0x1800, 0x2008, 0x2010],
            &[Some(1), Some(1), Some(2), Some(2)],
            &[0x1000, 0x2000],
            false,
        );
        check(&[0x4000, 0x3000], &[Some(3), None], &[0x4000], true);
        check(&[0xff8, 0x1000], &[None, Some(1)], &[], false);
    }
}
