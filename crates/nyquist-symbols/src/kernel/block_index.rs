//! The index of the blocks of a file of cached functions.

use crate::cache::block_file::CHECKSUM_LEN;
use nyquist_object::Cursor;
use std::ops::Range;

/// The number of functions in all blocks but the last.
pub(super) const PER_BLOCK: usize = 128;

/// The size of a block's entry in the index.
const ENTRY_LEN: usize = 10;

/// The size of a function in a block, without its name.
pub(super) const FUNCTION_LEN: usize = 8;

/// The largest possible block.
const MAX_BLOCK: usize = CHECKSUM_LEN + PER_BLOCK * (FUNCTION_LEN + u16::MAX as usize);

/// The description of the blocks in a file's head.
pub(crate) struct BlockIndex<'a> {
    pub(super) entries: &'a [[u8; ENTRY_LEN]],
    pub(super) functions: usize,
    /// Where the first block begins.
    pub(super) start: u64,
}

impl<'a> BlockIndex<'a> {
    /// The index of `functions` functions, whose blocks must fill the range `blocks` of a file. `None` if
    /// they do not.
    pub(crate) fn new(bytes: &'a [u8], functions: usize, blocks: Range<u64>) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<ENTRY_LEN>();
        let mut end = blocks.start;
        for entry in entries {
            let (_, _, len) = entry_parts(entry)?;
            end = end.checked_add(len as u64)?;
        }
        let is_right = rest.is_empty() && entries.len() == functions.div_ceil(PER_BLOCK) && end == blocks.end;
        is_right.then_some(Self { entries, functions, start: blocks.start })
    }

    pub(crate) fn functions(&self) -> usize {
        self.functions
    }
}

/// The place of a block's first function, its module's number, and the block's length.
pub(super) fn entry_parts(entry: &[u8; ENTRY_LEN]) -> Option<(u32, u16, usize)> {
    let mut cursor = Cursor::new(entry, 0, true);
    let (offset, module, len) = (cursor.u32()?, cursor.u16()?, cursor.u32()? as usize);
    (len <= MAX_BLOCK).then_some((offset, module, len))
}
