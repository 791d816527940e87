//! Numbers and texts in records.

/// Adds a number: seven bits a byte, the lowest first; the highest bit says that more follow.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Adds the difference of two numbers, so that small ones of both signs are short.
pub(crate) fn put_difference(out: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from) as i64;
    put_number(out, (difference << 1 ^ difference >> 63) as u64);
}

/// Adds a number that may be missing.
pub(crate) fn put_option(out: &mut Vec<u8>, number: Option<u64>) {
    match number {
        // The greatest number is no index and no time.
        Some(number) => put_number(out, number.saturating_add(1)),
        None => put_number(out, 0),
    }
}

/// Adds bytes, after their number.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Adds a text that may be missing.
pub(crate) fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(out, text.as_bytes());
    }
}

/// Adds a number with a fraction.
pub(crate) fn put_float(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// The fields of a record that were not read yet. Each method returns `None` if the record ends before the field does,
/// or if the field has no value of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(record: &'a [u8]) -> Self {
        Self(record)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            if place == 9 && byte > 1 {
                return None;
            }
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number that fits in another type.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// A number that was written as its difference from another one.
    pub(crate) fn after(&mut self, from: u64) -> Option<u64> {
        let number = self.number()?;
        let difference = (number >> 1) as i64 ^ -((number & 1) as i64);
        Some(from.wrapping_add(difference as u64))
    }

    #[expect(clippy::option_option, reason = "the outer one is missing if the record is damaged")]
    pub(crate) fn option(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.small()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    pub(crate) fn owned(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    #[expect(clippy::option_option, reason = "the outer one is missing if the record is damaged")]
    pub(crate) fn optional_text(&mut self) -> Option<Option<String>> {
        match self.byte()? {
            0 => Some(None),
            1 => Some(Some(self.owned()?)),
            _ => None,
        }
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            flag @ (0 | 1) => Some(flag == 1),
            _ => None,
        }
    }

    pub(crate) fn float(&mut self) -> Option<f64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(f64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let numbers = [0, 1, 0x7f, 0x80, 300, u64::from(u32::MAX), 1 << 63, u64::MAX];
        let mut out = Vec::new();
        for number in numbers {
            put_number(&mut out, number);
            put_difference(&mut out, 1_000, number);
        }
        let mut fields = Fields::new(&out);
        for number in numbers {
            assert_eq!((fields.number(), fields.after(1_000)), (Some(number), Some(number)));
        }
        assert!(fields.is_empty() && fields.number().is_none());
    }

    #[test]
    fn fields_that_are_cut_off_are_missing() {
        let mut out = Vec::new();
        put_bytes(&mut out, b"text");
        for end in 0..out.len() {
            assert_eq!(Fields::new(&out[..end]).text(), None);
        }
        assert_eq!(Fields::new(&out).text(), Some("text"));
        assert_eq!(Fields::new(&[0xff; 10]).number(), None);
        assert_eq!(Fields::new(&[1, 0xff]).text(), None);
    }
}
