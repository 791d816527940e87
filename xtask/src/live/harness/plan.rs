//! Describes a live run: the program under test, and which tests run.

use std::path::PathBuf;

/// The settings of a live run.
pub(crate) struct Plan {
    /// The program under test.
    pub nyquist: PathBuf,
    /// The folder of the built workloads.
    pub workloads: PathBuf,
    /// Only the tests that are marked quick.
    pub quick: bool,
    /// Words, one of which must be in a test's name. If there are none, all tests run except those that are
    /// left out.
    pub filter: Vec<String>,
    /// The topics that are left out, unless the filter has a word.
    pub left_out: Vec<&'static str>,
    /// Whether to run tests that are only part of complete runs.
    pub all: bool,
}
