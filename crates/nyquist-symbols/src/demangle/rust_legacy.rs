//! Rust's legacy names, `_ZN` ... `17h` and a hash: most names of most programs, so they have a fast path.
//! Unusual names are left to the general demangler for Rust.

/// The length of the last part, which is a hash: `h` and 16 digits.
const HASH: usize = 17;

/// The name without its hash. `None` if it is not a plain legacy name.
pub(crate) fn demangle(name: &str) -> Option<String> {
    let path = name.strip_prefix("_ZN")?.strip_suffix('E').filter(|path| path.is_ascii())?;
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    loop {
        let part;
        (part, rest) = split_part(rest)?;
        if rest.is_empty() {
            return is_hash(part).then(|| String::from_utf8(out).ok())?;
        }
        if !out.is_empty() {
            out.extend_from_slice(b"::");
        }
        push_unescaped(part, &mut out);
    }
}

/// The first part of a path, which begins with its length, and the rest of the path.
fn split_part(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut length, mut rest) = (0_usize, path);
    while let Some((digit @ b'0'..=b'9', after)) = rest.split_first() {
        length = length.checked_mul(10)?.checked_add(usize::from(digit - b'0'))?;
        rest = after;
    }
    // Empty parts and numbers with leading zeros are never written.
    (length > 0 && path.first() != Some(&b'0')).then_some(())?;
    rest.split_at_checked(length)
}

fn is_hash(part: &[u8]) -> bool {
    part.len() == HASH && part[0] == b'h' && part[1..].iter().all(u8::is_ascii_hexdigit)
}

/// Appends a part. In it `..` stands for `::`, and escapes such as `$LT$` for characters that assemblers do
/// not accept.
fn push_unescaped(part: &[u8], out: &mut Vec<u8>) {
    // A part does not begin with an escape itself.
    let mut rest = if part.starts_with(b"_$") { &part[1..] } else { part };
    while let Some(at) = rest.iter().position(|&byte| byte == b'$' || byte == b'.') {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = match special {
            [b'.', b'.', after @ ..] => {
                out.extend_from_slice(b"::");
                after
            }
            [b'$', after @ ..] => match escape(after) {
                Some((character, after)) => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    after
                }
                // The remainder is unchanged.
                None => return out.extend_from_slice(special),
            },
            _ => {
                out.push(b'.');
                &special[1..]
            }
        };
    }
    out.extend_from_slice(rest);
}

/// The character that an escape stands for, and the text after it. `text` begins after the escape's first
/// `$`.
fn escape(text: &[u8]) -> Option<(char, &[u8])> {
    let end = text.iter().position(|&byte| byte == b'$')?;
    let character = match &text[..end] {
        b"SP" => '@',
        b"BP" => '*',
        b"RF" => '&',
        b"LT" => '<',
        b"GT" => '>',
        b"LP" => '(',
        b"RP" => ')',
        b"C" => ',',
        code => unicode(code)?,
    };
    Some((character, &text[end + 1..]))
}

/// `u` and the number of a character, in lower-case hexadecimal digits.
fn unicode(code: &[u8]) -> Option<char> {
    let digits = code.strip_prefix(b"u")?;
    let is_lower = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let digits = str::from_utf8(digits).ok().filter(|_| is_lower)?;
    let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some(character).filter(|character| !character.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "17h0123456789abcdefE";

    /// Compares the result with that of the general demangler for Rust.
    fn check(path: &str) {
        let name = format!("_ZN{path}{HASH}");
        let expected = rustc_demangle::try_demangle(&name).map(|name| format!("{name:#}"));
        assert_eq!(demangle(&name), expected.ok(), "{name}");
    }

    #[test]
    fn names_are_those_of_the_demangler_for_all() {
        for path in [
            "4core3ptr13drop_in_place",
            "111_$LT$core..iter..adapters..zip..Zip$LT$A$C$B$GT$$u20$as$u20$core..iter..adapters..zip..ZipImpl$LT$A$C$B$GT$$GT$3new",
            "5alloc5boxed12Box$LT$T$GT$3new28_$u7b$$u7b$closure$u7d$$u7d$",
            "1a8$RF$$BP$b",
            "1a4$LPx",
            "1a6$nope$",
            "1a5$u0a$",
            "1a6$ue9$b",
            "1a7$u00E9$",
            "1a2$$",
            "1a2.b",
            "1a3..b",
            "1a4...b",
            "1a6.llvm.",
            "1a2_$",
            "2_a3__b",
        ] {
            check(path);
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        for name in [
            "",
            "_ZN",
            "_ZNE",
            "_ZN4testE",
            "_ZN4testEv",
            "_ZN1a17h0123456789abcdefE.llvm.12AF",
            "_ZN1a17h0123456789abcdeE",
            "_ZN1a17h0123456789abcdegE",
            "_ZN1a18h0123456789abcdefE",
            "_ZN01a17h0123456789abcdefE",
            "_ZN9a17h0123456789abcdefE",
            "_ZN99999999999999999999a17h0123456789abcdefE",
            "_ZN2\u{e9}17h0123456789abcdefE",
            "__ZN1a17h0123456789abcdefE",
        ] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }
}
