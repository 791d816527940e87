//! Names of functions without the parts that change from one build to the next.

use std::borrow::Cow;

/// The name that identifies a function in another build. It lacks the hash that rustc appends to a path
/// (`::h0123456789abcdef`) or to a crate's name (`core[0123456789abcdef]`). It also lacks LLVM's
/// suffix of promoted locals (`.llvm.123`), the numbers of GCC's clones (`.constprop.0`), and an offset
/// (`+0x1f`).
///
/// `None` for a bare address (`0x12ab`, `fun_1f40`), because it means nothing in another build.
pub fn comparable_name(name: &str) -> Option<Cow<'_, str>> {
    if is_only_address(name) {
        return None;
    }
    let mut rest = name;
    while let Some(shorter) = without_suffix(rest) {
        rest = shorter;
    }
    Some(without_crate_hashes(rest))
}

/// Whether a function has no name but its address (`0x12ab`, `fun_1f40`).
pub fn is_only_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x").or_else(|| name.strip_prefix("fun_"));
    digits.is_some_and(is_hex)
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name without its last suffix that may change.
fn without_suffix(name: &str) -> Option<&str> {
    let cut = |separator: &str, is_suffix: &dyn Fn(&str) -> bool| {
        let (rest, suffix) = name.rsplit_once(separator)?;
        (!rest.is_empty() && is_suffix(suffix)).then_some(rest)
    };
    cut("::h", &|suffix| suffix.len() == 16 && is_hex(suffix))
        .or_else(|| cut(".llvm.", &is_number))
        .or_else(|| cut("+0x", &is_hex))
        .or_else(|| cut(".", &is_number))
}

/// The name without the hashes of crates: eight or more hex digits in brackets.
fn without_crate_hashes(name: &str) -> Cow<'_, str> {
    let mut result = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        result.push_str(before);
        match after.split_once(']') {
            Some((inside, behind)) if inside.len() >= 8 && is_hex(inside) => rest = behind,
            _ => {
                result.push('[');
                rest = after;
            }
        }
    }
    if result.is_empty() {
        return Cow::Borrowed(rest);
    }
    result.push_str(rest);
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_with_a_build_is_left_out() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(comparable_name(name).as_deref(), expected, "{name}");
        };
        check("core::fmt::write::h0123456789abcdef", Some("core::fmt::write"));
        check("core::fmt::write::h0123456789abcdef.llvm.8839", Some("core::fmt::write"));
        check("core[846817f741e54dfd]::fmt::write", Some("core::fmt::write"));
        check("<a[846817f741e54dfd]::B as c[0123456789abcdef]::D>::e", Some("<a::B as c::D>::e"));
        check("parse.constprop.0", Some("parse.constprop"));
        check("parse.isra.0.part.3", Some("parse.isra.0.part"));
        check("parse+0x1f", Some("parse"));
        check("0x12ab", None);
        check("fun_1f40", None);
        for same in [
            "main",
            "fun_zone",
            "0x",
            "[kernel: not permitted]",
            "a::house",
            "Vec<[u8; 4]>",
            "x[deadbeef",
            "",
        ] {
            check(same, Some(same));
        }
    }
}
