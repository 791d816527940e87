//! Debian's Rust compiler and the source of its standard library. They always fit each other, so they build
//! for systems whose standard library is not installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A command of Debian's cargo for another system, in a target folder of its own.
pub(crate) fn cargo(arguments: &[&str], target: &str, folder: &Path) -> Command {
    let mut command = Command::new("/usr/bin/cargo");
    command
        .args(arguments)
        .args(["--locked", "--quiet", "-Zbuild-std", "--target", target])
        .current_dir(crate::root())
        // The compilers of rustup come first there.
        .env("PATH", "/usr/bin:/bin")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", folder)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC")
        .env_remove("CARGO");
    command
}

/// Runs such a command, which must not print a warning.
pub(crate) fn run(command: &mut Command, target: &str) -> Result<()> {
    let built = command.output().context("cannot start /usr/bin/cargo")?;
    // Cargo prints only what the compiler warns of.
    let messages = String::from_utf8_lossy(&built.stderr);
    ensure!(
        built.status.success() && messages.is_empty(),
        "nyquist does not build for {target} without a warning: {messages}"
    );
    Ok(())
}
