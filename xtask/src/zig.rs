//! zig, the linker and C compiler for Linux and macOS, and cargo-zigbuild, which gives it to cargo.
//!
//! They are Python packages, and are installed into a folder of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::files::empty_folder;
use super::said::said;

/// The versions that were tested.
const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// The folder with both programs. They are installed if they are not there.
pub(super) fn folder(work: &Path) -> Result<PathBuf> {
    let folder = work.join("zig").join(PACKAGES.join("+"));
    let (complete, programs) = (folder.join("complete"), folder.join("bin"));
    if !complete.exists() {
        println!("installing {}", PACKAGES.join(" and "));
        empty_folder(&folder)?;
        said(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&folder))
            .context("python3 makes no folder for packages")?;
        said(Command::new(programs.join("pip")).args(["install", "--quiet"]).args(PACKAGES))
            .context("pip cannot install zig, which links the programs")?;
        std::fs::write(&complete, "")?;
    }
    Ok(programs)
}
