//! `platforms-lints`: the command and all its libraries are compiled and linted for targets that are not linked, so
//! that clippy sees the code of each system and of each of its processors.

use std::process::Command;

use anyhow::Result;

use super::{COMMAND, folder};
use crate::tally::Tally;
use crate::zig::Zig;
use crate::{debian_rust, packages};

/// The target of Microsoft's linker.
const MICROSOFT: &str = "x86_64-pc-windows-msvc";
/// The targets whose C code is compiled by zig.
const BY_ZIG: [&str; 2] = ["aarch64-pc-windows-gnullvm", "x86_64-apple-darwin"];

/// Debian's clippy.
const CLIPPY: &str = "/usr/bin/clippy-driver";

/// Lints for each target.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let missing = packages::install_lints();
    if !missing.is_empty() {
        tally.skip("platforms-lints", format!("not installed: {}", missing.join(" ")));
        return Ok(true);
    }
    let arguments = ["check", "--bins", COMMAND];
    let mut check = debian_rust::cargo(&arguments, MICROSOFT, &folder());
    // There are no headers for this target. Nothing is linked, so the C code of the TLS library may be that of
    // the other linker's target.
    check
        .env("CC_x86_64_pc_windows_msvc", "x86_64-w64-mingw32-gcc")
        .env("AR_x86_64_pc_windows_msvc", "llvm-lib");
    lint(check, MICROSOFT)?;
    let zig = Zig::installed()?;
    for target in BY_ZIG {
        lint(zig.cargo(&arguments, target, &folder()), target)?;
    }
    Ok(true)
}

/// Checks with clippy in place of the compiler, for our crates. `cargo clippy` does the same, but finds the clippy of
/// rustup first. A warning is an error.
fn lint(mut check: Command, target: &str) -> Result<()> {
    debian_rust::run(check.env("RUSTC_WORKSPACE_WRAPPER", CLIPPY), target)?;
    println!("nyquist compiles for {target} without a warning of the compiler and of clippy.");
    Ok(())
}
