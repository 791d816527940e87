//! Demangling arbitrary text, with and without the beginnings that the manglings have.

use nyquist_symbols::demangle;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(name) = std::str::from_utf8(bytes) else { return };
    demangle(name);
    for beginning in ["_Z", "_R", "_ZN", "$s", "$s4main3FooC"] {
        demangle(&format!("{beginning}{name}"));
    }
}
