//! The stacks of a Go program for 64-bit ARM, compared with those that gdb finds in an emulator.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::folder::folder;
use crate::steps::{succeeds, succeeds_quietly};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Functions of the Go program: the name, and the number of the call from which samples are taken.
const GO_FUNCTIONS: &[(&str, &str)] =
    &[("main.recurses", "20000"), ("main.sorts", "1"), ("main.allocates", "500")];

/// Compares stacks of a Go program for 64-bit ARM with gdb's, at arbitrary instructions. This is skipped if
/// Go, the emulator or gdb is missing.
pub(super) fn compare(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/unwind", "oracle", tally) else { return Ok(true) };
    let folder = folder()?;
    let program = folder.join("routines-arm");
    let mut compile = Command::new("go");
    compile.args(["build", "-o"]).arg(&program).arg(crate::paths::root().join("workloads/routines.go"));
    let has = |name: &str| succeeds_quietly(Command::new(name).arg("--version"));
    let has_tools = has("qemu-aarch64-static") && has("gdb-multiarch");
    if !has_tools || !succeeds_quietly(compile.envs([("GOARCH", "arm64"), ("GO111MODULE", "off")])) {
        tally.skip("oracle", "no Go, emulator or gdb for 64-bit ARM is installed here");
        return Ok(true);
    }
    let mut check = Command::new(workspace.build("check-gdb")?);
    check.args(sample_all(&workspace, &program, &folder)?);
    succeeds(check)
}

/// Samples all functions in parallel, each in its own emulator, because an emulator mostly waits for its gdb.
/// Returns the files with the samples.
fn sample_all(workspace: &Workspace, program: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let listen = || TcpListener::bind(("127.0.0.1", 0));
    // The ports are reserved together, so that all are different. They are freed before the emulators use
    // them.
    let listeners = GO_FUNCTIONS.iter().map(|_| listen()).collect::<Result<Vec<_>, _>>()?;
    let ports = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>()?;
    drop(listeners);
    std::thread::scope(|scope| {
        let sampled = GO_FUNCTIONS.iter().zip(ports).map(|(function, port)| {
            let samples = folder.join(format!("{}.samples", function.0));
            scope.spawn(move || {
                sample_in_emulator(workspace, program, *function, port.port(), &samples).map(|()| samples)
            })
        });
        let sampled: Vec<_> = sampled.collect();
        sampled.into_iter().map(|one| one.join().expect("sampling does not panic")).collect()
    })
}

/// Lets gdb write samples of a program, beginning with a call of a function.
fn sample_in_emulator(
    workspace: &Workspace,
    program: &Path,
    (function, from): (&str, &str),
    port: u16,
    samples: &Path,
) -> Result<()> {
    let port = port.to_string();
    let mut emulator = Command::new("qemu-aarch64-static");
    emulator.args(["-g", &port]).arg(program).arg("100000");
    // One goroutine runs, and it is never preempted.
    emulator.envs([("GOMAXPROCS", "1"), ("GOGC", "off"), ("GODEBUG", "asyncpreemptoff=1")]);
    let mut emulator = emulator.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut gdb = Command::new("timeout");
    gdb.args(["-k", "2", "300", "gdb-multiarch", "-batch", "-x"]).arg(workspace.file("gdb-samples.py"));
    gdb.arg(program).env("OUT", samples);
    gdb.envs([("REMOTE", port.as_str()), ("FUNCTION", function), ("FROM", from)]);
    let sampled = succeeds_quietly(gdb.envs([("SAMPLES", "400"), ("STRIDE", "37")]));
    // It may have ended together with gdb.
    let _ = emulator.kill();
    emulator.wait()?;
    ensure!(sampled, "gdb wrote no samples of {function}");
    Ok(())
}
