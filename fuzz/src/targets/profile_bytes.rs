//! Reading arbitrary bytes as a profile, JSON or gzip. What can be read is written again and checked.

use crate::sample_profile::check_rewritten;
use nyquist_profile::firefox;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = firefox::check_bytes(bytes);
    if let Ok(profile) = firefox::read(bytes) {
        check_rewritten(&profile);
    }
}
