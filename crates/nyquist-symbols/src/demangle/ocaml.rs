//! Names of OCaml's native code: `caml`, the modules, the function and a number, with codes for signs (OCaml,
//! `asmcomp/cmm_helpers.ml` and `utils/misc.ml`).

/// Demangles `camlStdlib__List__map_472`, and `camlStdlib__List.map_472` as OCaml 5 writes it. The number
/// stays, because only it distinguishes anonymous functions. O(length).
pub(super) fn demangle(name: &str) -> Option<String> {
    let mut rest =
        name.strip_prefix("caml").filter(|rest| rest.starts_with(|char: char| char.is_ascii_uppercase()))?;
    // C functions also have such names, but without separators.
    let has_separator = rest.contains("__") || rest.contains('.');
    if !has_separator || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$'".contains(&byte)) {
        return None;
    }
    let mut out = String::with_capacity(rest.len());
    while let Some(char) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__").filter(|after| !after.is_empty()) {
            out.push('.');
            rest = after;
        } else if let Some((sign, after)) = sign(rest) {
            out.push(sign);
            rest = after;
        } else {
            out.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    Some(out)
}

/// The sign that is encoded as `$` and two hexadecimal digits.
fn sign(text: &str) -> Option<(char, &str)> {
    let digits = text.strip_prefix('$')?.get(..2)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()?;
    (0x21..0x7f).contains(&code).then(|| (char::from(code), &text[3..]))
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn modules_signs_and_numbers_are_read() {
        for (mangled, expected) in [
            ("camlStdlib__List__map_472", "Stdlib.List.map_472"),
            ("camlStdlib__List.map_472", "Stdlib.List.map_472"),
            ("camlDune__exe__Main__fun_1234", "Dune.exe.Main.fun_1234"),
            ("camlStdlib__bytes__$2b$2b_2205", "Stdlib.bytes.++_2205"),
            ("camlMain.anon_fn$5bmain$2eml$3a3$2c0$2d$2d54$5d_53", "Main.anon_fn[main.ml:3,0--54]_53"),
            ("camlMain__f'_12", "Main.f'_12"),
            ("camlMain__x$1b$zz$2_1", "Main.x$1b$zz$2_1"),
        ] {
            assert_eq!(demangle(mangled).as_deref(), Some(expected), "{mangled}");
        }
    }

    #[test]
    fn names_of_c_are_left_whole() {
        for name in
            ["caml_alloc_small", "camlMain", "caml", "camlinternal__x", "camlA__é", "camlA B__c", "main"]
        {
            assert_eq!(demangle(name), None, "{name}");
        }
    }
}
