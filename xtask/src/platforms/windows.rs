//! `platforms-windows`: the command and the unit tests of its libraries run under Wine.

use anyhow::{Context as _, Result};

use super::{COMMAND, command, folder, wine};
use crate::tally::Tally;
use crate::{debian_rust, packages};

const TARGET: &str = "x86_64-pc-windows-gnu";

/// The test that records itself.
const RECORDING: &str = "--test=windows_recording";

/// The libraries whose unit tests run under Wine. Tests of what only Linux has are ignored there.
const TESTED: [&str; 14] = [
    "system",
    "resources",
    "object",
    "unwind",
    "symbols",
    "perf",
    "etw",
    "profile",
    "formats",
    "analysis",
    "convert",
    "server",
    "viewer",
    "record",
];

/// Builds the command, and runs the tests.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let missing = packages::install_windows();
    if !missing.is_empty() {
        tally.skip("platforms-windows", format!("not installed: {}", missing.join(" ")));
        return Ok(true);
    }
    let folder = folder();
    // The same packages each time, and a test beside the command: so all crates have the features of the tests, and
    // are built once.
    let cargo = |arguments: &[&str]| {
        let mut cargo = debian_rust::cargo(arguments, TARGET, &folder);
        cargo.arg(COMMAND).args(TESTED.map(|name| format!("--package=nyquist-{name}")));
        cargo
    };
    debian_rust::run(&mut cargo(&["build", "--bins", RECORDING]), TARGET)?;
    println!("nyquist is linked for {TARGET}.");
    let environment = wine::environment(&folder)?;
    let test = |arguments: &[&str]| {
        let status = cargo(arguments).envs(environment.clone()).status();
        anyhow::Ok(status.context("cannot start /usr/bin/cargo")?.success())
    };
    let units = test(&["test", "--lib", "--bins", "--no-fail-fast"])?;
    let recording = test(&["test", RECORDING])?;
    let program = folder.join(TARGET).join("debug/nyquist.exe");
    let works = command::works(&program, &folder, &environment)?;
    Ok(works && units && recording)
}
