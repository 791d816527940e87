//! Any target under cargo-fuzz: `NYQUIST_FUZZ_TARGET` names it. Targets are in `src/targets`.
#![no_main]

use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("NYQUIST_FUZZ_TARGET").expect("NYQUIST_FUZZ_TARGET names the target");
        nyquist_fuzz::targets::find(&name).expect("there is such a target")
    });
    target(bytes);
});
