//! zig, the linker and C compiler for Linux, macOS and Windows on 64-bit ARM, and cargo-zigbuild, which gives it to
//! cargo.
//!
//! They are Python packages, and are installed into a folder of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::debian_rust;

/// The versions that were tested.
const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// cargo-zigbuild names no version of macOS, and zig then makes programs for macOS 15 and later.
/// In place of Python, which starts zig, this names the oldest that the compiler makes programs for.
const OLDEST_MACOS: &str = r#"#!/bin/sh
count=$#
while [ "$count" -gt 0 ]; do
    word=$1
    shift
    case $word in
        aarch64-macos-none) word=aarch64-macos.11.0-none ;;
        x86_64-macos-none) word=x86_64-macos.10.12-none ;;
    esac
    set -- "$@" "$word"
    count=$((count - 1))
done
exec "$(dirname "$0")/python3" "$@"
"#;

/// The programs that were installed.
pub(crate) struct Zig {
    programs: PathBuf,
    /// What zig keeps.
    cache: PathBuf,
}

impl Zig {
    /// The programs. They are installed if they are not there.
    pub(crate) fn installed() -> Result<Self> {
        let work = crate::paths::target().join("zig");
        let folder = work.join(PACKAGES.join("+"));
        let (complete, programs) = (folder.join("complete"), folder.join("bin"));
        if !complete.exists() {
            println!("installing {}", PACKAGES.join(" and "));
            install(&folder)?;
            fs::write(&complete, "")?;
        }
        let wrapper = programs.join("python-for-oldest-macos");
        fs::write(&wrapper, OLDEST_MACOS)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        Ok(Self { programs, cache: work.join("cache") })
    }

    /// A command of Debian's cargo in which zig is the linker and the C compiler. The first argument is
    /// `zigbuild` in place of `build`, or `rustc` or `clippy`.
    pub(crate) fn cargo(&self, arguments: &[&str], target: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.programs.join("cargo-zigbuild"));
        debian_rust::prepare(&mut command, arguments, target, folder);
        let path = format!("{}:/usr/bin:/bin", self.programs.display());
        // What zig keeps is removed together with what is built.
        command.env("PATH", path).env("ZIG_GLOBAL_CACHE_DIR", &self.cache);
        command.env("CARGO_ZIGBUILD_PYTHON_PATH", self.programs.join("python-for-oldest-macos"));
        command
    }
}

/// Installs the packages into an empty folder, whatever was there.
fn install(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("cannot remove {}: {error}", folder.display())
        }
        _ => {}
    }
    succeed(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(folder))
        .context("python3 makes no folder for packages")?;
    succeed(Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES))
        .context("pip cannot install zig, which links programs")
}

fn succeed(command: &mut Command) -> Result<()> {
    let finished = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let messages = String::from_utf8_lossy(&finished.stderr);
    ensure!(finished.status.success(), "{command:?} failed ({}): {messages}", finished.status);
    Ok(())
}
