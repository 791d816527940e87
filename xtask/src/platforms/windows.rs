//! `platforms-windows`: the command runs under Wine, together with unit tests of its libraries, and is linted for
//! the targets of other linkers and processors.

use anyhow::{Context as _, Result};

use super::{COMMAND, command, folder, lint, wine};
use crate::tally::Tally;
use crate::zig::Zig;
use crate::{debian_rust, packages};

/// The target that is linked and run.
const RUN: &str = "x86_64-pc-windows-gnu";
/// The target of Microsoft's linker, and the only target for 64-bit ARM whose C code can be compiled here.
const LINTED: [&str; 2] = ["x86_64-pc-windows-msvc", "aarch64-pc-windows-gnullvm"];

/// The libraries whose unit tests run under Wine. Tests of what only Linux has are ignored there.
const TESTED: [&str; 13] = [
    "system",
    "resources",
    "object",
    "unwind",
    "symbols",
    "perf",
    "profile",
    "formats",
    "analysis",
    "convert",
    "server",
    "viewer",
    "record",
];

/// Builds and tests for one target, and lints for the others.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let missing = packages::install_windows();
    if !missing.is_empty() {
        tally.skip("platforms-windows", format!("not installed: {}", missing.join(" ")));
        return Ok(true);
    }
    let folder = folder();
    let mut build = debian_rust::cargo(&["build", "--bins", COMMAND], RUN, &folder);
    debian_rust::run(&mut build, RUN)?;
    println!("nyquist is linked for {RUN}.");
    let environment = wine::environment(&folder)?;
    let mut test = debian_rust::cargo(&["test", "--lib", "--bins", "--no-fail-fast", COMMAND], RUN, &folder);
    test.args(TESTED.map(|name| format!("--package=nyquist-{name}"))).envs(environment.clone());
    let units = test.status().context("cannot start /usr/bin/cargo")?.success();
    let mut test = debian_rust::cargo(&["test", "--test=windows_recording"], RUN, &folder);
    test.arg("--package=nyquist-record").envs(environment.clone());
    let recording = test.status().context("cannot start /usr/bin/cargo")?.success();
    let program = folder.join(RUN).join("debug/nyquist.exe");
    let works = command::works(&program, &folder, &environment)?;
    lint_others(&folder)?;
    Ok(works && units && recording)
}

/// Lints for the targets that are not linked.
fn lint_others(folder: &std::path::Path) -> Result<()> {
    let arguments = ["clippy", "--bins", COMMAND];
    let [microsoft, arm] = LINTED;
    let mut clippy = debian_rust::cargo(&arguments, microsoft, folder);
    // There are no headers for this target. Nothing is linked, so the C code of the TLS library may be that of
    // the other linker's target.
    clippy
        .env("CC_x86_64_pc_windows_msvc", "x86_64-w64-mingw32-gcc")
        .env("AR_x86_64_pc_windows_msvc", "x86_64-w64-mingw32-ar");
    lint(clippy, microsoft)?;
    lint(Zig::installed()?.cargo(&arguments, arm, folder), arm)
}
