//! The overhead of counting the runs of a command: `nyquist stat -r`, `perf stat -r`, hyperfine.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::cost::Measuring;
use super::record::describe;
use super::recorder;
use super::spread::cell;
use crate::steps::{cargo, succeeds};
use crate::workloads;

/// The folder, and the number of runs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder for figures
    #[arg(long, default_value = "target/bench-stat")]
    folder: PathBuf,
    /// Measures this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// How often each program runs the command
    #[arg(long, default_value_t = 1000)]
    runs: u32,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

/// Measures and prints a table. A program that is not installed has an error message instead of figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().context("no such program")?,
        None => {
            ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
            crate::paths::target().join("release/nyquist")
        }
    };
    let measured = workloads::build_all()?.join("measured");
    fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    describe(&recorder::all(&nyquist))?;
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_mins(2) };
    let runs = options.runs.to_string();
    let args = |args: &[&str]| args.iter().map(OsString::from).collect::<Vec<_>>();
    let mut ours = vec![nyquist.into_os_string()];
    ours.extend(args(&["stat", "-r", &runs, "--", "/bin/true"]));
    let shell = format!("i=0; while [ $i -lt {runs} ]; do /bin/true; i=$((i+1)); done");
    let ways = [
        ("a shell's loop", args(&["sh", "-c", &shell])),
        ("nyquist stat -r", ours),
        ("perf stat -r", args(&["perf", "stat", "-r", &runs, "/bin/true"])),
        (
            "hyperfine -N",
            args(&["hyperfine", "-N", "-r", &runs, "--warmup", "0", "--style", "none", "/bin/true"]),
        ),
    ];
    let mut rows: Vec<Vec<Result<(f64, f64)>>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        for ((name, args), row) in ways.iter().zip(&mut rows) {
            eprintln!("round {round}: {name}");
            let each = |seconds: f64| seconds * 1e6 / f64::from(options.runs);
            row.push(measuring.cost(args).map(|cost| (each(cost.wall), each(cost.cpu))));
        }
    }
    println!("\n## Counting: {runs} runs of `/bin/true`\n");
    println!("| by | time, µs a run | CPU time of both, µs a run |\n|---|---|---|");
    for ((name, _), row) in ways.iter().zip(rows) {
        let cells = match row.into_iter().collect::<Result<Vec<_>>>() {
            Ok(row) => {
                let wall = cell(0, row.iter().map(|(wall, _)| *wall));
                format!("{wall} | {}", cell(0, row.iter().map(|(_, cpu)| *cpu)))
            }
            Err(error) => format!("{error:#} | "),
        };
        println!("| {name} | {cells} |");
    }
    Ok(())
}
