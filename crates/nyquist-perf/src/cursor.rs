//! A place in a record's bytes from which fields are taken one by one.

use crate::{ByteOrder, RecordError};

/// The bytes of a record that were not taken yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, len: bytes.len(), order }
    }

    /// In which order the bytes of its numbers are.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// How many bytes were not taken yet.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Takes the next `len` bytes as the field of that name.
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

    /// Takes the next `N` bytes as what `read` makes of them. A `Result` of the bytes themselves would go through memory in pieces.
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

    /// Takes `count` times `width` bytes, where `count` was read from the record.
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

    /// Takes all that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Takes a text that is closed by a zero byte and fills the rest of the record.
    pub(crate) fn text(&mut self) -> &'a [u8] {
        self.rest().split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Takes a text and the zero byte that closes it.
    pub(crate) fn terminated(&mut self, field: &'static str) -> Result<&'a [u8], RecordError> {
        let len = self.rest.iter().position(|byte| *byte == 0);
        let len = len.ok_or(RecordError::Truncated { field, have: self.len })?;
        let text = self.bytes(len, field)?;
        self.bytes(1, field)?;
        Ok(text)
    }

    /// Takes the last `len` bytes away, so that the fields before them end where they begin.
    pub(crate) fn split_tail(&mut self, len: usize, field: &'static str) -> Result<Self, RecordError> {
        let at = self.rest.len().checked_sub(len);
        let at = at.ok_or(RecordError::Truncated { field, have: self.len })?;
        let (rest, tail) = self.rest.split_at(at);
        self.rest = rest;
        Ok(Self { rest: tail, ..*self })
    }
}
