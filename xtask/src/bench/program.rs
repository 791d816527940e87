//! The recorded programs, with run times that are adapted to this machine.

use std::ffi::OsString;

use anyhow::Result;

use super::measure::Bench;
use crate::many_functions::write_functions;

/// The ratio of the work of each thread in a small program to that of each of two hundred threads.
pub(super) const CROWD: f64 = 30.0;

/// A program to record.
pub(crate) struct Program {
    /// Its name in the tables.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) command: Vec<OsString>,
}

/// The workload `fixed_work` in one of its builds, with as many passes as one thread makes in this many
/// seconds.
pub(crate) fn fixed_work(bench: &Bench<'_>, build: &str, threads: u32, seconds: f64) -> Result<Program> {
    const TRIAL: f64 = 10_000.0;
    let workload = bench.measured.with_file_name(format!("fixed_work-{build}"));
    let command = |passes: f64, threads: u32| -> Vec<OsString> {
        vec![workload.clone().into(), format!("{passes:.0}").into(), threads.to_string().into()]
    };
    let trial = bench.unrecorded(&command(TRIAL, 1))?;
    let passes = TRIAL * seconds / trial.command_cpu.max(1e-3);
    let name = format!("C, {build}, {threads} thread{}", if threads == 1 { "" } else { "s" });
    Ok(Program { name, command: command(passes, threads) })
}

/// The workload `ticks`, which timers start a thousand times a second, for this many seconds of wall time.
pub(crate) fn ticks(bench: &Bench<'_>, seconds: f64) -> Program {
    /// Its work in each millisecond, in milliseconds.
    const PART: f64 = 0.3;
    let workload = bench.measured.with_file_name("ticks");
    let name = "C, 0.3 ms of work at the beginning of each millisecond".to_owned();
    Program { name, command: vec![workload.into(), format!("{:.0}", 1000.0 * PART * seconds).into()] }
}

/// Python, which makes and reads texts for about this many seconds.
pub(crate) fn python(bench: &Bench<'_>, seconds: f64) -> Result<Program> {
    const TRIAL: f64 = 20_000.0;
    let script = crate::paths::root().join("workloads/texts.py");
    let command = |texts: f64| -> Vec<OsString> {
        vec!["python3".into(), script.clone().into(), format!("{texts:.0}").into()]
    };
    let trial = bench.unrecorded(&command(TRIAL))?;
    let texts = TRIAL * seconds / trial.command_cpu.max(1e-3);
    Ok(Program { name: "python3".into(), command: command(texts) })
}

/// The Rust compiler, running for about this many seconds. It is a large program with hundreds of thousands
/// of symbols and with deep stacks.
pub(crate) fn rustc(bench: &Bench<'_>, seconds: f64) -> Result<Program> {
    const TRIAL: u32 = 200;
    let source = bench.folder.join("generated.rs");
    let mut compile: Vec<OsString> =
        ["rustc", "--crate-type=lib", "-O", "-Cdebuginfo=2"].map(OsString::from).into();
    compile.extend(["-o".into(), bench.folder.join("generated.rlib").into(), source.clone().into()]);
    write_functions(&source, TRIAL)?;
    let trial = bench.unrecorded(&compile)?;
    write_functions(&source, (f64::from(TRIAL) * seconds / trial.command_wall.max(1e-3)) as u32)?;
    Ok(Program { name: "rustc".into(), command: compile })
}
