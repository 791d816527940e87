//! Builds the programs of the workspace that tests run.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::steps::{cargo, succeeds};

/// An example of the workspace that is quickly built.
const SMALL_EXAMPLE: &str = "count";

/// Builds nyquist as it is shipped, and returns its path.
pub(crate) fn release() -> Result<PathBuf> {
    let build = cargo(&["build", "--release", "--quiet", "--package", "nyquist"]);
    ensure!(succeeds(build)?, "nyquist does not build");
    Ok(crate::paths::target().join("release/nyquist"))
}

/// Builds nyquist with checks of overflows and without optimisation across crates. Returns its path.
pub(crate) fn development() -> Result<PathBuf> {
    // Both programs belong together.
    as_tests_are_built(&["--bin", "nyquist", "--bin", "cargo-nyquist"])?;
    Ok(crate::paths::target().join("debug/nyquist"))
}

/// Builds the program that runs the fuzz targets, and returns its path.
pub(crate) fn fuzz_driver() -> Result<PathBuf> {
    as_tests_are_built(&["--bin", "fuzz-driver"])?;
    Ok(crate::paths::target().join("debug/fuzz-driver"))
}

/// Builds the example of `nyquist-symbols` that symbolicates, and returns its path.
pub(crate) fn symbolication() -> Result<PathBuf> {
    as_tests_are_built(&[])?;
    Ok(crate::paths::target().join("debug/examples").join(SMALL_EXAMPLE))
}

/// Builds programs from the crates of the unit tests, which are not built again. Crates are the same only if their
/// features are: those that all packages and their tests ask for. Cargo counts the latter only if it builds a test
/// or an example, too.
fn as_tests_are_built(programs: &[&str]) -> Result<()> {
    let mut build = cargo(&["build", "--quiet", "--locked", "--workspace", "--example", SMALL_EXAMPLE]);
    build.args(programs);
    ensure!(succeeds(build)?, "{} does not build", programs.last().unwrap_or(&SMALL_EXAMPLE));
    Ok(())
}
