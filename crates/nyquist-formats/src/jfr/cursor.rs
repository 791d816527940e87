//! Reads numbers and texts of a chunk of a JFR recording.

use std::borrow::Cow;

/// Bytes that are read in sequence. Every method returns `None` at the end of the bytes.
#[derive(Clone, Copy)]
pub(super) struct ChunkCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether integers have a variable length.
    is_compressed: bool,
}

/// A text, or its place among the chunk's constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextOrConstant<'a> {
    Null,
    Here(Cow<'a, str>),
    Constant(u64),
}

impl<'a> ChunkCursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, is_compressed: bool) -> Self {
        Self { bytes, at: at.min(bytes.len()), is_compressed }
    }

    /// Its position.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The number of remaining bytes.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }

    fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        self.take(LENGTH)?.try_into().ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// An integer of 16 bits.
    pub(super) fn short(&mut self) -> Option<u64> {
        if self.is_compressed {
            self.compressed()
        } else {
            self.array().map(u16::from_be_bytes).map(u64::from)
        }
    }

    /// An integer of 32 bits.
    pub(super) fn int(&mut self) -> Option<u64> {
        if self.is_compressed {
            self.compressed()
        } else {
            self.array().map(u32::from_be_bytes).map(u64::from)
        }
    }

    /// An integer of 64 bits.
    pub(super) fn long(&mut self) -> Option<u64> {
        if self.is_compressed { self.compressed() } else { self.array().map(u64::from_be_bytes) }
    }

    pub(super) fn float(&mut self) -> Option<f64> {
        self.array().map(f32::from_be_bytes).map(f64::from)
    }

    pub(super) fn double(&mut self) -> Option<f64> {
        self.array().map(f64::from_be_bytes)
    }

    /// The number of elements that follow. Each has at least one byte.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.int()?).ok()?;
        (count <= self.remaining()).then_some(count)
    }

    /// LEB128, in which a ninth byte has eight bits.
    fn compressed(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for place in 0..8 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        Some(value | u64::from(self.byte()?) << 56)
    }

    /// A text in one of its encodings.
    pub(super) fn text(&mut self) -> Option<TextOrConstant<'a>> {
        Some(match self.byte()? {
            0 => TextOrConstant::Null,
            1 => TextOrConstant::Here("".into()),
            2 => TextOrConstant::Constant(self.long()?),
            3 => {
                let length = self.count()?;
                TextOrConstant::Here(String::from_utf8_lossy(self.take(length)?))
            }
            4 => {
                let units: Option<Vec<u16>> =
                    (0..self.count()?).map(|_| self.short().map(|unit| unit as u16)).collect();
                TextOrConstant::Here(String::from_utf16_lossy(&units?).into())
            }
            5 => {
                let length = self.count()?;
                TextOrConstant::Here(self.take(length)?.iter().map(|&byte| char::from(byte)).collect())
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_compressed_or_not() {
        let check = |bytes: &[u8], expected| {
            assert_eq!(ChunkCursor::new(bytes, 0, true).long(), expected, "{bytes:x?}");
        };
        check(&[0x7f], Some(127));
        check(&[0x80, 0x01], Some(128));
        check(&[0xff; 9], Some(u64::MAX));
        check(&[0xff; 8], None);
        assert_eq!(ChunkCursor::new(&[0, 0, 1, 2], 0, false).int(), Some(258));
        assert_eq!(ChunkCursor::new(&[0, 0, 1], 0, false).int(), None);
    }

    #[test]
    fn texts_have_several_encodings() {
        let check = |bytes: &[u8], expected: &str| {
            let text = ChunkCursor::new(bytes, 0, true).text();
            assert_eq!(text, Some(TextOrConstant::Here(expected.to_owned().into())), "{bytes:x?}");
        };
        check(&[1], "");
        check(&[3, 3, b'a', 0xc3, 0xa4], "aä");
        check(&[4, 2, b'a', 0xe4, 0x01], "aä");
        check(&[5, 2, b'a', 0xe4], "aä");
        assert_eq!(ChunkCursor::new(&[2, 9], 0, true).text(), Some(TextOrConstant::Constant(9)));
        assert_eq!(ChunkCursor::new(&[3, 100, b'a'], 0, true).text(), None);
    }
}
