//! Names of any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    let _ = nyquist_symbols::demangle(name);
});
