//! What a live run has to test, and which of its tests run.

use std::path::PathBuf;

/// The context of a live run.
pub(crate) struct Plan {
    /// The program under test.
    pub nyquist: PathBuf,
    /// The folder of the built workloads.
    pub workloads: PathBuf,
    /// Only the tests that are marked quick.
    pub quick: bool,
    /// Words of which one must be in a test's name; empty: all tests but those left out.
    pub filter: Vec<String>,
    /// The topics that are left out, unless a word names them.
    pub left_out: Vec<&'static str>,
    /// Whether tests run that are part of complete runs alone.
    pub all: bool,
}
