//! A cursor that reads the fields of a record one by one.

use crate::{ByteOrder, RecordError};

/// The remaining bytes of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordCursor<'a> {
    rest: &'a [u8],
    len: usize,
    order: ByteOrder,
}

impl<'a> RecordCursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, len: bytes.len(), order }
    }

    /// The byte order of its numbers.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// The number of remaining bytes.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The remaining bytes, which stay.
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `len` bytes as the field of that name.
    pub(crate) fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or(RecordError::Truncated { field, have: self.len })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RecordError> {
        self.take(field, |_, bytes| bytes)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, RecordError> {
        self.take(field, ByteOrder::u16)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, RecordError> {
        self.take(field, ByteOrder::u32)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, RecordError> {
        self.take(field, ByteOrder::u64)
    }

    /// Reads the next `N` bytes and converts them with `read`. Returning a `Result` of the bytes
    /// themselves would copy them through memory.
    #[inline]
    fn take<const N: usize, T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(ByteOrder, [u8; N]) -> T,
    ) -> Result<T, RecordError> {
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or(RecordError::Truncated { field, have: self.len })?;
        self.rest = rest;
        Ok(read(self.order, *taken))
    }

    /// Reads `count` times `width` bytes, where `count` was read from the record.
    pub(crate) fn counted(
        &mut self,
        count: u64,
        width: usize,
        field: &'static str,
    ) -> Result<&'a [u8], RecordError> {
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(width));
        let len = len.filter(|len| *len <= self.rest.len()).ok_or(RecordError::Count { field, count })?;
        self.bytes(len, field)
    }

    /// Reads all remaining bytes.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Reads a text with a terminating zero that fills the rest of the record.
    pub(crate) fn text(&mut self) -> &'a [u8] {
        self.rest().split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Reads a text and its terminating zero.
    pub(crate) fn terminated(&mut self, field: &'static str) -> Result<&'a [u8], RecordError> {
        let len = self.rest.iter().position(|byte| *byte == 0);
        let len = len.ok_or(RecordError::Truncated { field, have: self.len })?;
        let text = self.bytes(len, field)?;
        self.bytes(1, field)?;
        Ok(text)
    }

    /// Removes the last `len` bytes, so that the fields before them end there.
    pub(crate) fn split_tail(&mut self, len: usize, field: &'static str) -> Result<Self, RecordError> {
        let at = self.rest.len().checked_sub(len);
        let at = at.ok_or(RecordError::Truncated { field, have: self.len })?;
        let (rest, tail) = self.rest.split_at(at);
        self.rest = rest;
        Ok(Self { rest: tail, ..*self })
    }
}
