//! `platforms`: the command is compiled for Windows, and the libraries for macOS, too. Unit tests for Windows run
//! under Wine, and the command records and reads there.

mod command;
mod wine;

pub(crate) use wine::environment as wine_environment;

use anyhow::{Context as _, Result};

use crate::debian_rust;
use crate::packages;
use crate::tally::Tally;

const WINDOWS: &str = "x86_64-pc-windows-gnu";
const MACOS: &str = "aarch64-apple-darwin";

/// The libraries that read, convert and show profiles. `nyquist-download` has C code of its TLS library, for which
/// there is no compiler of macOS here.
const READING: [&str; 12] = [
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
];

/// The libraries whose unit tests run under Wine. Tests that need an ELF file of this machine are ignored there.
const TESTED: [&str; 10] = [
    "system",
    "resources",
    "object",
    "unwind",
    "symbols",
    "perf",
    "profile",
    "formats",
    "analysis",
    "record",
];

/// Compiles for both systems, and tests for one.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let missing = packages::install_platforms();
    if !missing.is_empty() {
        tally.skip("platforms", format!("not installed: {}", missing.join(" ")));
        return Ok(true);
    }
    let folder = crate::target().join("platforms");
    // What is built for Windows, the tests there use again.
    for (command, target, more) in
        [("build", WINDOWS, &["nyquist"][..]), ("check", MACOS, &["nyquist-record"])]
    {
        let mut compile = debian_rust::cargo(&[command], target, &folder);
        compile.args(packages_of(READING.iter())).args(more.iter().map(|name| format!("--package={name}")));
        debian_rust::run(&mut compile, target)?;
        println!("nyquist compiles for {target}.");
    }
    let environment = wine::environment(&folder)?;
    let mut test = debian_rust::cargo(&["test", "--lib", "--no-fail-fast"], WINDOWS, &folder);
    test.args(packages_of(TESTED.iter())).envs(environment.clone());
    let libraries = test.status().context("cannot start /usr/bin/cargo")?.success();
    let mut test = debian_rust::cargo(&["test", "--test=windows_recording"], WINDOWS, &folder);
    test.arg("--package=nyquist-record").envs(environment.clone());
    let recording = test.status().context("cannot start /usr/bin/cargo")?.success();
    let program = folder.join(WINDOWS).join("debug/nyquist.exe");
    Ok(command::works(&program, &folder, &environment)? && libraries && recording)
}

fn packages_of<'a>(names: impl Iterator<Item = &'a &'static str>) -> Vec<String> {
    names.map(|name| format!("--package=nyquist-{name}")).collect()
}
