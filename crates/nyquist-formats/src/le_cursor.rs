//! Reads little-endian numbers and texts of a binary file, one after the other.

/// Bytes that are read in sequence. Every method returns `None` where they end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeCursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> LeCursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// How many bytes follow.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes.
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }

    /// Passes over bytes up to a multiple of `size`.
    pub(crate) fn align(&mut self, size: usize) -> Option<()> {
        self.take(self.at.next_multiple_of(size) - self.at).map(|_| ())
    }

    fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        self.take(LENGTH)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of 32 bits that counts bytes or things.
    pub(crate) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    /// A number of 7 bits a byte, the lowest first. Bits beyond 64 are dropped.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A text in UTF-16 up to its terminating zero, which the end of the bytes may replace.
    pub(crate) fn utf16(&mut self) -> String {
        let (units, _) = self.bytes.get(self.at..).unwrap_or_default().as_chunks::<2>();
        let length = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
        self.at = (self.at + 2 * (length + 1)).min(self.bytes.len());
        let units = units.iter().take(length).map(|unit| u16::from_le_bytes(*unit));
        char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_end_with_the_bytes() {
        let mut cursor = LeCursor::new(&[1, 0xac, 0x02, 0, b'a', 0, 0, 0, 7, 0, 0, 0, 9]);
        assert_eq!((cursor.u8(), cursor.varint()), (Some(1), Some(300)));
        assert_eq!(cursor.align(4), Some(()));
        assert_eq!((cursor.utf16().as_str(), cursor.u32(), cursor.u16()), ("a", Some(7), None));
        assert_eq!((cursor.at(), cursor.remaining(), cursor.take(2)), (12, 1, None));
        assert_eq!(LeCursor::new(&[0xff; 20]).varint(), None);
        assert_eq!(LeCursor::new(&[0xff, 0xff, 1]).varint(), Some(0x7fff));
        assert_eq!(LeCursor::new(&[b'x', 0, b'y']).utf16(), "x");
    }
}
