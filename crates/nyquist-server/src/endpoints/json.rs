//! Common parts of the JSON endpoints: parsing requests, hexadecimal numbers, bounded responses.

use std::fmt;
use std::io;

use nyquist_object::RelativeAddress;
use serde::de::{DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::reply::ApiError;

/// Parses a request. The body's media type is ignored, because browsers send `text/plain` to avoid the
/// preflight.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::bad_request(format_args!("bad request: {error}")))
}

/// Writes a response of at most `limit` bytes.
pub(super) fn write<T: Serialize>(answer: &T, limit: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = BoundedBuffer { bytes: Vec::new(), limit };
    match serde_json::to_writer(&mut bytes, answer) {
        Ok(()) => Ok(bytes.bytes),
        Err(_) => Err(ApiError::unavailable("the answer is too long; ask for less at once")),
    }
}

/// A buffer that refuses to grow past its limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for BoundedBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A number that is a string such as `"0x1f"` in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hex(pub(super) u64);

impl Hex {
    /// The number, if it fits into 32 bits.
    pub(super) fn to_u32(self, field: &str) -> Result<u32, ApiError> {
        let out_of_range = |_| ApiError::bad_request(format_args!("bad request: {field} is beyond 32 bits"));
        u32::try_from(self.0).map_err(out_of_range)
    }

    /// The number as an address.
    pub(super) fn to_address(self, field: &str) -> Result<RelativeAddress, ApiError> {
        self.to_u32(field).map(RelativeAddress)
    }
}

impl From<u32> for Hex {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(HexVisitor)
    }
}

struct HexVisitor;

impl Visitor<'_> for HexVisitor {
    type Value = Hex;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string of 0x and hexadecimal digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Hex, E> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.map(Hex).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_strings_are_read_and_written() {
        let check = |json: &str, expected: Option<u64>| {
            assert_eq!(serde_json::from_str::<Hex>(json).ok().map(|hex| hex.0), expected, "{json}");
        };
        check(r#""0x510""#, Some(0x510));
        check(r#""0xFf""#, Some(0xff));
        check(r#""0xffffffffffffffff""#, Some(u64::MAX));
        for wrong in
            [r#""510""#, r#""0x""#, r#""0x-1""#, r#""0x+1""#, r#""0x10000000000000000""#, "1296", "null"]
        {
            check(wrong, None);
        }
        assert_eq!(serde_json::to_string(&Hex(0x1380)).unwrap(), r#""0x1380""#);
    }

    #[test]
    fn an_answer_stops_at_its_limit() {
        assert_eq!(write(&"abc", 5).unwrap(), br#""abc""#);
        assert!(write(&"abc", 4).is_err());
    }
}
