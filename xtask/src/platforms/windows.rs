//! `platforms-windows`: the command and the unit tests of its libraries run under Wine.

use anyhow::{Context as _, Result};

use super::{COMMAND, command, folder, wine};
use crate::tally::Tally;
use crate::{debian_rust, packages};

const TARGET: &str = "x86_64-pc-windows-gnu";

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
    let mut build = debian_rust::cargo(&["build", "--bins", COMMAND], TARGET, &folder);
    debian_rust::run(&mut build, TARGET)?;
    println!("nyquist is linked for {TARGET}.");
    let environment = wine::environment(&folder)?;
    let mut test =
        debian_rust::cargo(&["test", "--lib", "--bins", "--no-fail-fast", COMMAND], TARGET, &folder);
    test.args(TESTED.map(|name| format!("--package=nyquist-{name}"))).envs(environment.clone());
    let units = test.status().context("cannot start /usr/bin/cargo")?.success();
    let mut test = debian_rust::cargo(&["test", "--test=windows_recording"], TARGET, &folder);
    test.arg("--package=nyquist-record").envs(environment.clone());
    let recording = test.status().context("cannot start /usr/bin/cargo")?.success();
    let program = folder.join(TARGET).join("debug/nyquist.exe");
    let works = command::works(&program, &folder, &environment)?;
    Ok(works && units && recording)
}
