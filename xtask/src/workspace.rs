//! The workspaces of `benches/` whose programs the tests need.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::steps::{cargo, succeeds, succeeds_quietly};
use crate::tally::Tally;

/// A workspace whose crates are available.
pub(crate) struct Workspace(PathBuf);

impl Workspace {
    /// A workspace whose crates can be fetched. Otherwise, the step is skipped.
    pub(crate) fn fetched(folder: &str, step: &str, tally: &mut Tally) -> Option<Self> {
        let path = crate::paths::root().join(folder);
        let mut fetch = cargo(&["fetch", "--locked", "--quiet", "--manifest-path"]);
        if succeeds_quietly(fetch.arg(path.join("Cargo.toml"))) {
            return Some(Self(path));
        }
        tally.skip(step, format!("the crates of {folder} cannot be fetched"));
        None
    }

    /// A file of the workspace.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Makes a development build of a program, and returns its path. All workspaces build into the project's
    /// own target folder, so that the crates they share are built once.
    pub(crate) fn build(&self, program: &str) -> Result<PathBuf> {
        let mut build = cargo(&["build", "--locked", "--quiet", "--bin", program, "--manifest-path"]);
        build.arg(self.file("Cargo.toml")).arg("--target-dir").arg(crate::paths::target());
        ensure!(succeeds(build)?, "{program} does not build");
        Ok(crate::paths::target().join("debug").join(program))
    }
}
