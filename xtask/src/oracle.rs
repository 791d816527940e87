//! The step `oracle`: recordings of the installed perf, record by record as linux-perf-data reads them; and the unwind information of files
//! for Windows and macOS, instruction by instruction as framehop and LLVM read it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, succeeds};
use crate::tally::Tally;
use crate::workloads;

/// What perf is asked for, and what the recording is called.
const MODES: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("frame-pointers", &["-g"]),
    ("copies", &["--call-graph", "dwarf"]),
    ("two-events", &["-g", "-e", "cpu-clock,page-faults"]),
    ("many-fields", &["-g", "-d", "--phys-data", "-T", "--sample-cpu", "--switch-events"]),
    ("compressed", &["-g", "-z"]),
];

/// Samples a second, and how long the program works: for some thousands of samples in less than a second.
const RATE: &str = "4999";
const PASSES: &str = "6000";

/// Runs both; where what one needs is missing it is skipped.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let unwinders = unwinders(tally)?;
    Ok(perf_data(tally)? && unwinders)
}

/// Compares the readers on recordings that are made here. Skipped where perf is missing or records nothing, or the crates of
/// the workspace cannot be fetched.
fn perf_data(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = fetched("benches/perf-data", "oracle", tally) else { return Ok(true) };
    let folder = folder()?;
    let program = workloads::build_all()?.join("fixed_work-fp");
    let mut recordings = Vec::new();
    for (name, mode) in MODES {
        match record(&folder, &program, name, mode) {
            Some(path) => recordings.push(path),
            None => tally.skip("oracle", format!("perf cannot record here: {name}")),
        }
    }
    build(&workspace, &["compare"])?;
    let mut compare = Command::new(workspace.join("target/release/compare"));
    compare.args(&recordings);
    Ok(recordings.is_empty() || succeeds(compare)?)
}

/// A workspace whose crates can be had; where they cannot, the step is skipped.
pub(crate) fn fetched(workspace: &str, step: &str, tally: &mut Tally) -> Option<PathBuf> {
    let path = crate::root().join(workspace);
    let mut fetch = cargo(&["fetch", "--locked", "--quiet", "--manifest-path"]);
    if succeeds_quietly(fetch.arg(path.join("Cargo.toml"))) {
        return Some(path);
    }
    tally.skip(step, format!("the crates of {workspace} cannot be fetched"));
    None
}

fn folder() -> Result<PathBuf> {
    let folder = crate::target().join("oracle");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn build(workspace: &Path, programs: &[&str]) -> Result<()> {
    let mut build = cargo(&["build", "--release", "--quiet", "--manifest-path"]);
    build.arg(workspace.join("Cargo.toml")).env_remove("CARGO_TARGET_DIR");
    build.args(programs.iter().flat_map(|name| ["--bin", *name]));
    ensure!(succeeds(build)?, "the workspace does not build");
    Ok(())
}

/// How a file of another system is made: the target, and how it is linked.
struct Target {
    name: &'static str,
    triple: &'static str,
    linker: &'static str,
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

const TARGETS: &[Target] = &[
    Target { name: "windows-x86_64", triple: "x86_64-windows-msvc", linker: "lld-link", options: WINDOWS },
    Target { name: "windows-aarch64", triple: "aarch64-windows-msvc", linker: "lld-link", options: WINDOWS },
    Target {
        name: "macos-x86_64",
        triple: "x86_64-apple-macos11",
        linker: "ld64.lld-14",
        options: &[
            "-arch",
            "x86_64",
            "-platform_version",
            "macos",
            "11",
            "11",
            "-dylib",
            "-undefined",
            "dynamic_lookup",
            "-o",
        ],
    },
    Target {
        name: "macos-arm64",
        triple: "arm64-apple-macos11",
        linker: "ld64.lld-14",
        options: &[
            "-arch",
            "arm64",
            "-platform_version",
            "macos",
            "11",
            "11",
            "-dylib",
            "-undefined",
            "dynamic_lookup",
            "-o",
        ],
    },
];

/// Checks the unwind information of files for other systems, with and without optimization.
fn unwinders(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = fetched("benches/unwind", "oracle", tally) else { return Ok(true) };
    let (folder, mut clean, mut is_built) = (folder()?, true, false);
    for target in TARGETS {
        let mut files: Vec<_> =
            ["-O0", "-O1", "-O2", "-Os"].iter().filter_map(|level| link(target, &folder, level)).collect();
        if target.triple == "x86_64-windows-msvc" {
            files.extend(["-O0", "-O2"].iter().filter_map(|level| link_by_mingw(&folder, level)));
        }
        if files.is_empty() {
            tally.skip("oracle", format!("clang and lld make nothing for {} here", target.name));
            continue;
        }
        if !is_built {
            build(&workspace, &["check-steps"])?;
            is_built = true;
        }
        let mut check = Command::new(workspace.join("target/release/check-steps"));
        check.args(&files);
        clean &= succeeds(check)?;
    }
    Ok(clean)
}

/// A file made of workloads; `None` where the tools are missing.
fn link(target: &Target, folder: &Path, level: &str) -> Option<PathBuf> {
    let sources = crate::root().join("workloads/windows");
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
    link.args(options).args(&objects);
    if last.ends_with(':') {
        link.arg(format!("{last}{}", output.display()));
    } else {
        link.arg(last).arg(&output);
    }
    succeeds_quietly(&mut link).then_some(output)
}

/// Records a program; `None` where perf cannot.
fn record(folder: &Path, program: &Path, name: &str, mode: &[&str]) -> Option<PathBuf> {
    let path = folder.join(format!("{name}.data"));
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-F", RATE]).args(mode).arg("-o").arg(&path).arg("--");
    command.arg(program).args([PASSES, "2"]);
    succeeds_quietly(&mut command).then_some(path)
}

fn succeeds_quietly(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A library of GCC's for Windows.
fn link_by_mingw(folder: &Path, level: &str) -> Option<PathBuf> {
    let output = folder.join(format!("frames{level}.dll"));
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-shared", level, "-Wl,--defsym,external=leaf,--defsym,external_double=vectors", "-o"]);
    compile.arg(&output).arg(crate::root().join("workloads/windows/frames.c"));
    succeeds_quietly(&mut compile).then_some(output)
}
