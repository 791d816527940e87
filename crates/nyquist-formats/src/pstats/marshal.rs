//! Python's marshal format, as far as files of `cProfile` use it: dictionaries, tuples, texts and numbers.
//!
//! It is documented by CPython's `Python/marshal.c`.

use std::rc::Rc;

/// The maximum nesting depth, which such a file does not exceed: a dictionary, a tuple of a function, a
/// dictionary of its callers, a tuple of one.
const MAX_DEPTH: u32 = 8;

/// The flag in the type of a value that others refer to.
const IS_REFERRED: u8 = 0x80;

/// A value. Copies are cheap.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MarshalValue {
    None,
    Integer(i64),
    Float(f64),
    /// A text, by its index among the texts.
    Text(usize),
    Tuple(Rc<[MarshalValue]>),
    /// Keys with their values.
    Dictionary(Rc<[(MarshalValue, MarshalValue)]>),
}

/// A document: its value, and its texts.
#[derive(Debug)]
pub(super) struct MarshalDocument {
    pub value: MarshalValue,
    pub texts: Vec<String>,
}

/// Reads a document. `None` if it is truncated, or has a type that such files do not use. O(length).
pub(super) fn read(bytes: &[u8]) -> Option<MarshalDocument> {
    let mut reader = MarshalReader { rest: bytes, texts: Vec::new(), referred: Vec::new() };
    let (value, _) = reader.value(0)??;
    Some(MarshalDocument { value, texts: reader.texts })
}

struct MarshalReader<'a> {
    rest: &'a [u8],
    texts: Vec<String>,
    /// The values that others refer to by their number, with their depths. A value that is not complete yet
    /// is `None`.
    referred: Vec<Option<(MarshalValue, u32)>>,
}

impl MarshalReader<'_> {
    /// The next value, with its depth. `Some(None)` for the mark that ends a dictionary.
    #[expect(clippy::option_option, reason = "an end and an error are not the same")]
    fn value(&mut self, depth: u32) -> Option<Option<(MarshalValue, u32)>> {
        let [kind] = self.take()?;
        let place = (kind & IS_REFERRED != 0).then(|| {
            self.referred.push(None);
            self.referred.len() - 1
        });
        let value = match kind & !IS_REFERRED {
            b'0' => return Some(None),
            b'N' => MarshalValue::None,
            b'F' => MarshalValue::Integer(0),
            b'T' => MarshalValue::Integer(1),
            b'i' => MarshalValue::Integer(i64::from(i32::from_le_bytes(self.take()?))),
            b'I' => MarshalValue::Integer(i64::from_le_bytes(self.take()?)),
            b'l' => MarshalValue::Integer(self.long()?),
            b'g' => MarshalValue::Float(f64::from_le_bytes(self.take()?)),
            b'z' | b'Z' => self.text(true)?,
            b's' | b'a' | b'A' | b'u' | b't' => self.text(false)?,
            b'r' => return self.reference(depth).map(Some),
            _ => {
                let value = self.container(kind & !IS_REFERRED, depth)?;
                return Some(Some(self.referred_as(place, value)));
            }
        };
        Some(Some(self.referred_as(place, (value, 0))))
    }

    fn referred_as(&mut self, place: Option<usize>, value: (MarshalValue, u32)) -> (MarshalValue, u32) {
        if let Some(place) = place {
            self.referred[place] = Some(value.clone());
        }
        value
    }

    fn container(&mut self, kind: u8, depth: u32) -> Option<(MarshalValue, u32)> {
        match kind {
            b')' | b'(' if depth < MAX_DEPTH => self.tuple(kind == b')', depth),
            b'{' if depth < MAX_DEPTH => self.dictionary(depth),
            _ => None,
        }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn length(&mut self, is_short: bool) -> Option<usize> {
        if is_short {
            return self.take().map(|[length]| usize::from(length));
        }
        usize::try_from(i32::from_le_bytes(self.take()?)).ok()
    }

    /// An integer in digits of 15 bits. A number that is too large is saturated.
    fn long(&mut self) -> Option<i64> {
        let count = i32::from_le_bytes(self.take()?);
        let mut number = 0_i64;
        for place in 0..count.unsigned_abs() {
            let digit = i64::from(u16::from_le_bytes(self.take()?));
            let shifted = if place < 4 { digit << (15 * place) } else { i64::MAX };
            number = number.saturating_add(if digit == 0 { 0 } else { shifted });
        }
        Some(if count < 0 { -number } else { number })
    }

    fn text(&mut self, is_short: bool) -> Option<MarshalValue> {
        let length = self.length(is_short)?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.texts.push(String::from_utf8_lossy(text).into_owned());
        Some(MarshalValue::Text(self.texts.len() - 1))
    }

    /// A value that was read before. It has the same depth as there.
    fn reference(&mut self, depth: u32) -> Option<(MarshalValue, u32)> {
        let place = self.length(false)?;
        let (value, height) = self.referred.get(place)?.clone()?;
        (depth + height <= MAX_DEPTH).then_some((value, height))
    }

    fn tuple(&mut self, is_short: bool, depth: u32) -> Option<(MarshalValue, u32)> {
        let length = self.length(is_short)?;
        let (mut values, mut height) = (Vec::new(), 0);
        for _ in 0..length {
            let (value, of_value) = self.value(depth + 1)??;
            height = height.max(of_value);
            values.push(value);
        }
        Some((MarshalValue::Tuple(values.into()), height + 1))
    }

    fn dictionary(&mut self, depth: u32) -> Option<(MarshalValue, u32)> {
        let (mut entries, mut height) = (Vec::new(), 0);
        while let Some((key, of_key)) = self.value(depth + 1)? {
            let (value, of_value) = self.value(depth + 1)??;
            height = height.max(of_key).max(of_value);
            entries.push((key, value));
        }
        Some((MarshalValue::Dictionary(entries.into()), height + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_kinds_are_read() {
        // {("ab", -3): (2**20, 1.5, None), "ab": 2**40} with "ab" referred to.
        let bytes = b"{)\x02\xda\x02abi\xfd\xff\xff\xff)\x03i\x00\x00\x10\x00g\0\0\0\0\0\0\xf8?Nr\0\0\0\0l\x03\0\0\0\0\0\0\0\0\x040";
        let MarshalDocument { value, texts } = read(bytes).unwrap();
        let key = MarshalValue::Tuple([MarshalValue::Text(0), MarshalValue::Integer(-3)].into());
        let of_key = MarshalValue::Tuple(
            [MarshalValue::Integer(1 << 20), MarshalValue::Float(1.5), MarshalValue::None].into(),
        );
        let entries = [(key, of_key), (MarshalValue::Text(0), MarshalValue::Integer(1 << 40))];
        assert_eq!((value, texts), (MarshalValue::Dictionary(entries.into()), vec!["ab".to_owned()]));
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn hostile_values_are_refused() {
        for bytes in
            [&b"(\xff\xff\xff\x7f"[..], b"r\0\0\0\0", b"\xa9\x01r\0\0\0\0", b"c", b"s\xff\xff\xff\xff", b"0"]
        {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
        assert!(read(&b")\x01".repeat(100_000)).is_none());
        // A chain of tuples, each of which refers to the previous one.
        let links = (0..100_000_u32).flat_map(|link| [&b"\xa9\x01r"[..], &link.to_le_bytes()].concat());
        let chain: Vec<u8> = b"(\xff\xff\xff\x00\xa9\x01N".iter().copied().chain(links).collect();
        assert!(read(&chain).is_none());
    }
}
