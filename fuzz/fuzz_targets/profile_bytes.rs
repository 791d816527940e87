//! Reading arbitrary bytes as a profile, JSON or gzip. What can be read is written again and checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_fuzz::sample_profile::check_rewritten;
use nyquist_profile::firefox;

fuzz_target!(|bytes: &[u8]| {
    let _ = firefox::check_bytes(bytes);
    if let Ok(profile) = firefox::read(bytes) {
        check_rewritten(&profile);
    }
});
