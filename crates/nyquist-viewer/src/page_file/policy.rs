//! The policy of the file's page: it may load and run only its own script and its own style sheet.

use sha2::{Digest as _, Sha256};

/// The policy of a page with this script and this style sheet.
pub(super) fn content_policy(script: &str, style: &str) -> String {
    let (script, style) = (hash(script), hash(style));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
}

/// The hash of a text for a policy: <https://www.w3.org/TR/CSP3/#grammardef-hash-source>.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let value = (0..3).fold(0, |value, at| value << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for digit in 0..4 {
            let index = (value >> (18 - 6 * digit)) & 63;
            text.push(if digit > group.len() { '=' } else { DIGITS[index as usize].into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, section 10.
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn a_script_is_named_by_its_hash() {
        // The example of the specification, section 8.3: alert('Hello, world.');
        let hash = hash("alert('Hello, world.');");
        assert_eq!(hash, "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }
}
