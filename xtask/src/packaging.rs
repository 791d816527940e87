//! The step `package`: checks every crate in the form in which it would be published, and installs the program from its
//! package.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::steps::{cargo, succeeds};

/// The workspace in which the packages find each other. It has the same profile as the project's workspace.
/// So other people's crates, which the lints have checked before, are not checked again.
const WORKSPACE: &str = r#"[workspace]
resolver = "2"
members = ["*-*.*.*"]

[profile.dev]
opt-level = 1
debug = "line-tables-only"

[patch.crates-io]
"#;

/// The crates for programs of others, which take older compilers than the profiler.
const FOR_OTHERS: [&str; 2] = ["nyquist-alloc", "nyquist-tracing"];

/// A program of others, which is a workspace of its own.
const PROGRAM: &str = r#"[package]
name = "program"
version = "0.1.0"
edition = "2021"

[lib]
path = "lib.rs"

[workspace]

[dependencies]
"#;

/// Packs every crate, and checks each package separately, with the features that it enables itself. The crates for
/// programs of others are also checked with the oldest compiler that they name.
pub(crate) fn run(ci: bool) -> Result<bool> {
    let folder = crate::paths::target().join("packaging");
    forget(&folder)?;
    let mut pack = cargo(&["package", "--workspace", "--no-verify", "--quiet"]);
    pack.args(["--exclude=xtask", "--exclude=nyquist-fuzz", "--exclude=nyquist-test-support"]);
    pack.arg("--target-dir").arg(&folder);
    if !ci {
        pack.arg("--allow-dirty");
    }
    if !succeeds(pack)? {
        return Ok(false);
    }
    let names = unpack(&folder)?;
    let mut all_pass = true;
    for name in names {
        let mut check = cargo(&["check", "--quiet", "--package", &name, "--manifest-path"]);
        check.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(crate::paths::target());
        all_pass &= succeeds(check)?;
    }
    for name in FOR_OTHERS {
        all_pass &= checks_with_oldest(&folder, name)?;
    }
    Ok(all_pass && succeeds(install(&folder)?)? && records_allocations(&folder)?)
}

/// The folder below which the program is installed.
const INSTALLED: &str = "installed";

/// Installs the program from its package, whose dependencies are the packages beside it. Other people's crates were
/// built for the tests before.
fn install(folder: &Path) -> Result<Command> {
    let is_program = |path: &PathBuf| {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        name.rsplit_once('-').is_some_and(|(name, _version)| name == "nyquist")
    };
    let package = packages(&folder.join("package"))?.into_iter().find(is_program);
    let package = package.context("the program was not packed")?;
    let package = folder.join(package.file_stem().context("a package has a name")?);
    let mut install = cargo(&["install", "--quiet", "--debug", "--locked", "--no-track", "--path"]);
    install.arg(package).arg("--root").arg(folder.join(INSTALLED));
    install.arg("--target-dir").arg(crate::paths::target());
    Ok(install)
}

/// Allocates 1,000 blocks of 1,000 bytes, which stay.
const KEEPS: &str = "#include <stdlib.h>
static void *kept[1000];
__attribute__((noinline)) void keeps(void) { for (int i = 0; i < 1000; i++) kept[i] = malloc(1000); }
int main(void) { keeps(); return kept[999] == 0; }
";

/// Whether the installed program records allocations: the library for that is built by the build script of a package.
#[cfg(target_os = "linux")]
fn records_allocations(folder: &Path) -> Result<bool> {
    let at = |name: &str| folder.join(name);
    fs::write(at("keeps.c"), KEEPS)?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-o"]).arg(at("keeps")).arg(at("keeps.c"));
    ensure!(succeeds(gcc)?, "gcc fails");
    let nyquist = || Command::new(at(INSTALLED).join("bin/nyquist"));
    let mut record = nyquist();
    record.args(["record", "-qs", "--alloc", "--alloc-rate", "1", "-o"]).arg(at("keeps.json.gz"));
    record.arg("--").arg(at("keeps"));
    ensure!(succeeds(record)?, "the program is not recorded");
    let mut report = nyquist();
    report.args(["report", "--json", "--limit", "0", "--event", "live"]).arg(at("keeps.json.gz"));
    let report: Value = serde_json::from_slice(&report.output()?.stdout)?;
    let rows = report["functions"].as_array().into_iter().flatten();
    let keeps = rows.into_iter().find(|row| row["function"] == "keeps");
    let bytes = keeps.and_then(|row| row["total"].as_f64()).unwrap_or_default();
    println!("the installed program has recorded {bytes} allocated bytes of 1,000,000");
    Ok((bytes - 1e6).abs() < 0.5)
}

