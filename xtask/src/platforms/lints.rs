//! `windows-lints`, `macos-lints`: the command and all its libraries are compiled and linted for targets that are not
//! linked, so that clippy sees the code of each system and of each of its processors.

use std::process::Command;

use anyhow::Result;

use super::{COMMAND, folder};
use crate::tally::Tally;
use crate::zig::Zig;
use crate::{debian_rust, packages};

/// The target of Microsoft's linker.
const MICROSOFT: &str = "x86_64-pc-windows-msvc";
/// Windows on 64-bit ARM.
const WINDOWS_ARM: &str = "aarch64-pc-windows-gnullvm";
/// macOS on Intel's processors.
const MACOS_INTEL: &str = "x86_64-apple-darwin";

/// The arguments of `cargo`. Portable programs use the markers' layer on every system, so it is checked with its
/// example, too.
const CHECK: [&str; 6] = [
    "check",
    "--bins",
    COMMAND,
    "--package=nyquist-tracing",
    "--example=steps",
    "--features=nyquist-tracing/tracing",
];

/// Debian's clippy.
const CLIPPY: &str = "/usr/bin/clippy-driver";

/// Lints what is only compiled for Windows.
pub(crate) fn windows(tally: &mut Tally) -> Result<bool> {
    if !has_tools("windows-lints", tally) {
        return Ok(true);
    }
    let mut check = debian_rust::cargo(&CHECK, MICROSOFT, &folder());
    // There are no headers for this target. Nothing is linked, so the C code of the TLS library may be that of
    // the other linker's target.
    check
        .env("CC_x86_64_pc_windows_msvc", "x86_64-w64-mingw32-gcc")
        .env("AR_x86_64_pc_windows_msvc", "llvm-lib");
    lint(check, MICROSOFT)?;
    lint_by_zig(WINDOWS_ARM)?;
    Ok(true)
}

/// Lints what is only compiled for macOS.
pub(crate) fn macos(tally: &mut Tally) -> Result<bool> {
    if has_tools("macos-lints", tally) {
        lint_by_zig(MACOS_INTEL)?;
    }
    Ok(true)
}

/// Whether the compilers are installed. If not, the step is skipped.
fn has_tools(step: &'static str, tally: &mut Tally) -> bool {
    let missing = packages::install_lints();
    if !missing.is_empty() {
        tally.skip(step, format!("not installed: {}", missing.join(" ")));
    }
    missing.is_empty()
}

/// Lints for a target whose C code is compiled by zig.
fn lint_by_zig(target: &str) -> Result<()> {
    lint(Zig::installed()?.cargo(&CHECK, target, &folder()), target)
}

/// Checks with clippy in place of the compiler, for our crates. `cargo clippy` does the same, but finds the clippy of
/// rustup first. A warning is an error.
fn lint(mut check: Command, target: &str) -> Result<()> {
    debian_rust::run(check.env("RUSTC_WORKSPACE_WRAPPER", CLIPPY), target)?;
    println!("nyquist compiles for {target} without a warning of the compiler and of clippy.");
    Ok(())
}
