//! Builds nyquist: as it is shipped, or as it is developed.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::steps::{cargo, succeeds};

/// Builds the program as it is shipped, and returns its path.
pub(crate) fn release() -> Result<PathBuf> {
    let build = cargo(&["build", "--release", "--quiet", "--package", "nyquist"]);
    ensure!(succeeds(build)?, "nyquist does not build");
    Ok(crate::target().join("release/nyquist"))
}

/// Builds the program with checks of overflows and without optimisation across crates, as unit tests are built.
/// Their dependencies are used again. Returns its path.
pub(crate) fn development() -> Result<PathBuf> {
    let build = cargo(&["build", "--quiet", "--package", "nyquist"]);
    ensure!(succeeds(build)?, "nyquist does not build");
    Ok(crate::target().join("debug/nyquist"))
}
