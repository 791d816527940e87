//! The last stack of a thread, with hashes of its outer parts: the next stack mostly has the same.

use crate::protocol::MAX_STACK;

/// The bytes of a word.
pub(super) const WORD: usize = 8;

/// The bytes of a part that has a hash.
const PART: usize = 512;

/// The most parts of a stack.
const MAX_PARTS: usize = MAX_STACK / PART;

/// The outer parts of a stack. The outermost is the first.
pub(super) struct LastStack {
    /// The thread, and the end of what was hashed; 0 if there is none.
    of: (u32, u64),
    parts: [[u8; PART]; MAX_PARTS],
    /// The hash of each part, with all parts before it.
    hashes: [u64; MAX_PARTS],
    count: usize,
}

impl LastStack {
    /// No stack.
    #[expect(clippy::large_stack_arrays, reason = "statics are made of this constant")]
    pub(super) const NONE: Self =
        Self { of: (0, 0), parts: [[0; PART]; MAX_PARTS], hashes: [0; MAX_PARTS], count: 0 };

    /// Forgets the stack.
    pub(super) fn forget(&mut self) {
        self.count = 0;
    }

    /// The hash of the words of a stack from the outermost on. `add` adds a word to a hash, and depends on nothing that
    /// changes while this stack is kept.
    #[inline(always)]
    pub(super) fn hash(
        &mut self,
        of: (u32, u64),
        stack: &[u8],
        add: &mut impl FnMut(u64, u64) -> u64,
    ) -> u64 {
        if self.of != of {
            self.of = of;
            self.count = 0;
        }
        let parts = stack.rchunks_exact(PART);
        let rest = parts.remainder();
        let (mut hash, mut is_same) = (0, true);
        for (number, part) in parts.enumerate() {
            let known = self.parts.get_mut(number).zip(self.hashes.get_mut(number));
            let Some((known, known_hash)) = known else { break };
            is_same &= number < self.count && known == part;
            if is_same {
                hash = *known_hash;
                continue;
            }
            hash = add_words(hash, part, add);
            known.copy_from_slice(part);
            *known_hash = hash;
            self.count = number + 1;
        }
        add_words(hash, rest, add)
    }
}

/// Adds words to a hash, the outermost first.
#[inline(always)]
fn add_words(hash: u64, bytes: &[u8], add: &mut impl FnMut(u64, u64) -> u64) -> u64 {
    let words = bytes.rchunks_exact(WORD);
    words.fold(hash, |hash, word| add(hash, word.try_into().map_or(0, u64::from_le_bytes)))
}
