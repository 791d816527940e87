//! Reads numbers in sequence. Every read past the end returns `None`.

/// A position in a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    little_endian: bool,
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Option<$type> {
            let bytes = self.bytes.get(self.at..)?.first_chunk()?;
            self.at += size_of::<$type>();
            Some(if self.little_endian {
                <$type>::from_le_bytes(*bytes)
            } else {
                <$type>::from_be_bytes(*bytes)
            })
        }
    };
}

impl<'a> Cursor<'a> {
    /// Starts at an offset into the bytes, which may be past their end.
    #[inline]
    pub fn new(bytes: &'a [u8], at: usize, little_endian: bool) -> Self {
        Self { bytes, at, little_endian }
    }

    /// The number of bytes before the next read, from the start of the slice.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Continues at an offset into the bytes, which may be past their end.
    #[inline]
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    number!(
        /// A number of 2 bytes.
        u16,
        u16
    );
    number!(
        /// A number of 4 bytes.
        u32,
        u32
    );
    number!(
        /// A number of 8 bytes.
        u64,
        u64
    );

    /// A byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn u24(&mut self) -> Option<u32> {
        let &[a, b, c] = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += 3;
        Some(if self.little_endian {
            u32::from_le_bytes([a, b, c, 0])
        } else {
            u32::from_be_bytes([0, a, b, c])
        })
    }

    /// A number of `size` bytes: 1, 2, 3, 4 or 8.
    #[inline]
    pub fn sized(&mut self, size: u8) -> Option<u64> {
        match size {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            3 => self.u24().map(u64::from),
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => None,
        }
    }

    /// An unsigned LEB128; bits beyond the 64th are dropped.
    #[inline]
    pub fn uleb(&mut self) -> Option<u64> {
        let byte = self.u8()?;
        if byte < 0x80 {
            return Some(u64::from(byte));
        }
        let mut value = u64::from(byte & 0x7f);
        let mut shift = 7_u32;
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Some(value);
            }
            shift = shift.saturating_add(7);
        }
    }

    /// A signed LEB128; bits beyond the 64th are dropped.
    #[inline]
    pub fn sleb(&mut self) -> Option<i64> {
        let mut value = 0_u64;
        let mut shift = 0_u32;
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                let sign = if byte & 0x40 != 0 { u64::MAX.checked_shl(shift).unwrap_or(0) } else { 0 };
                return Some((value | sign) as i64);
            }
        }
    }

    /// Skips that many bytes, if they exist.
    #[inline]
    pub fn skip(&mut self, bytes: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        if at > self.bytes.len() {
            return None;
        }
        self.at = at;
        Some(())
    }

    /// Skips a LEB128.
    #[inline]
    pub fn skip_leb(&mut self) -> Option<()> {
        while self.u8()? >= 0x80 {}
        Some(())
    }

    /// The next `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..len)?;
        self.at += len;
        Some(taken)
    }

    /// A string up to its zero byte, which is skipped.
    #[inline]
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        self.at += end + 1;
        Some(&rest[..end])
    }

    /// The length at the start of a unit, and the size of an offset in the unit (DWARF 5, 7.4).
    #[inline]
    pub fn initial_length(&mut self) -> Option<(u64, u8)> {
        match self.u32()? {
            0xffff_ffff => Some((self.u64()?, 8)),
            0xffff_fff0.. => None,
            length => Some((u64::from(length), 4)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_as_in_the_standard() {
        // DWARF 5, tables C.1 and C.2 (figures 22 and 23 of DWARF 4).
        for (bytes, expected) in [(&[2_u8][..], 2), (&[0x80, 1], 128), (&[0xb9, 0x64], 12857)] {
            assert_eq!(Cursor::new(bytes, 0, true).uleb(), Some(expected));
        }
        for (bytes, expected) in [(&[0x7e_u8][..], -2), (&[0xff, 0], 127), (&[0x80, 0x7f], -128)] {
            assert_eq!(Cursor::new(bytes, 0, true).sleb(), Some(expected));
        }
        assert_eq!(Cursor::new(&[0xff; 9], 0, true).uleb(), None);
        assert_eq!(Cursor::new(&[[0xff; 12].as_slice(), &[1]].concat(), 0, true).uleb(), Some(u64::MAX));
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 3], 0, true);
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.skip(4), None);
        assert_eq!(cursor.skip(u64::MAX), None);
        assert_eq!(cursor.string(), None);
        assert_eq!(cursor.bytes(4), None);
        assert_eq!(cursor.bytes(usize::MAX), None);
        assert_eq!(cursor.bytes(0), Some(&[][..]));
        assert_eq!(cursor.sized(3), Some(0x03_0201));
        assert_eq!(cursor.u8(), None);
        assert_eq!(cursor.bytes(0), Some(&[][..]));
        assert_eq!(Cursor::new(&[1, 2, 3], 4, true).bytes(0), None);
    }
}
