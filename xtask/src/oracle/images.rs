//! The unwind information of files for Windows and macOS, compared with framehop and LLVM at every
//! instruction.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::folder::folder;
use crate::steps::{succeeds, succeeds_quietly};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// How a file for another system is made: the target, and the linker's options.
struct Target {
    name: &'static str,
    triple: &'static str,
    linker: &'static str,
    /// The linker's options for the architecture.
    before: &'static [&'static str],
    options: &'static [&'static str],
}

const WINDOWS: &[&str] = &[
    "/nodefaultlib",
    "/entry:mainCRTStartup",
    "/subsystem:console",
    "/opt:noref",
    "/force:unresolved",
    "/out:",
];

const MACOS: &[&str] =
    &["-platform_version", "macos", "11", "11", "-dylib", "-undefined", "dynamic_lookup", "-o"];

const TARGETS: &[Target] = &[
    Target {
        name: "windows-x86_64",
        triple: "x86_64-windows-msvc",
        linker: "lld-link",
        before: &[],
        options: WINDOWS,
    },
    Target {
        name: "windows-aarch64",
        triple: "aarch64-windows-msvc",
        linker: "lld-link",
        before: &[],
        options: WINDOWS,
    },
    Target {
        name: "macos-x86_64",
        triple: "x86_64-apple-macos11",
        linker: "ld64.lld-14",
        before: &["-arch", "x86_64"],
        options: MACOS,
    },
    Target {
        name: "macos-arm64",
        triple: "arm64-apple-macos11",
        linker: "ld64.lld-14",
        before: &["-arch", "arm64"],
        options: MACOS,
    },
];

/// Checks the unwind information of files for other systems, built with and without optimization.
pub(super) fn check(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/unwind", "oracle", tally) else { return Ok(true) };
    let (folder, mut images) = (folder()?, Vec::new());
    for target in TARGETS {
        let made = make(target, &folder);
        if made.is_empty() {
            tally.skip("oracle", format!("clang and lld make nothing for {} here", target.name));
        } else {
            images.push(made);
        }
    }
    if !succeeds_quietly(Command::new("llvm-objdump").arg("--version")) {
        tally.skip("oracle", "llvm-objdump is not installed");
        images.clear();
    }
    if images.is_empty() {
        return Ok(true);
    }
    let (program, mut clean) = (workspace.build("check-steps")?, true);
    // Each system is checked separately, because the allowed number of different steps is a share of its
    // steps.
    for files in images {
        let mut check = Command::new(&program);
        check.args(files);
        clean &= succeeds(check)?;
    }
    Ok(clean)
}

/// The files for a system that can be built here.
fn make(target: &Target, folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        ["-O0", "-O1", "-O2", "-Os"].iter().filter_map(|level| link(target, folder, level)).collect();
    if target.triple == "x86_64-windows-msvc" {
        files.extend(["-O0", "-O2"].iter().filter_map(|level| link_by_mingw(folder, level)));
    }
    files
}

/// A file that is linked from workloads; `None` if a tool is missing.
fn link(target: &Target, folder: &Path, level: &str) -> Option<PathBuf> {
    let sources = crate::paths::root().join("workloads/windows");
    let mut objects = Vec::new();
    for source in ["program.cc", "more.c", "frames.c"] {
        let object = folder.join(format!("{source}-{}{level}.o", target.name));
        let mut compile = Command::new("clang");
        compile.arg(format!("--target={}", target.triple)).args([
            "-fno-rtti",
            "-fdeclspec",
            "-fasynchronous-unwind-tables",
            level,
            "-c",
            "-o",
        ]);
        if !succeeds_quietly(compile.arg(&object).arg(sources.join(source))) {
            return None;
        }
        objects.push(object);
    }
    let output = folder.join(format!("program-{}{level}", target.name));
    let mut link = Command::new(target.linker);
    let (last, options) = target.options.split_last()?;
    link.args(target.before).args(options).args(&objects);
    if last.ends_with(':') {
        link.arg(format!("{last}{}", output.display()));
    } else {
        link.arg(last).arg(&output);
    }
    succeeds_quietly(&mut link).then_some(output)
}

/// One of GCC's libraries for Windows.
fn link_by_mingw(folder: &Path, level: &str) -> Option<PathBuf> {
    let output = folder.join(format!("frames{level}.dll"));
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-shared", level, "-Wl,--defsym,external=leaf,--defsym,external_double=vectors", "-o"]);
    compile.arg(&output).arg(crate::paths::root().join("workloads/windows/frames.c"));
    succeeds_quietly(&mut compile).then_some(output)
}
