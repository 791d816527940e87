//! The programs of `benches/`. All of them must build, including those that no test runs.

use std::fs;

use anyhow::{Context as _, Result};

use crate::steps::{cargo, succeeds};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Checks each workspace. Returns whether all of them build.
pub(super) fn check(tally: &mut Tally) -> Result<bool> {
    let folder = crate::paths::root().join("benches");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names: Vec<_> = entries.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    names.sort();
    let mut clean = true;
    for name in names {
        let name = format!("benches/{}", name.to_string_lossy());
        if !crate::paths::root().join(&name).join("Cargo.toml").exists() {
            continue;
        }
        let Some(workspace) = Workspace::fetched(&name, "oracle", tally) else { continue };
        let mut check = cargo(&["check", "--locked", "--quiet", "--all-targets", "--manifest-path"]);
        check.arg(workspace.file("Cargo.toml")).arg("--target-dir").arg(crate::paths::target());
        clean &= succeeds(check)?;
    }
    Ok(clean)
}
