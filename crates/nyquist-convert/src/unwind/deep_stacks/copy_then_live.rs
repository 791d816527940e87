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
    /// The value of a word behind the copy.
    fn read_live(&self, address: Avma) -> Option<u64> {
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
        let pages = vec![page(1), page(2)];
        let (pid, tid, read_at, start) = (Pid(1), Tid(1), Timestamp(5), Avma(0x1000));
        let live = LiveStack { pid, tid, read_at, start, pages };
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
}
