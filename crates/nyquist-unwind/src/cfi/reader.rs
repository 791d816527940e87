//! A bounded cursor over the bytes of a section.

/// A position in a section. Reading past the end gives `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionReader<'a> {
    /// What has not been read yet.
    rest: &'a [u8],
    /// The offset of the end in the section.
    end: usize,
}

/// The bases that an encoded pointer can be relative to, as stated addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointerBases {
    /// The section that is read.
    pub(crate) section: u64,
    /// `.text`.
    pub(crate) text: Option<u64>,
    /// `.got`.
    pub(crate) got: Option<u64>,
    /// The start of the function.
    pub(crate) function: Option<u64>,
}

impl<'a> SectionReader<'a> {
    /// A cursor at `position` that ends before `end`.
    pub(crate) fn new(bytes: &'a [u8], position: usize, end: usize) -> Option<Self> {
        Some(Self { rest: bytes.get(position..end)?, end })
    }

    /// The offset of the cursor in the section.
    pub(crate) fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What has not been read yet.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Continues at `rest`, which must be the last of the unread bytes.
    #[inline]
    pub(crate) fn go_on_at(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned LEB128 number. `None` if it does not fit in 64 bits.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called for every instruction; the compiler does not see that by itself"
    )]
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        // The cursor is passed by value, so that it can stay in registers.
        let (value, rest) = self.long_uleb(u64::from(first & 0x7f))?;
        *self = rest;
        Some(value)
    }

    /// The number whose lowest bits are `value`, and the cursor after it.
    #[cold]
    fn long_uleb(mut self, mut value: u64) -> Option<(u64, Self)> {
        let mut shift = 7;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some((value, self));
            }
            shift += 7;
        }
    }

    /// A signed LEB128 number. `None` if it does not fit in 64 bits.
    #[inline]
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            let byte = self.u8()?;
            if shift > 63 || (shift == 63 && byte != 0 && byte != 0x7f) {
                return None;
            }
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                let negative = byte & 0x40 != 0 && shift < 64;
                return Some(if negative { value | -1 << shift } else { value });
            }
        }
    }

    /// Skips `len` bytes.
    #[inline]
    pub(crate) fn skip(&mut self, len: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    /// The next `len` bytes.
    pub(crate) fn block(&mut self, len: u64) -> Option<&'a [u8]> {
        let (block, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(block)
    }

    /// The bytes before the next zero byte.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.rest.iter().position(|&byte| byte == 0)?;
        let string = self.block(len as u64)?;
        self.u8()?;
        Some(string)
    }

    /// A pointer with this `encoding` (Linux Standard Base 5, section 10.5). Indirect pointers are `None`,
    /// because their target is only known in the running process.
    #[inline]
    pub(crate) fn pointer(&mut self, encoding: u8, bases: &PointerBases) -> Option<u64> {
        if encoding & 0x80 != 0 {
            return None;
        }
        if encoding == 0x50 {
            let at = bases.section.wrapping_add(self.position() as u64);
            self.skip(at.wrapping_neg() & 7)?;
            return self.u64();
        }
        let base = match encoding & 0x70 {
            0x00 => 0,
            0x10 => bases.section.wrapping_add(self.position() as u64),
            0x20 => bases.text?,
            0x30 => bases.got?,
            0x40 => bases.function?,
            _ => return None,
        };
        Some(base.wrapping_add(self.value(encoding)?))
    }

    /// A number in the format that the low four bits of a pointer encoding specify.
    #[inline]
    pub(crate) fn value(&mut self, encoding: u8) -> Option<u64> {
        match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64(),
            0x01 => self.uleb(),
            0x02 => self.u16().map(u64::from),
            0x03 => self.u32().map(u64::from),
            0x09 => self.sleb().map(|value| value as u64),
            0x0a => self.u16().map(|value| value as i16 as u64),
            0x0b => self.u32().map(|value| value as i32 as u64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> SectionReader<'_> {
        SectionReader::new(bytes, 0, bytes.len()).unwrap()
    }

    #[test]
    fn reads_leb128_within_64_bits() {
        let unsigned = |bytes: &[u8], expected| assert_eq!(reader(bytes).uleb(), expected, "{bytes:x?}");
        unsigned(&[0x7f], Some(0x7f));
        unsigned(&[0x80, 0x01], Some(0x80));
        unsigned(&[0x80, 0x80, 0x00], Some(0));
        unsigned(&[0xff; 9], None);
        unsigned(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Some(u64::MAX));
        unsigned(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], None);
        unsigned(&[0x80; 20], None);
        let signed = |bytes: &[u8], expected| assert_eq!(reader(bytes).sleb(), expected, "{bytes:x?}");
        signed(&[0x7f], Some(-1));
        signed(&[0x40], Some(-64));
        signed(&[0x3f], Some(63));
        signed(&[0x80, 0x7f], Some(-128));
        signed(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f], Some(i64::MIN));
        signed(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00], Some(i64::MAX));
        signed(&[0x80; 20], None);
    }

    #[test]
    fn reads_pointers_relative_to_their_bases() {
        let bases = PointerBases { section: 0x1000, text: Some(0x2000), got: None, function: Some(0x3000) };
        let check = |encoding, bytes: &[u8], expected| {
            assert_eq!(reader(bytes).pointer(encoding, &bases), expected, "{encoding:#x}");
        };
        check(0x00, &[1, 0, 0, 0, 0, 0, 0, 0x80], Some(0x8000_0000_0000_0001));
        check(0x1b, &[0xf0, 0xff, 0xff, 0xff], Some(0xff0));
        check(0x13, &[0xf0, 0xff, 0xff, 0xff], Some(0x1_0000_0ff0));
        check(0x2a, &[0xfe, 0xff], Some(0x1ffe));
        check(0x3b, &[0, 0, 0, 0], None);
        check(0x41, &[0x10], Some(0x3010));
        check(0x50, &[8, 0, 0, 0, 0, 0, 0, 0], Some(8));
        check(0x9b, &[0, 0, 0, 0], None);
        check(0x1b, &[0, 0, 0], None);
        check(0x0f, &[0; 8], None);
    }
}
