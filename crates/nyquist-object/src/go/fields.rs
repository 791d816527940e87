//! Numbers that stand one after the other.

/// A position in a run of bytes, which no read gets past the end of.
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) little_endian: bool,
}

impl Fields<'_> {
    /// The next `size` bytes as a number: 1, 4 or 8 of them.
    pub(super) fn number(&mut self, size: u8) -> Option<u64> {
        let end = self.at.checked_add(usize::from(size))?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        let mut padded = [0; 8];
        if self.little_endian {
            padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(u64::from_le_bytes(padded))
        } else {
            padded.get_mut(8_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
            Some(u64::from_be_bytes(padded))
        }
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.number(1).map(|number| number as u8)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.number(4).map(|number| number as u32)
    }
}
