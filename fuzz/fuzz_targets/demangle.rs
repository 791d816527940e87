//! Demangling arbitrary text, with and without the beginnings that the manglings have.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_symbols::demangle;

fuzz_target!(|name: &str| {
    demangle(name);
    for beginning in ["_Z", "_R", "_ZN", "$s", "$s4main3FooC"] {
        demangle(&format!("{beginning}{name}"));
    }
});
