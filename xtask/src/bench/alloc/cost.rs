//! The CPU time of programs while their allocations are recorded, beside heaptrack.

use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::bench::Bench;
use super::programs::{Program, programs};
use crate::bench::cost::Measuring;
use crate::bench::spread::cell;

/// How a program is recorded.
struct Way {
    name: &'static str,
    args: Vec<OsString>,
    /// Whether the program's own CPU time can be told from the recorder's: heaptrack does not follow children.
    has_own: bool,
}

/// Seconds of the program alone, and with its recorder.
#[derive(Clone, Copy)]
struct Measured {
    own: Option<f64>,
    both: f64,
}

pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    println!("\n| program | recorder | its own CPU time, s | with the recorder's, s |\n|---|---|---|---|");
    for program in programs(bench, 1.0)? {
        measure(bench, &program);
    }
    println!("\n| program | allocations | a second, in millions |\n|---|---|---|");
    for program in programs(bench, 1.0)? {
        rate(bench, &program)?;
    }
    Ok(())
}

/// Measures a program with each recorder in turn.
fn measure(bench: &Bench<'_>, program: &Program) {
    let ways = ways(bench);
    let mut rows = vec![Vec::new(); ways.len()];
    for round in 1..=bench.rounds {
        for (way, row) in ways.iter().zip(&mut rows) {
            eprintln!("{}, round {round}: {}", program.name, way.name);
            match cost(bench, way, &program.args) {
                Ok(cost) => row.push(cost),
                Err(problem) => eprintln!("{}, {}: {problem:#}", program.name, way.name),
            }
        }
    }
    for (way, row) in ways.iter().zip(rows) {
        let (own, both) = (row.iter().filter_map(|it| it.own), row.iter().map(|it| it.both));
        println!("| {} | {} | {} | {} |", program.name, way.name, cell(2, own), cell(2, both));
    }
}

fn cost(bench: &Bench<'_>, way: &Way, program: &[OsString]) -> Result<Measured> {
    let measured = bench.workloads.join("measured");
    let measuring = Measuring { folder: &bench.folder, measured: &measured, limit: Duration::from_mins(5) };
    if !way.has_own {
        return Ok(Measured { own: None, both: measuring.cost(&[&way.args, program].concat())?.cpu });
    }
    let figures = bench.folder.join("own.json");
    let inner = [measured.as_os_str().to_owned(), figures.as_os_str().to_owned()];
    let both = measuring.cost(&[&way.args, &inner[..], program].concat())?.cpu;
    let figures: Value = serde_json::from_str(&fs::read_to_string(figures)?)?;
    Ok(Measured { own: figures["cpu_ns"].as_f64().map(|ns| ns / 1e9), both })
}

/// The recorders with their arguments, which stand before those of the program.
fn ways(bench: &Bench<'_>) -> Vec<Way> {
    let record = |name, options: &[&str]| {
        let mut args = vec![bench.nyquist.as_os_str().to_owned(), "record".into(), "-s".into(), "-q".into()];
        args.extend(options.iter().map(OsString::from));
        args.extend(["-o".into(), bench.folder.join("alloc.json.gz").into(), "--".into()]);
        Way { name, args, has_own: true }
    };
    let mut ways = vec![
        Way { name: "none", args: Vec::new(), has_own: true },
        record("nyquist record", &[]),
        record("nyquist record --alloc", &["--alloc"]),
        record("nyquist record --alloc --alloc-rate 1", &["--alloc", "--alloc-rate", "1"]),
    ];
    if let Some(args) = heaptrack(bench) {
        ways.push(Way { name: "heaptrack", args, has_own: false });
    }
    ways
}

/// heaptrack with its arguments, if it is there.
fn heaptrack(bench: &Bench<'_>) -> Option<Vec<OsString>> {
    Command::new("heaptrack").arg("--version").output().ok()?;
    Some(vec!["heaptrack".into(), "-o".into(), bench.folder.join("heaptrack").into()])
}

/// How many allocations a program makes in a second of its CPU time, as the recording of each says.
fn rate(bench: &Bench<'_>, program: &Program) -> Result<()> {
    let alone = Way { name: "none", args: Vec::new(), has_own: true };
    let seconds = cost(bench, &alone, &program.args)?.both;
    let recording = bench.folder.join("each.json.gz");
    let mut command = Command::new(&bench.nyquist);
    command.args(["record", "-s", "-q", "--alloc", "--alloc-rate", "1", "-o"]).arg(&recording).arg("--");
    let status = command.args(&program.args).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{} was not recorded", program.name);
    let count = report(bench, &recording, "allocations")?["weight"].as_f64().unwrap_or(0.0);
    println!("| {} | {count:.0} | {:.2} |", program.name, count / seconds / 1e6);
    Ok(())
}

/// The report of a recording with a measure of allocations.
pub(super) fn report(bench: &Bench<'_>, recording: &std::path::Path, event: &str) -> Result<Value> {
    let mut command = Command::new(&bench.nyquist);
    let output =
        command.args(["report", "--json", "--limit", "0", "--event", event]).arg(recording).output()?;
    // A program that frees everything has nothing that is live, and a report of it fails.
    if output.stdout.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}
