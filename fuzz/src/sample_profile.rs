//! The tests' profile that has something of everything, and what must hold of every profile that was read.

use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};

use nyquist_test_support::sample_profile as support;

/// The versions that are written.
pub const VERSIONS: [FormatVersion; 2] = [FormatVersion::V49, FormatVersion::V66];

/// The tests' profile in the Firefox Profiler's format.
pub fn sample_document(version: FormatVersion, gzip: bool) -> Vec<u8> {
    write(&support::sample_profile(), version, gzip)
}

fn write(profile: &Profile, version: FormatVersion, gzip: bool) -> Vec<u8> {
    let mut output = Vec::new();
    firefox::write(profile, WriteOptions { version, gzip }, &mut output).expect("memory can be written");
    output
}

/// Writes a profile that was read, and expects that no rule of the format is broken and that what is read back
/// says the same: first of what is written at all, then of everything.
pub fn check_rewritten(profile: &Profile) {
    for version in VERSIONS {
        let written = write(profile, version, false);
        let violations = firefox::check_bytes(&written).expect("what is written is JSON");
        assert!(violations.is_empty(), "{version:?} {violations:?}");
        let once = firefox::read(written.as_slice()).expect("what is written can be read");
        assert_eq!(once.threads().len(), profile.threads().len());
        let again = firefox::read(write(&once, version, true).as_slice()).expect("and so compressed");
        assert_eq!(support::describe(&once), support::describe(&again), "{version:?}");
    }
}
