//! Demangling: names as the programmer wrote them.

mod bounded_string;
mod itanium;
mod ocaml;
mod rust_legacy;
#[cfg(feature = "swift")]
mod swift;

use std::borrow::Cow;
use std::fmt::Write as _;

use bounded_string::{BoundedString, MAX_DEMANGLED};

/// The longest mangled name that is parsed. Real ones reach some ten thousand bytes.
const MAX_MANGLED: usize = 64 << 10;

/// How the hash at the end of a name in Rust's old mangling begins.
const RUST_HASH: &str = "17h";

/// The longest name of Microsoft's C++ that is demangled, and the most letters in it that can begin a nested
/// type, or a type that refers to earlier ones. The demangler itself bounds neither its depth nor its output.
const MAX_MSVC: usize = 2048;
const MAX_MSVC_NESTING: usize = 512;
const MAX_MSVC_FUNCTION_TYPES: usize = 2;

/// Demangles a linker symbol: Rust (v0, and legacy without its hash), Itanium C++, also with the suffixes
/// that compilers append, such as `.cold` or `.llvm.123`, Microsoft's C++, Swift, and OCaml. Any other name
/// is returned unchanged.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.starts_with('?') {
        return demangle_msvc(name).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    #[cfg(feature = "swift")]
    if name.starts_with('$') || name.starts_with("_$") {
        return swift::demangle(name).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    if name.len() > MAX_MANGLED {
        return Cow::Borrowed(name);
    }
    if name.starts_with("caml") {
        return ocaml::demangle(name).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    if !name.starts_with('_') {
        return Cow::Borrowed(name);
    }
    // Names of Rust's old mangling are told from those of C++ by their hash.
    let demangled = if name.contains(RUST_HASH) {
        rust_legacy::demangle(name).or_else(|| demangle_rust(name)).or_else(|| itanium::demangle(name))
    } else {
        itanium::demangle(name).or_else(|| rust_legacy::demangle(name)).or_else(|| demangle_rust(name))
    };
    demangled.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Demangles a name, and removes the prefix that glibc puts before the name of a function that it calls
/// itself.
pub(crate) fn readable(name: &str) -> Cow<'_, str> {
    demangle(name.strip_prefix("__GI_").filter(|name| !name.is_empty()).unwrap_or(name))
}

fn demangle_rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = BoundedString::default();
    write!(out, "{demangled:#}").ok()?;
    Some(out.text)
}

/// The function, its arguments and its qualifiers, without the return type, the access and the calling
/// convention.
fn demangle_msvc(name: &str) -> Option<String> {
    use msvc_demangler::DemangleFlags as Flags;
    let nests = |byte: &&u8| matches!(**byte, b'?' | b'A' | b'B' | b'P' | b'Q' | b'R' | b'S' | b'Y');
    let bytes = name.as_bytes();
    let is_function_type =
        |pair: &&[u8]| matches!(**pair, [b'A' | b'B' | b'P' | b'Q' | b'R' | b'S', b'6'..=b'9']);
    if name.len() > MAX_MSVC
        || bytes.iter().filter(nests).count() > MAX_MSVC_NESTING
        || bytes.windows(2).filter(is_function_type).count() > MAX_MSVC_FUNCTION_TYPES
    {
        return None;
    }
    let flags = Flags::NO_ACCESS_SPECIFIERS
        | Flags::NO_FUNCTION_RETURNS
        | Flags::NO_MS_KEYWORDS
        | Flags::NO_MS_THISTYPE
        | Flags::NO_MEMBER_TYPE
        | Flags::NO_CLASS_TYPE
        | Flags::SPACE_AFTER_COMMA
        | Flags::HUG_TYPE;
    let demangled = msvc_demangler::demangle(name, flags).ok()?;
    (demangled.len() <= MAX_DEMANGLED).then(|| demangled.trim().replace("(void)", "()"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_is_shown_as_it_is_written() {
        for (mangled, expected) in [
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZN12_GLOBAL__N_17CounterE", "(anonymous namespace)::Counter"),
            ("_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"),
            ("?area@Polygon@shapes@@UEBAHH@Z", "shapes::Polygon::area(int) const"),
            ("??$sum@H$02@shapes@@YAHAEAY02$$CBHH@Z", "shapes::sum<int, 3>(int const (&)[3], int)"),
            (
                "??0Polygon@shapes@@QEAA@PEBUPoint@1@H@Z",
                "shapes::Polygon::Polygon(shapes::Point const*, int)",
            ),
            #[cfg(feature = "swift")]
            ("$s4main3FooV3bar2atySi_tF", "main.Foo.bar(at:)"),
            #[cfg(feature = "swift")]
            ("_$s4main3FooV3bar2atySi_tF", "main.Foo.bar(at:)"),
            ("$x.0", "$x.0"),
            ("?", "?"),
            ("main", "main"),
            ("camlStdlib__List__map_472", "Stdlib.List.map_472"),
            ("_start", "_start"),
            ("_Znonsense", "_Znonsense"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), expected);
        }
    }

    #[test]
    fn names_of_other_languages_are_left_whole() {
        // D, Scala Native, Haskell and C.
        for name in [
            "_D3std5stdio4File6openMFAyaxAaZv",
            "_SM17java.lang.IntegerD7compareiiiEo",
            "base_GHCziBase_map_info",
            "_Znot",
        ] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn glibcs_inner_names_are_the_outer_ones() {
        for (name, expected) in [("__GI_abort", "abort"), ("__GI_", "__GI_"), ("GI_x", "GI_x")] {
            assert_eq!(readable(name), expected);
        }
    }

    #[test]
    fn hostile_names_end() {
        let deep = format!("_Z1f{}i", "P".repeat(60_000));
        assert!(!demangle(&deep).is_empty());
        let growing = format!("_Z1fI{}E", "S_".repeat(20_000));
        assert!(!demangle(&growing).is_empty());
        let doubling = "T_S_T0_S0_T1_S1_".repeat(40);
        assert!(!demangle(&format!("_ZN1aI{doubling}EE")).is_empty());
        assert!(demangle(&"_Z".repeat(100_000)).len() >= 200_000);
        let pointers = format!("?f@@YAX{}H@Z", "PEA".repeat(60_000));
        assert_eq!(demangle(&pointers), pointers);
        assert!(!demangle(&format!("?f@@YAX{}H@Z", "PEA".repeat(170))).is_empty());
        let functions = format!("?f@@YAX{}@Z", "P6AX0000000000@Z".repeat(20));
        assert_eq!(demangle(&functions), functions);
    }
}
