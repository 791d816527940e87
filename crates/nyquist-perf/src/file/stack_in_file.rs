//! Copies of stacks that are left in the file: nine tenths of a recording that has them, of which a walk looks at little.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::{ByteOrder, Header};

/// A copy of a user's stack that was left in its file.
#[derive(Clone, Debug)]
pub struct StackInFile {
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) room: usize,
}

impl StackInFile {
    /// The bytes that could be copied.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing could be copied.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether they fill the room that there was for them, so that the stack may go on.
    pub fn is_limited(&self) -> bool {
        self.len >= self.room
    }

    /// Reads the copy into memory that is used again and again, and gives back the bytes: the stack's, from the stack pointer
    /// upwards.
    ///
    /// # Errors
    /// The bytes were there when the record was found, but the file may have been cut since.
    pub fn read<'a>(&self, memory: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        if memory.len() < self.len {
            memory.resize(self.len, 0);
        }
        let bytes = memory.get_mut(..self.len).unwrap_or_default();
        self.file.read_exact_at(bytes, self.offset)?;
        Ok(bytes)
    }
}

/// Copies are the same where they are the same bytes of the same open file.
impl PartialEq for StackInFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
            && (self.offset, self.len, self.room) == (other.offset, other.len, other.room)
    }
}

/// Where a sample has its copy of the stack: the place of the copy's size in the record, and this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackPlace {
    pub(crate) at: usize,
    pub(crate) room: usize,
}

/// The bytes of the size of a copy, and of the size of what is valid of it, which stands behind it.
pub(crate) const SIZE_LEN: usize = 8;

impl StackPlace {
    /// Where the part of the record begins that follows the copy: the size of what is valid, and the fields after it.
    pub(crate) fn tail(self) -> usize {
        self.at.saturating_add(SIZE_LEN).saturating_add(self.room)
    }

    /// Makes one whole of a record of which only the parts before and after the copy are there, the first up to the copy's
    /// size: a record of `record.len()` bytes whose copy has no room. Gives back how many bytes of the copy are valid.
    pub(crate) fn close(self, record: &mut [u8], order: ByteOrder) -> Option<usize> {
        let len = u16::try_from(record.len()).ok()?;
        let valid = record.get_mut(self.at..)?.first_chunk_mut::<SIZE_LEN>()?;
        let valid_len = order.u64(*valid);
        let is_valid = valid_len <= self.room as u64;
        // A record that contradicts itself must not become one that does not.
        *valid = if is_valid { [0; SIZE_LEN] } else { [0xff; SIZE_LEN] };
        let size = match order {
            ByteOrder::Little => len.to_le_bytes(),
            ByteOrder::Big => len.to_be_bytes(),
        };
        record.get_mut(Header::LEN - size.len()..Header::LEN)?.copy_from_slice(&size);
        Some(if is_valid { valid_len as usize } else { 0 })
    }
}
