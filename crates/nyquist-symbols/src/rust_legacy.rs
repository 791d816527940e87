//! Rust's legacy names, `_ZN` ... `17h` and a hash: most names of most programs, so that they are taken apart without
//! a detour. Names that are in any way unusual are left to the demangler for all of Rust's names.

/// The length of the last part, which is a hash: `h` and 16 digits.
const HASH: usize = 17;

/// The name without its hash; `None` for a name that is not a plain legacy one.
pub(crate) fn demangle(name: &str) -> Option<String> {
    let path = name.strip_prefix("_ZN")?.strip_suffix('E').filter(|path| path.is_ascii())?;
    let end = path.len().checked_sub(HASH)?;
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    loop {
        let part;
        (part, rest) = split_part(rest)?;
        if rest.is_empty() {
            return (path.len() - part.len() == end && is_hash(part)).then_some(out);
        }
        if !out.is_empty() {
            out.push_str("::");
        }
        push_unescaped(part, &mut out);
    }
}

/// The first part of a path, which begins with its length, and what is behind it.
fn split_part(path: &str) -> Option<(&str, &str)> {
    let digits = path.bytes().take_while(u8::is_ascii_digit).count();
    let (length, rest) = path.split_at(digits);
    // Parts without a letter and numbers with zeros in front are never written.
    let length = length.parse().ok().filter(|&length| length > 0 && !path.starts_with('0'))?;
    rest.split_at_checked(length)
}

fn is_hash(part: &str) -> bool {
    part.strip_prefix('h').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Appends a part in which `..` stands for `::`, and `$LT$` and the like for what assemblers do not take.
fn push_unescaped(part: &str, out: &mut String) {
    // A part does not begin with an escape itself.
    let mut rest = part.strip_prefix('_').filter(|rest| rest.starts_with('$')).unwrap_or(part);
    while let Some(at) = rest.bytes().position(|byte| byte == b'$' || byte == b'.') {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        rest = special;
        if let Some(after) = rest.strip_prefix("..") {
            out.push_str("::");
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            out.push('.');
            rest = after;
        } else if let Some((character, after)) = escape(rest) {
            out.push(character);
            rest = after;
        } else {
            break;
        }
    }
    out.push_str(rest);
}

/// The character that an escape stands for, and what is behind it.
fn escape(text: &str) -> Option<(char, &str)> {
    let (code, after) = text.strip_prefix('$')?.split_once('$')?;
    let character = match code {
        "SP" => '@',
        "BP" => '*',
        "RF" => '&',
        "LT" => '<',
        "GT" => '>',
        "LP" => '(',
        "RP" => ')',
        "C" => ',',
        _ => unicode(code)?,
    };
    Some((character, after))
}

/// `u` and the number of a character, in lower-case hexadecimal digits.
fn unicode(code: &str) -> Option<char> {
    let digits = code.strip_prefix('u')?;
    let is_lower = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_lower)?;
    char::from_u32(number).filter(|character| !character.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "17h0123456789abcdefE";

    /// The same as the demangler for all of Rust's names says.
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
