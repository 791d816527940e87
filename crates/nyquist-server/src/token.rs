//! The secret in every path of the server.

use std::hint::black_box;

/// RFC 4648, section 6, in lower case: no character needs escaping in a URL.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 160 random bits as 32 characters.
pub(crate) struct Token(String);

impl Token {
    /// Generates a token from the system's random numbers.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 20];
        getrandom::fill(&mut bytes)?;
        Ok(Self(base32(&bytes)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after `/TOKEN/` of a path; `None` if the path does not start with that.
    pub(crate) fn strip_from<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        self.equals(token).then_some(rest)
    }

    /// Compares every byte, even after a difference, so that the time reveals nothing about the token.
    pub(crate) fn equals(&self, other: &str) -> bool {
        let differences = self.0.bytes().zip(other.bytes()).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        self.0.len() == other.len() && differences == 0
    }
}

/// Encodes in groups of five bytes; the input's length is a multiple of five, so there is no padding.
fn base32(bytes: &[u8; 20]) -> String {
    let (groups, _) = bytes.as_chunks::<5>();
    groups.iter().flat_map(|group| group_digits(*group)).collect()
}

fn group_digits(group: [u8; 5]) -> impl Iterator<Item = char> {
    let bits = group.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    (0..8).rev().map(move |digit| char::from(BASE32[(bits >> (digit * 5)) as usize & 31]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_rfc_4648s() {
        assert_eq!(base32(b"foobarfoobarfoobar!!"), "mzxw6ytbojtg633cmfzgm33pmjqxeijb");
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(a.as_str().len(), 32);
        assert_ne!(a.as_str(), b.as_str());
    }

    #[test]
    fn only_the_whole_token_opens_a_path() {
        let token = Token("abc".to_owned());
        assert_eq!(token.strip_from("/abc/source/v1"), Some("source/v1"));
        assert_eq!(token.strip_from("/abc/"), Some(""));
        for wrong in ["", "/", "/abc", "abc/x", "//abc/x", "/ab/x", "/abcd/x", "/abd/x", "/ABC/x", "/a%62c/x"]
        {
            assert_eq!(token.strip_from(wrong), None, "{wrong}");
        }
    }
}
