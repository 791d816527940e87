//! The compiled unwind tables of the available libraries, compared with gimli row by row. The tables that
//! come from instructions alone are compared, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::succeeds;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Libraries that other compilers and assemblers made, by the names that gcc knows.
const OF_GCC: &[&str] = &["libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libstdc++.so.6"];

/// The beginnings of the names of the largest libraries of rustc and clang.
const OF_RUSTC: &[&str] = &["librustc_driver", "libLLVM"];

/// Compares every row. This is skipped if the crates of the workspace cannot be fetched.
pub(super) fn check(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/unwind", "oracle", tally) else { return Ok(true) };
    let mut check = Command::new(workspace.build("check-rows")?);
    check.args(libraries_of_gcc()?).args(libraries_of_rustc()?);
    succeeds(check)
}

/// Compares the tables that come from instructions alone with the unwind information of a program. The C
/// library is statically linked into that program.
pub(super) fn check_followed(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/unwind", "oracle", tally) else { return Ok(true) };
    let (sources, program) =
        (crate::paths::root().join("workloads"), super::folder::folder()?.join("static"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-static", "-I"]).arg(sources.join("common")).arg(sources.join("shares.c"));
    let mut check = Command::new(workspace.build("check-followed")?);
    check.arg(&program);
    Ok(succeeds({
        gcc.arg("-o").arg(&program);
        gcc
    })? && succeeds(check)?)
}

pub(super) fn libraries_of_gcc() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in OF_GCC {
        let path = printed(Command::new("gcc").arg(format!("-print-file-name={name}")))?;
        // For a file that gcc does not find, it prints the name unchanged.
        files.extend(Some(PathBuf::from(path)).filter(|path| path.is_absolute()));
    }
    ensure!(!files.is_empty(), "gcc finds none of {}", OF_GCC.join(", "));
    Ok(files)
}

pub(super) fn libraries_of_rustc() -> Result<Vec<PathBuf>> {
    let libraries = Path::new(&printed(Command::new("rustc").args(["--print", "sysroot"]))?).join("lib");
    let entries = std::fs::read_dir(&libraries).with_context(|| format!("no {}", libraries.display()))?;
    let files: Vec<PathBuf> = entries.flatten().filter(is_large_library).map(|entry| entry.path()).collect();
    ensure!(!files.is_empty(), "{} holds none of {}", libraries.display(), OF_RUSTC.join(", "));
    Ok(files)
}

/// Whether a file is a library, and not a linker script with the library's name.
fn is_large_library(entry: &std::fs::DirEntry) -> bool {
    let name = entry.file_name();
    let is_named = OF_RUSTC.iter().any(|start| name.to_string_lossy().starts_with(start));
    is_named && entry.metadata().is_ok_and(|metadata| metadata.len() > 1 << 20)
}

/// The output of a program without the newline at its end.
fn printed(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed ({})", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
