//! Little-endian numbers at fixed positions of a header.

/// The bytes of a header, or of one entry of a table. Every read past the end returns `None`.
#[derive(Clone, Copy)]
pub(crate) struct HeaderFields<'a>(pub(crate) &'a [u8]);

impl HeaderFields<'_> {
    #[inline]
    pub(crate) fn bytes<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    #[inline]
    pub(crate) fn u16(self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }
}

/// The number of 4 bytes at an offset; 0 past the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    HeaderFields(bytes).u32(at).unwrap_or_default()
}

/// The number of 8 bytes at an offset; 0 past the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    HeaderFields(bytes).u64(at).unwrap_or_default()
}
