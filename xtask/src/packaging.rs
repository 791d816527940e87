//! The step `package`: checks every crate in the form in which it would be published.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, succeeds};

/// The workspace in which the packages find each other. It has the same profile as the project's workspace.
/// So other people's crates, which the lints have checked before, are not checked again.
const WORKSPACE: &str = r#"[workspace]
resolver = "3"
members = ["*-*.*.*"]

[profile.dev]
opt-level = 1
debug = "line-tables-only"

[patch.crates-io]
"#;

/// Packs every crate, and checks each package separately, with the features that it enables itself.
pub(crate) fn run(ci: bool) -> Result<bool> {
    let folder = crate::paths::target().join("packaging");
    forget(&folder)?;
    let mut pack = cargo(&["package", "--workspace", "--no-verify", "--quiet"]);
    pack.args(["--exclude=xtask", "--exclude=nyquist-fuzz", "--exclude=nyquist-test-support"]);
    pack.arg("--target-dir").arg(&folder);
    if !ci {
        pack.arg("--allow-dirty");
    }
    if !succeeds(pack)? {
        return Ok(false);
    }
    let names = unpack(&folder)?;
    let mut all_pass = true;
    for name in names {
        let mut check = cargo(&["check", "--quiet", "--package", &name, "--manifest-path"]);
        check.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(crate::paths::target());
        all_pass &= succeeds(check)?;
    }
    Ok(all_pass)
}

/// Removes the files of earlier packages.
fn forget(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Unpacks all packages beside each other and makes them a workspace. Returns their names.
fn unpack(folder: &Path) -> Result<Vec<String>> {
    let (mut names, mut manifest) = (Vec::new(), WORKSPACE.to_owned());
    for package in packages(&folder.join("package"))? {
        let mut tar = Command::new("tar");
        // Files get the current time, because cargo takes a file that is older than its build product for
        // unchanged.
        tar.arg("-xzmf").arg(&package).arg("-C").arg(folder);
        ensure!(succeeds(tar)?, "{} cannot be unpacked", package.display());
        let stem = package.file_stem().context("a package has a name")?.to_string_lossy().into_owned();
        let (name, _version) = stem.rsplit_once('-').context("a package's file names its version")?;
        writeln!(manifest, "{name} = {{ path = {stem:?} }}")?;
        names.push(name.to_owned());
    }
    ensure!(!names.is_empty(), "nothing was packed");
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(crate::paths::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(names)
}

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no packages in {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut packages: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "crate")).collect();
    packages.sort();
    Ok(packages)
}