#[cfg(not(target_os = "linux"))]
fn records_allocations(_: &Path) -> Result<bool> {
    Ok(true)
}

/// Checks a program that uses a package, with the oldest compiler that the package names, and that compiler's cargo.
fn checks_with_oldest(folder: &Path, name: &str) -> Result<bool> {
    let package = unpacked(folder, name)?;
    let path = package.display().to_string();
    let oldest = oldest_compiler(&fs::read_to_string(package.join("Cargo.toml"))?)
        .with_context(|| format!("{name} names no compiler"))?;
    if !has_compiler(&oldest) {
        println!("{name}: not checked with Rust {oldest}: `rustup toolchain install {oldest}` gets it");
        return Ok(true);
    }
    let program = folder.join(format!("program-of-{name}"));
    fs::create_dir_all(&program)?;
    fs::write(program.join("Cargo.toml"), format!("{PROGRAM}{name} = {{ path = {path:?} }}\n"))?;
    fs::write(program.join("lib.rs"), format!("pub use {};\n", name.replace('-', "_")))?;
    let mut check = with_compiler(&oldest);
    check.args(["cargo", "check", "--quiet", "--manifest-path"]).arg(program.join("Cargo.toml"));
    check.arg("--target-dir").arg(folder.join("with-oldest"));
    succeeds(check)
}

/// The folder of a package of the unpacked ones.
fn unpacked(folder: &Path, name: &str) -> Result<PathBuf> {
    let version = |path: &Path| -> Option<bool> {
        let rest = path.file_name()?.to_str()?.strip_prefix(name)?.strip_prefix('-')?;
        Some(rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut entries = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.find(|path| version(path) == Some(true)).with_context(|| format!("{name} was not packed"))
}

/// The oldest compiler in a manifest that cargo wrote.
fn oldest_compiler(manifest: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "))?;
    Some(line.trim_matches('"').to_owned())
}

/// Whether a compiler is there. It is installed where this run installs what it needs.
fn has_compiler(version: &str) -> bool {
    let is_there = || {
        let mut compiler = with_compiler(version);
        compiler.args(["cargo", "--version"]).output().is_ok_and(|printed| printed.status.success())
    };
    if is_there() || !crate::packages::installs() {
        return is_there();
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", version, "--profile", "minimal", "--no-self-update"]);
    succeeds(install).unwrap_or(false)
}

/// A command that runs another one with a compiler. What this build's cargo has set for itself does not count there.
fn with_compiler(version: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", version]).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command
}

/// Removes the files of earlier packages.
fn forget(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Unpacks all packages beside each other and makes them a workspace. Returns their names.
fn unpack(folder: &Path) -> Result<Vec<String>> {
    let (mut names, mut manifest) = (Vec::new(), WORKSPACE.to_owned());
    for package in packages(&folder.join("package"))? {
        let mut tar = Command::new("tar");
        // Files get the current time, because cargo takes a file that is older than its build product for
        // unchanged.
        tar.arg("-xzmf").arg(&package).arg("-C").arg(folder);
        ensure!(succeeds(tar)?, "{} cannot be unpacked", package.display());
        let stem = package.file_stem().context("a package has a name")?.to_string_lossy().into_owned();
        let (name, _version) = stem.rsplit_once('-').context("a package's file names its version")?;
        writeln!(manifest, "{name} = {{ path = {stem:?} }}")?;
        names.push(name.to_owned());
    }
    ensure!(!names.is_empty(), "nothing was packed");
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(crate::paths::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(names)
}

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no packages in {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut packages: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "crate")).collect();
    packages.sort();
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_compiler_is_read() {
        let manifest = "[package]\nedition = \"2021\"\nrust-version = \"1.75\"\nname = \"a\"\n";
        assert_eq!(oldest_compiler(manifest).as_deref(), Some("1.75"));
        assert_eq!(oldest_compiler("[package]\n"), None);
    }
}
