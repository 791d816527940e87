//! What the release says of the project: its version, its repository and its time.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::printed::printed;
use crate::steps::cargo;

/// The project at the time of a release.
#[derive(Clone, Debug)]
pub(super) struct Project {
    /// The version that `nyquist --version` prints.
    pub(super) version: String,
    /// The address of the repository, at which releases are found, too.
    pub(super) repository: String,
    /// What nyquist is, in one line.
    pub(super) description: String,
    /// The time of all files, in seconds since 1970.
    pub(super) time: u64,
}

impl Project {
    /// The project in this folder.
    pub(super) fn here() -> Result<Self> {
        let package = package()?;
        let text = |name: &str| {
            package[name].as_str().map(str::to_owned).with_context(|| format!("nyquist has no {name}"))
        };
        Ok(Self {
            version: text("version")?,
            repository: text("repository")?,
            description: text("description")?,
            time: time()?,
        })
    }
}

/// What Cargo.toml says of the package `nyquist`.
pub(super) fn package() -> Result<Value> {
    let metadata = printed(&mut cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"]))?;
    let mut metadata: Value = serde_json::from_str(&metadata).context("cargo's metadata is not JSON")?;
    let packages = metadata["packages"].as_array_mut().context("cargo's metadata has no packages")?;
    let nyquist = packages.iter_mut().find(|package| package["name"] == "nyquist");
    Ok(nyquist.context("the workspace has no package nyquist")?.take())
}

/// The time that `SOURCE_DATE_EPOCH` says, or that of the last commit. So the same commit makes the same files.
fn time() -> Result<u64> {
    let (printed, from) = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(time) => (time, "SOURCE_DATE_EPOCH"),
        Err(_) => {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--format=%ct"]).current_dir(crate::paths::root());
            (
                printed(&mut git).context("set SOURCE_DATE_EPOCH, because there is no commit")?,
                "the commit's time",
            )
        }
    };
    printed.trim().parse().with_context(|| format!("{from} is not a number of seconds: {}", printed.trim()))
}
