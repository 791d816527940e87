//! Arbitrary bytes sent to the server. `TOKEN` and `HOST` in them stand for the right ones.

use crate::loopback::server;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let request = replace(&replace(bytes, "TOKEN", &server().token), "HOST", &server().host());
    let answer = server().exchange(&request);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{:?}", String::from_utf8_lossy(&answer));
    assert!(answer.get(8..12) != Some(b" 500"), "{:?}", String::from_utf8_lossy(&answer));
}

fn replace(bytes: &[u8], word: &str, by: &str) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(word.as_bytes()) {
            replaced.extend(by.as_bytes());
            rest = after;
        } else {
            replaced.push(*byte);
            rest = after;
        }
    }
    replaced
}
