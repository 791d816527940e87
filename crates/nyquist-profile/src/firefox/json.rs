//! Writes JSON as a stream: tokens go into a buffer, which is written to the output when it is full.

use std::io::{self, Write};

/// The number of bytes that are buffered.
const BUFFER_SIZE: usize = 64 * 1024;

/// The largest integer that a JavaScript number holds exactly, 2^53 - 1.
pub(super) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Writes JSON tokens, with commas. The first error stops all writing and is returned by
/// [`finish`](Self::finish).
pub(super) struct JsonWriter<W> {
    output: W,
    buffer: Vec<u8>,
    needs_comma: bool,
    result: io::Result<()>,
}

impl<W: Write> JsonWriter<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, buffer: Vec::with_capacity(2 * BUFFER_SIZE), needs_comma: false, result: Ok(()) }
    }

    /// Writes the rest of the buffer and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.flush();
        self.result?;
        Ok(self.output)
    }

    fn flush(&mut self) {
        if self.result.is_ok() {
            self.result = self.output.write_all(&self.buffer);
        }
        self.buffer.clear();
    }

    /// Ends a value: the next token is preceded by a comma.
    fn value_ends(&mut self) {
        self.needs_comma = true;
        if self.buffer.len() >= BUFFER_SIZE {
            self.flush();
        }
    }

    fn value_begins(&mut self) {
        if self.needs_comma {
            self.buffer.push(b',');
        }
    }

    fn open(&mut self, bracket: u8) {
        self.value_begins();
        self.buffer.push(bracket);
        self.needs_comma = false;
    }

    fn close(&mut self, bracket: u8) {
        self.buffer.push(bracket);
        self.value_ends();
    }

    /// Writes an object whose members `members` writes.
    pub(super) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.open(b'{');
        members(self);
        self.close(b'}');
    }

    /// Writes an array whose elements `element` writes, one per item.
    pub(super) fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut element: impl FnMut(&mut Self, T),
    ) {
        self.open(b'[');
        for item in items {
            element(self, item);
        }
        self.close(b']');
    }

    /// Begins a member of an object; its value must follow.
    pub(super) fn key(&mut self, key: &str) -> &mut Self {
        self.string(key);
        self.buffer.push(b':');
        self.needs_comma = false;
        self
    }

    /// Writes a member that is an array, the same as [`array`](Self::array).
    pub(super) fn column<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        element: impl FnMut(&mut Self, T),
    ) {
        self.key(key).array(items, element);
    }

    /// Writes a member that is an array of `length` times `null`.
    pub(super) fn null_column(&mut self, key: &str, length: usize) {
        self.constant_column(key, b",null", length);
    }

    /// Writes a member that is an array of the same literal, which is given with a preceding comma.
    pub(super) fn constant_column(&mut self, key: &str, with_comma: &[u8], length: usize) {
        /// The number that are written in one call.
        const AT_ONCE: usize = 1024;
        self.key(key).open(b'[');
        let block = with_comma.repeat(length.min(AT_ONCE));
        // The first one has no comma.
        let mut skipped = 1;
        for at in (0..length).step_by(AT_ONCE) {
            let bytes = with_comma.len() * (length - at).min(AT_ONCE);
            self.buffer.extend_from_slice(&block[skipped..bytes]);
            skipped = 0;
            self.value_ends();
        }
        self.close(b']');
    }

    /// Writes a string.
    pub(super) fn string(&mut self, string: &str) {
        self.value_begins();
        self.buffer.push(b'"');
        let mut rest = string.as_bytes();
        while let Some(plain) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            self.buffer.extend_from_slice(&rest[..plain]);
            self.escape(rest[plain]);
            rest = &rest[plain + 1..];
        }
        self.buffer.extend_from_slice(rest);
        self.buffer.push(b'"');
        self.value_ends();
    }

    fn escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        match byte {
            b'"' => self.buffer.extend_from_slice(b"\\\""),
            b'\\' => self.buffer.extend_from_slice(b"\\\\"),
            b'\n' => self.buffer.extend_from_slice(b"\\n"),
            b'\t' => self.buffer.extend_from_slice(b"\\t"),
            _ => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                self.buffer.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }

    /// Writes an integer. If JavaScript cannot represent it exactly, the largest safe integer is written.
    pub(super) fn integer(&mut self, value: u64) {
        let comma = if self.needs_comma { Some(b',') } else { None };
        self.digits(comma, value.min(MAX_SAFE_INTEGER));
        self.value_ends();
    }

    /// Writes a signed integer, limited as [`integer`](Self::integer).
    pub(super) fn signed(&mut self, value: i64) {
        self.value_begins();
        let sign = if value < 0 { Some(b'-') } else { None };
        self.digits(sign, value.unsigned_abs().min(MAX_SAFE_INTEGER));
        self.value_ends();
    }

    /// Writes an index or `null`.
    pub(super) fn optional(&mut self, value: Option<impl Into<u64>>) {
        match value {
            Some(value) => self.integer(value.into()),
            None => self.null(),
        }
    }

    /// Writes an index or -1.
    pub(super) fn or_minus_one(&mut self, value: Option<u32>) {
        self.signed(value.map_or(-1, i64::from));
    }

    /// Writes a number. Numbers that are not finite become 0, because JSON cannot represent them.
    pub(super) fn number(&mut self, value: f64) {
        self.value_begins();
        let value = if value.is_finite() { value } else { 0.0 };
        if value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER as f64 {
            let sign = if value < 0.0 { Some(b'-') } else { None };
            self.digits(sign, value.abs() as u64);
        } else {
            // The shortest digits that parse to the same number; `Display` never writes an exponent.
            self.buffer.extend_from_slice(format!("{value}").as_bytes());
        }
        self.value_ends();
    }

    /// Writes a time or duration in ns as ms, exactly.
    pub(super) fn milliseconds(&mut self, ns: u64) {
        self.decimal(ns / 1_000_000, (ns % 1_000_000) as u32);
    }

    /// Writes `whole` + `millionths` / 10^6 with the necessary digits only.
    fn decimal(&mut self, whole: u64, mut millionths: u32) {
        let comma = if self.needs_comma { Some(b',') } else { None };
        self.digits(comma, whole);
        if millionths > 0 {
            let start = self.buffer.len();
            self.buffer.extend_from_slice(b".000000");
            for pair in self.buffer[start + 1..].as_chunks_mut().0.iter_mut().rev() {
                *pair = PAIRS[(millionths % 100) as usize];
                millionths /= 100;
            }
            let zeros = self.buffer.iter().rev().take_while(|&&digit| digit == b'0').count();
            self.buffer.truncate(self.buffer.len() - zeros);
        }
        self.value_ends();
    }

    /// Writes `true` or `false`.
    pub(super) fn boolean(&mut self, value: bool) {
        if value { self.literal(b",true") } else { self.literal(b",false") }
    }

    /// Writes `null`.
    pub(super) fn null(&mut self) {
        self.literal(b",null");
    }

    /// Writes a literal, given with a preceding comma. Because the length is constant, copying takes few
    /// instructions.
    fn literal<const LENGTH: usize>(&mut self, with_comma: &[u8; LENGTH]) {
        if self.needs_comma {
            self.buffer.extend_from_slice(with_comma);
        } else {
            self.buffer.extend_from_slice(&with_comma[1..]);
        }
        self.value_ends();
    }

    /// Writes a number after an optional byte.
    fn digits(&mut self, before: Option<u8>, mut value: u64) {
        /// The digits of the largest number, and the byte before them.
        const LENGTH: usize = 21;
        let mut start = self.buffer.len();
        // Reserving a constant length takes few instructions; the excess is cut off afterwards. The digits
        // are written to their final place. If bytes that were just written one by one were copied, the
        // processor would wait for all of the writes.
        self.buffer.extend_from_slice(&[0; LENGTH]);
        if let Some(before) = before {
            self.buffer[start] = before;
            start += 1;
        }
        let end = start + 1 + value.checked_ilog10().unwrap_or(0) as usize;
        let (first, pairs) = self.buffer[start..end].as_rchunks_mut();
        for pair in pairs.iter_mut().rev() {
            *pair = PAIRS[(value % 100) as usize];
            value /= 100;
        }
        if let [first] = first {
            *first = b'0' + value as u8;
        }
        self.buffer.truncate(end);
    }
}

