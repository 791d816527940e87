//! `platforms`: the libraries that read, convert and show profiles are compiled for Windows and macOS, and their
//! unit tests for Windows run under Wine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

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
const TESTED: [&str; 9] =
    ["system", "resources", "object", "unwind", "symbols", "perf", "profile", "formats", "analysis"];

/// A library of Windows that Wine 8 lacks and that each program of Rust needs (`ProcessPrng`).
const RANDOM: &str = "int __stdcall SystemFunction036(void *, unsigned long);
__declspec(dllexport) int ProcessPrng(unsigned char *bytes, unsigned long long len) {
    return SystemFunction036(bytes, len);
}
";

/// Compiles for both systems, and tests for one.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let missing = packages::install_platforms();
    if !missing.is_empty() {
        tally.skip("platforms", format!("not installed: {}", missing.join(" ")));
        return Ok(true);
    }
    let folder = crate::target().join("platforms");
    // What is built for Windows, the tests there use again.
    for (command, target, more) in [("build", WINDOWS, &["download"][..]), ("check", MACOS, &[])] {
        let mut compile = debian_rust::cargo(&[command], target, &folder);
        compile.args(packages_of(READING.iter().chain(more)));
        debian_rust::run(&mut compile, target)?;
        println!("The libraries compile for {target}.");
    }
    let mut test = debian_rust::cargo(&["test", "--lib", "--no-fail-fast"], WINDOWS, &folder);
    test.args(packages_of(TESTED.iter())).envs(wine(&folder)?);
    Ok(test.status().context("cannot start /usr/bin/cargo")?.success())
}

fn packages_of<'a>(names: impl Iterator<Item = &'a &'static str>) -> Vec<String> {
    names.map(|name| format!("--package=nyquist-{name}")).collect()
}

/// A Wine of its own that can run programs of Rust, as environment variables of cargo.
pub(crate) fn wine(folder: &Path) -> Result<[(&'static str, PathBuf); 3]> {
    let prefix = folder.join("wine");
    let system = prefix.join("drive_c/windows/system32");
    let library = system.join("bcryptprimitives.dll");
    if !library.exists() {
        fs::create_dir_all(&prefix)?;
        succeed(Command::new("wineboot").arg("--init").env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all"))?;
        let source = folder.join("random.c");
        fs::write(&source, RANDOM)?;
        let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
        succeed(compiler.arg("-shared").arg("-o").arg(&library).arg(&source).arg("-ladvapi32"))?;
    }
    Ok([
        ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine".into()),
        ("WINEPREFIX", prefix),
        ("WINEDEBUG", "-all".into()),
    ])
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
