//! The step `oracle`: recordings of the installed perf, record by record as linux-perf-data reads them; and the unwind information of files
//! for Windows and macOS, instruction by instruction as framehop and LLVM read it; and the stacks of a Go program for 64-bit ARM, as gdb sees them
//! in an emulator.

use std::net::TcpListener;
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

/// Runs all; where what one needs is missing it is skipped.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let (unwinders, go) = (unwinders(tally)?, go_on_arm(tally)?);
    Ok(perf_data(tally)? && unwinders && go)
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

/// Functions of the Go program: the name, and which of its calls the samples begin at.
const GO_FUNCTIONS: &[(&str, &str)] =
    &[("main.recurses", "20000"), ("main.sorts", "1"), ("main.allocates", "500")];

/// Compares stacks of a Go program for 64-bit ARM with gdb's, at arbitrary instructions. Skipped where there is no Go, emulator or gdb for it.
fn go_on_arm(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = fetched("benches/unwind", "oracle", tally) else { return Ok(true) };
    let folder = folder()?;
    let program = folder.join("routines-arm");
    let mut compile = Command::new("go");
    compile.args(["build", "-o"]).arg(&program).arg(crate::root().join("workloads/routines.go"));
    let has = |name: &str| succeeds_quietly(Command::new(name).arg("--version"));
    let has_tools = has("qemu-aarch64-static") && has("gdb-multiarch");
    if !has_tools || !succeeds_quietly(compile.envs([("GOARCH", "arm64"), ("GO111MODULE", "off")])) {
        tally.skip("oracle", "no Go, emulator or gdb for 64-bit ARM is installed here");
        return Ok(true);
    }
    build(&workspace, &["check-gdb"])?;
    let mut check = Command::new(workspace.join("target/release/check-gdb"));
    for (function, from) in GO_FUNCTIONS {
        let samples = folder.join(format!("{function}.samples"));
        sample_in_emulator(&workspace, &program, (function, from), &samples)?;
        check.arg(samples);
    }
    succeeds(check)
}

/// Has gdb write samples of a program from a call of a function on.
fn sample_in_emulator(
    workspace: &Path,
    program: &Path,
    (function, from): (&str, &str),
    samples: &Path,
) -> Result<()> {
    // Freed before the emulator takes it.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port().to_string();
    let mut emulator = Command::new("qemu-aarch64-static");
    emulator.args(["-g", &port]).arg(program).arg("100000");
    // One goroutine runs, and nothing takes its thread from it.
    emulator.envs([("GOMAXPROCS", "1"), ("GOGC", "off"), ("GODEBUG", "asyncpreemptoff=1")]);
    let mut emulator = emulator.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut gdb = Command::new("timeout");
    gdb.args(["-k", "2", "300", "gdb-multiarch", "-batch", "-x"]).arg(workspace.join("gdb-samples.py"));
    gdb.arg(program).env("OUT", samples);
    gdb.envs([("REMOTE", port.as_str()), ("FUNCTION", function), ("FROM", from)]);
    let sampled = succeeds_quietly(gdb.envs([("SAMPLES", "400"), ("STRIDE", "37")]));
    // It may have ended with gdb.
    let _ = emulator.kill();
    emulator.wait()?;
    ensure!(sampled, "gdb wrote no samples of {function}");
    Ok(())
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
