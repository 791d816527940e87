//! `platforms-macos`: the command is linked for Apple's processors.

use std::fs;

use anyhow::{Context as _, Result};

use super::{COMMAND, folder, made_up};
use crate::macos::{frameworks, program};
use crate::tally::Tally;
use crate::zig::Zig;
use crate::{debian_rust, packages};

const TARGET: &str = "aarch64-apple-darwin";

/// Links the command, and checks that macOS could start it. A function that no macOS has must fail the link.
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
        let mut link = zig.cargo(&["rustc", "--bin", name, COMMAND], TARGET, &folder);
        debian_rust::run(link.arg("--").arg(frameworks::flag(&stubs)), TARGET)?;
        let path = folder.join(TARGET).join("debug").join(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        program::expect_startable(&bytes).with_context(|| format!("macOS would not start {name}"))?;
    }
    println!("nyquist is linked for {TARGET}.");
    made_up::is_refused(&zig, TARGET, &stubs, &folder)?;
    Ok(true)
}
