//! Converts text that is not plain UTF-8: text with a byte order mark, or in UTF-16, as from PowerShell.

use std::borrow::Cow;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// How many characters must look like UTF-16 without a byte order mark.
const CERTAIN: usize = 8;

/// Converts two bytes to a number.
type Join = fn([u8; 2]) -> u16;

/// The text in UTF-8 without a mark. Bytes that are no UTF-16 stay unchanged.
pub(crate) fn to_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    if let Some(rest) = bytes.strip_prefix(UTF8_MARK) {
        return Cow::Borrowed(rest);
    }
    match utf16(bytes) {
        Some((rest, join)) => Cow::Owned(decode(rest, join).into_bytes()),
        None => Cow::Borrowed(bytes),
    }
}

/// Whether [`to_utf8`] changes the text.
pub(crate) fn is_recoded(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF8_MARK) || utf16(bytes).is_some()
}

/// The text after the mark, if there is one, and its byte order.
fn utf16(bytes: &[u8]) -> Option<(&[u8], Join)> {
    let (little, big): (Join, Join) = (u16::from_le_bytes, u16::from_be_bytes);
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some((rest, little)),
        [0xfe, 0xff, rest @ ..] => Some((rest, big)),
        _ => [little, big].into_iter().find(|&join| is_ascii(bytes, join)).map(|join| (bytes, join)),
    }
}

fn is_ascii(bytes: &[u8], join: Join) -> bool {
    let is_letter = |pair: &[u8; 2]| matches!(join(*pair), 0x20..=0x7e | 0x09 | 0x0a | 0x0d);
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.get(..CERTAIN).is_some_and(|pairs| pairs.iter().all(is_letter))
}

fn decode(bytes: &[u8], join: Join) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let letters = char::decode_utf16(pairs.iter().map(|pair| join(*pair)));
    letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_and_marks_become_utf8() {
        let units: Vec<u16> = "main;größe;😀 17\n".encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let check = |bytes: &[u8]| {
            assert_eq!(&*to_utf8(bytes), "main;größe;😀 17\n".as_bytes());
            assert!(is_recoded(bytes));
        };
        check(&[b"\xff\xfe", &*little].concat());
        check(&[b"\xfe\xff", &*big].concat());
        check(&[UTF8_MARK, "main;größe;😀 17\n".as_bytes()].concat());
        let plain: Vec<u8> = "plain text 17\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(&*to_utf8(&plain), b"plain text 17\n");
        for other in [&b"main;x 3"[..], b"", b"\xff", &[0; 64], &[0, 0, 1, 0, 1, 2]] {
            assert!(!is_recoded(other), "{other:?}");
        }
        assert_eq!(&*to_utf8(b"\xff\xfe\x00\xd8a"), "\u{fffd}".as_bytes());
    }
}
