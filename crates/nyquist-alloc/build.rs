//! Builds the library that the profiler preloads into programs, for the feature `library`.
//!
//! It is the same source as the crate, built as a shared library that needs no other one, in two variants. A build for
//! a system without it, or without a linker, contains empty libraries, and the profiler says so.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-check-cfg=cfg(nyquist_preloaded)");
    println!("cargo:rustc-check-cfg=cfg(nyquist_operators)");
    if env::var_os("CARGO_FEATURE_LIBRARY").is_none() {
        return Ok(());
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let plain: &[&str] = &["nyquist_preloaded"];
    let with_operators: &[&str] = &["nyquist_preloaded", "nyquist_operators"];
    for (name, flags) in [("libnyquist_alloc.so", plain), ("libnyquist_alloc_operators.so", with_operators)] {
        let out = folder.join(name);
        if let Err(problem) = build(&out, flags) {
            println!("cargo:warning=allocations cannot be recorded by this build: {problem}");
            fs::write(&out, [])?;
        }
    }
    Ok(())
}

/// Builds a variant of the library as a file.
fn build(out: &Path, flags: &[&str]) -> Result<(), String> {
    let (system, machine) = (variable("CARGO_CFG_TARGET_OS"), variable("CARGO_CFG_TARGET_ARCH"));
    if system != "linux" || !["x86_64", "aarch64"].contains(&&*machine) {
        return fs::write(out, []).map_err(|error| error.to_string());
    }
    let (target, host) = (variable("TARGET"), variable("HOST"));
    let linker = env::var_os("RUSTC_LINKER");
    let built = compile(out, flags, &target, linker.as_deref());
    // It needs no C library, so one for another C library is as good.
    if built.is_err() && target != host && host.starts_with(&machine) && host.contains("linux") {
        return compile(out, flags, &host, None).or(built);
    }
    built
}

/// Compiles and links a variant of the library for a target.
fn compile(out: &Path, flags: &[&str], target: &str, linker: Option<&OsStr>) -> Result<(), String> {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition=2021", "--crate-name=nyquist_alloc", "--crate-type=cdylib"]);
    rustc.args(flags.iter().map(|flag| format!("--cfg={flag}"))).args(["--target", target]);
    rustc.args(["-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1"]);
    // Samples of CPU time are taken in it, too, and their stacks are walked through it.
    rustc.args(["-Cforce-unwind-tables=yes", "-Cstrip=debuginfo"]);
    // A program has its C library already: its names are looked up when the program starts.
    rustc.args(["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles", "-Clink-arg=-Wl,-z,nodelete"]);
    rustc.args(["-Clink-arg=-Wl,-soname,libnyquist_alloc.so", "-Clink-arg=-Wl,-z,undefs"]);
    if target.contains("musl") {
        rustc.arg("-Ctarget-feature=-crt-static");
    }
    if let Some(linker) = linker {
        let mut option = OsString::from("-Clinker=");
        option.push(linker);
        rustc.arg(option);
    }
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("src/preloaded.rs");
    let built = rustc.arg("-o").arg(out).arg(source).output().map_err(|error| error.to_string())?;
    if built.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&built.stderr);
    let first = printed.lines().find(|line| line.contains("error")).unwrap_or("rustc failed");
    Err(first.to_owned())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