/// The numbers from 0 to 99 as two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: impl FnOnce(&mut JsonWriter<Vec<u8>>), expected: &str) {
        let mut json = JsonWriter::new(Vec::new());
        write(&mut json);
        assert_eq!(String::from_utf8(json.finish().unwrap()).unwrap(), expected);
    }

    #[test]
    fn objects_and_arrays_get_their_commas() {
        check(
            |json| {
                json.object(|json| {
                    json.key("a").null();
                    json.column("b", [1u64, 2], JsonWriter::integer);
                    json.key("c").object(|_| ());
                    json.null_column("d", 2);
                });
            },
            r#"{"a":null,"b":[1,2],"c":{},"d":[null,null]}"#,
        );
    }

    #[test]
    fn strings_are_escaped() {
        for string in ["", "plain", "\"quoted\\\"", "tab\tnew\nline\r\u{1}\u{1f}", "grüße \u{2028} 🦀", "\\"]
        {
            let mut json = JsonWriter::new(Vec::new());
            json.string(string);
            let written = json.finish().unwrap();
            assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), string);
        }
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        for (ns, expected) in [
            (0, "0"),
            (1, "0.000001"),
            (1_000_000, "1"),
            (1_234_500, "1.2345"),
            (100_000, "0.1"),
            (1_000_010_000, "1000.01"),
            (20_120_456, "20.120456"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            check(|json| json.milliseconds(ns), expected);
        }
    }

    #[test]
    fn numbers_unknown_to_json_or_javascript_are_cut() {
        check(|json| json.number(f64::NAN), "0");
        check(|json| json.number(f64::NEG_INFINITY), "0");
        check(|json| json.number(-2.5), "-2.5");
        check(|json| json.number(-3.0), "-3");
        check(|json| json.integer(u64::MAX), "9007199254740991");
        check(|json| json.signed(i64::MIN), "-9007199254740991");
        check(|json| json.or_minus_one(None), "-1");
    }

    #[test]
    fn integers_have_all_digits_and_no_leading_zeros() {
        let powers = (0..16).map(|exponent| 10_u64.pow(exponent));
        let numbers = (0..1100).chain(powers.flat_map(|power| [power - 1, power, power + 1, 7 * power]));
        for number in numbers.filter(|number| *number <= MAX_SAFE_INTEGER) {
            check(|json| json.integer(number), &number.to_string());
        }
    }

    #[test]
    fn a_constant_column_has_the_right_length() {
        for length in [0, 1, 2, 1023, 1024, 1025, 4096, 100_000] {
            let expected = format!("{{\"a\":[{}],\"b\":1}}", vec!["null"; length].join(","));
            let write = |json: &mut JsonWriter<Vec<u8>>| {
                json.object(|json| {
                    json.null_column("a", length);
                    json.key("b").integer(1);
                });
            };
            check(write, &expected);
        }
    }

    #[test]
    fn an_error_of_the_output_is_returned_at_the_end() {
        struct FullOutput;
        impl Write for FullOutput {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut json = JsonWriter::new(FullOutput);
        json.array(0..100_000u64, JsonWriter::integer);
        assert_eq!(json.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
    }
}
