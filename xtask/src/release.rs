//! Builds nyquist in release mode, as it is shipped.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::steps::{cargo, succeeds};

/// Builds the program, and returns its path.
pub(crate) fn build_nyquist() -> Result<PathBuf> {
    let build = cargo(&["build", "--release", "--quiet", "--package", "nyquist"]);
    ensure!(succeeds(build)?, "nyquist does not build");
    Ok(crate::target().join("release/nyquist"))
}
