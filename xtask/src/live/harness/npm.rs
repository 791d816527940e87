//! Packages from the npm registry that tests run, each in one version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::Context as _;
use serde_json::Value;

use super::expect::{Stop, skip};

/// A package, and the only version that the tests support.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Allows one installation at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

/// The folder whose `node_modules` contains the packages. They are installed if they are missing. Skips the
/// test if that fails.
pub(crate) fn folder_with(packages: &[Package]) -> Result<PathBuf, Stop> {
    let _alone = INSTALLING.lock();
    let folder = crate::paths::target().join("front-end");
    let is_there = |package: &Package| {
        let installed = installed_version(&folder.join("node_modules").join(package.name));
        installed.as_deref() == Some(package.version)
    };
    for package in packages.iter().filter(|package| !is_there(package)) {
        install(&folder, *package)?;
    }
    Ok(folder)
}

fn installed_version(package: &Path) -> Option<String> {
    let text = fs::read_to_string(package.join("package.json")).ok()?;
    let json: Value = serde_json::from_str(&text).ok()?;
    json["version"].as_str().map(str::to_owned)
}

fn install(folder: &Path, package: Package) -> Result<(), Stop> {
    for program in ["node", "npm"] {
        if Command::new(program).arg("--version").output().is_err() {
            return skip(format_args!("there is no {program}, which the front end's own code needs"));
        }
    }
    fs::create_dir_all(folder)?;
    let expected = format!("{}@{}", package.name, package.version);
    let npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(folder)
        .arg(&expected)
        .output()
        .context("cannot start npm")?;
    if npm.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&npm.stderr).into_owned();
    let reason = messages.lines().find(|line| line.contains(" code ")).unwrap_or("npm says no reason");
    skip(format_args!("npm cannot install {expected}: {reason}"))
}
