//! `platforms-macos`: the command is linked for Apple's processors, and linted for Intel's.

use std::fs;

use anyhow::{Context as _, Result};

use super::{COMMAND, folder, lint, made_up};
use crate::macos::{frameworks, program};
use crate::tally::Tally;
use crate::zig::Zig;
use crate::{debian_rust, packages};

/// The target that is linked.
const LINKED: &str = "aarch64-apple-darwin";
/// The target that is linted.
const LINTED: &str = "x86_64-apple-darwin";

/// Links for one processor, and lints for the other. A function that no macOS has must fail the link.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let missing = packages::install_macos();
    if !missing.is_empty() {
        tally.skip("platforms-macos", format!("not installed: {}", missing.join(" ")));
        return Ok(true);
    }
    let (folder, zig) = (folder(), Zig::installed()?);
    let stubs = folder.join("frameworks");
    frameworks::write_into(&stubs)?;
    for name in ["nyquist", "cargo-nyquist"] {
        let mut link = zig.cargo(&["rustc", "--bin", name, COMMAND], LINKED, &folder);
        debian_rust::run(link.arg("--").arg(frameworks::flag(&stubs)), LINKED)?;
        let path = folder.join(LINKED).join("debug").join(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        program::expect_startable(&bytes).with_context(|| format!("macOS would not start {name}"))?;
    }
    println!("nyquist is linked for {LINKED}.");
    made_up::is_refused(&zig, LINKED, &stubs, &folder)?;
    lint(zig.cargo(&["clippy", "--bins", COMMAND], LINTED, &folder), LINTED)?;
    Ok(true)
}
