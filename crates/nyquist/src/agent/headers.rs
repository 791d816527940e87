//! The headers of requests, with what authenticates the sender. They are never printed.

use crate::failure::Failure;
use nyquist_system::open_regular;
use std::io::Read as _;
use std::path::Path;

/// The longest file with a secret.
const MAX_BYTES: u64 = 64 << 10;

/// Names and values.
#[derive(Clone, Default)]
pub(super) struct Headers(Vec<(String, String)>);

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Headers {
    pub(super) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub(super) fn with_all(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// All of these and those.
    pub(super) fn and(&self, others: &Self) -> Vec<(String, String)> {
        self.0.iter().chain(&others.0).cloned().collect()
    }

    /// The header for what a file says: `USER:PASSWORD`, or a token.
    pub(super) fn of_file(path: &Path) -> Result<Self, Failure> {
        let failure = |reason: String| Failure::new(format!("cannot read {}: {reason}", path.display()));
        let mut text = String::new();
        let read = open_regular(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        read.map_err(|error| Failure::io(format_args!("cannot read {}", path.display()), &error))?;
        let text = text.trim();
        if text.is_empty() || text.contains(char::is_control) {
            return Err(failure("it is not one line with USER:PASSWORD or a token".to_owned()));
        }
        let value = match text {
            _ if text.starts_with("Bearer ") || text.starts_with("Basic ") => text.to_owned(),
            _ if text.contains(':') => format!("Basic {}", base64(text.as_bytes())),
            _ => format!("Bearer {text}"),
        };
        Ok(Self::new().with("Authorization", &value))
    }

    /// The pairs of OpenTelemetry's variables: `key=value,key=value`, where values may be percent-encoded.
    pub(super) fn of_pairs(text: &str) -> Self {
        Self(pairs(text))
    }
}

/// The pairs of a list such as `OTEL_RESOURCE_ATTRIBUTES`.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.trim().to_owned(), percent_decoded(value.trim())));
    pairs.filter(|(key, _)| !key.is_empty()).collect()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let number =
            part.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place)) as usize & 63];
            text.push(if place > part.len() { '=' } else { digit.into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program `base64` prints them.
    #[test]
    fn passwords_are_base64() {
        for (text, expected) in [("", ""), ("a", "YQ=="), ("a:", "YTo="), ("me:secret?", "bWU6c2VjcmV0Pw==")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn variables_have_pairs() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs("a=1, b=x%20y ,,=z,c=%zz"), [pair("a", "1"), pair("b", "x y"), pair("c", "%zz")]);
    }

    #[test]
    fn a_secret_is_never_shown() {
        let path = std::env::temp_dir().join(format!("nyquist-auth-{}", std::process::id()));
        std::fs::write(&path, "me:secret\n").unwrap();
        let headers = Headers::of_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(headers.and(&Headers::new())[0].1, "Basic bWU6c2VjcmV0");
        assert!(!format!("{headers:?}").contains("bWU"));
    }
}
