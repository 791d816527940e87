//! The header of a page, in Thrift's compact protocol, as far as it is used. The library's own reader allocates by
//! the lengths that a header states.

/// The kinds of pages that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    Data,
    Dictionary,
    Other,
}

/// A page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub kind: PageKind,
    pub uncompressed: u32,
    pub compressed: u32,
    pub values: u32,
    pub encoding: i64,
}

/// The depth of nested structures in a header.
const MAX_DEPTH: u32 = 8;

/// Types of the compact protocol.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// The header at the beginning of the bytes, and the bytes after it. `None` if it is damaged.
pub(super) fn read(bytes: &[u8]) -> Option<(PageHeader, &[u8])> {
    let mut cursor = Cursor(bytes);
    let mut header =
        PageHeader { kind: PageKind::Other, uncompressed: 0, compressed: 0, values: 0, encoding: -1 };
    let mut id = 0;
    while let Some((kind, field)) = cursor.field(id)? {
        id = field;
        match (field, kind) {
            (1, I32_LIKE) => {
                header.kind = match cursor.integer()? {
                    0 => PageKind::Data,
                    2 => PageKind::Dictionary,
                    _ => PageKind::Other,
                }
            }
            (2, I32_LIKE) => header.uncompressed = cursor.integer()?.try_into().ok()?,
            (3, I32_LIKE) => header.compressed = cursor.integer()?.try_into().ok()?,
            // The header of a data page, or of a dictionary: both begin with the number of values and their encoding.
            (5 | 7, STRUCT) => (header.values, header.encoding) = cursor.values_and_encoding()?,
            _ => cursor.skip(kind, MAX_DEPTH)?,
        }
    }
    Some((header, cursor.0))
}

/// The type of a 32-bit integer.
const I32_LIKE: u8 = 5;

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A zigzag integer.
    fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The type and the id of the next field after the one with that id; `None` inside if the structure ends.
    #[expect(clippy::option_option, reason = "damaged, the end, or a field")]
    fn field(&mut self, before: i64) -> Option<Option<(u8, i64)>> {
        let byte = self.byte()?;
        if byte & 0xf == STOP {
            return Some(None);
        }
        let id = match byte >> 4 {
            0 => self.integer()?,
            delta => before.checked_add(i64::from(delta))?,
        };
        Some(Some((byte & 0xf, id)))
    }

    fn values_and_encoding(&mut self) -> Option<(u32, i64)> {
        let (mut values, mut encoding, mut id) = (0, -1, 0);
        while let Some((kind, field)) = self.field(id)? {
            id = field;
            match (field, kind) {
                (1, I32_LIKE) => values = self.integer()?.try_into().ok()?,
                (2, I32_LIKE) => encoding = self.integer()?,
                _ => self.skip(kind, MAX_DEPTH)?,
            }
        }
        Some((values, encoding))
    }

    fn skip_bytes(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.skip_bytes(1),
            4..=I64 => self.varint().map(drop),
            DOUBLE => self.skip_bytes(8),
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)
            }
            LIST | SET => self.skip_list(depth),
            STRUCT => {
                while let Some((kind, _)) = self.field(0)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn skip_list(&mut self, depth: u32) -> Option<()> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 0xf { self.varint()? } else { u64::from(byte >> 4) };
        for _ in 0..count {
            // In lists, a truth value takes a byte.
            match byte & 0xf {
                TRUE | FALSE => self.skip_bytes(1)?,
                kind => self.skip(kind, depth)?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page of 300 values in the encoding 8, with statistics of a text, which are skipped.
    const DATA: &[u8] = &[
        0x15, 0, 0x15, 0xc8, 1, 0x15, 0x64, 0x2c, 0x15, 0xd8, 4, 0x15, 16, 0x15, 6, 0x15, 6, 0x1c, 0x18, 2,
        b'a', b'b', 0, 0, 0, 9,
    ];

    #[test]
    fn a_header_states_sizes_values_and_encoding() {
        let (header, rest) = read(DATA).unwrap();
        let expected =
            PageHeader { kind: PageKind::Data, uncompressed: 100, compressed: 50, values: 300, encoding: 8 };
        assert_eq!((header, rest), (expected, &[9][..]));
    }

    #[test]
    fn damaged_headers_are_refused() {
        for length in 0..DATA.len() - 1 {
            assert!(read(&DATA[..length]).is_none(), "{length}");
        }
        // A text longer than the file, a negative size, and nesting without an end.
        assert!(read(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_none());
        assert!(read(&[0x25, 1, 0]).is_none());
        assert!(read(&[0x1c; 100]).is_none());
    }
}
