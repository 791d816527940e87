//! `cargo xtask bench perf-data`: reading recordings of `perf record` beside samply, `perf script` and `perf
//! report`.

mod readers;
mod recordings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::cost::{Cost, Measuring};
use super::record::describe;
use super::recorder;
use super::spread::cell;
use crate::steps::{cargo, succeeds};
use crate::workloads;
use readers::Reader;
use recordings::{Making, Recording};

/// The recordings to read, and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder for the recordings, which are made if they are not there. They need about 10 GB
    #[arg(long)]
    folder: PathBuf,
    /// How often each reader is measured; once for the recordings that are ten times as large
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How long a reader may take, in seconds
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// How often the compiler runs in each recording
    #[arg(long, default_value_t = 6)]
    runs: u32,
    /// Samples a second of the recording with copies of stacks
    #[arg(long, default_value_t = 2000)]
    dwarf_rate: u32,
    /// Samples a second of the recording by frame pointers
    #[arg(long, default_value_t = 5000)]
    fp_rate: u32,
    /// Leaves out the recordings that are ten times as large
    #[arg(long)]
    small: bool,
    /// Only the parts with this in their names: records, without names, with names, tenfold
    #[arg(long, default_value = "")]
    only: String,
}

/// Measures and prints the tables of `docs/benchmarks/perf-data.md`.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
    let programs = build_programs()?;
    let measured = workloads::build_all()?.join("measured");
    fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize().context("the folder cannot be found")?;
    let nyquist = crate::paths::target().join("release/nyquist");
    describe(&recorder::all(&nyquist))?;
    let making = Making { folder: &folder, repeat: &programs.join("repeat"), runs: options.runs };
    let mut found = vec![making.dwarf(options.dwarf_rate)?, making.frame_pointers(options.fp_rate)?];
    let limit = Duration::from_secs(options.limit);
    let measuring = Measuring { folder: &folder, measured: &measured, limit };
    let wants = |heading: &str| heading.contains(&options.only);
    if wants("records") {
        compare(&programs, &found)?;
        records(options, &programs, &found)?;
    }
    let readers = readers::all(&nyquist, &folder);
    if wants("without names") {
        println!("\n## To the saved profile, without names\n");
        table(options.rounds, &measuring, &readers, &found, |reader| !reader.names)?;
    }
    if wants("with names") {
        println!("\n## With names\n");
        table(options.rounds, &measuring, &readers, &found, |reader| reader.names)?;
    }
    if !options.small && wants("tenfold") {
        println!("\n## Tenfold recordings, without names\n");
        found = found.iter().map(|recording| making.tenfold(recording)).collect::<Result<_>>()?;
        table(1, &measuring, &readers, &found, |reader| !reader.names)?;
        println!("\n## Tenfold recordings, with names\n");
        table(1, &measuring, &readers, &found, |reader| reader.names)?;
    }
    Ok(())
}

/// Builds the programs of the workspace `benches/perf-data`, and returns their folder.
pub(super) fn build_programs() -> Result<PathBuf> {
    let workspace = crate::paths::root().join("benches/perf-data");
    let mut build = cargo(&["build", "--release", "--manifest-path"]);
    build.arg(workspace.join("Cargo.toml")).env_remove("CARGO_TARGET_DIR");
    ensure!(succeeds(build)?, "the programs cannot be built");
    Ok(workspace.join("target/release"))
}

/// Compares every record with that of linux-perf-data. They must be equal.
fn compare(programs: &Path, recordings: &[Recording]) -> Result<()> {
    let mut command = Command::new(programs.join("compare"));
    command.args(recordings.iter().map(|recording| &recording.path));
    ensure!(succeeds(command)?, "the records are not what linux-perf-data reads");
    Ok(())
}

/// Measures how fast records are parsed without any further work.
fn records(options: &Options, programs: &Path, recordings: &[Recording]) -> Result<()> {
    println!("\n## Records alone\n");
    println!("| recording | MB | GB/s of CPU time | GB/s |\n|---|---:|---|---|");
    for recording in recordings {
        let mut command = Command::new(programs.join("parse"));
        // The first round may wait for the disk, so it does not count.
        let output = command.arg(&recording.path).arg((options.rounds + 1).to_string()).output()?;
        ensure!(output.status.success(), "parse failed: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let column = |at: usize| {
            let numbers = text.lines().skip(1).filter_map(move |line| line.split(' ').nth(at)?.parse().ok());
            cell(2, numbers)
        };
        println!(
            "| {} | {} | {} | {} |",
            recording.name,
            recording.megabytes()?.round(),
            column(1),
            column(0)
        );
    }
    Ok(())
}

/// Runs every reader on every recording in turn, round after round, and prints the cost.
fn table(
    rounds: u32,
    measuring: &Measuring<'_>,
    readers: &[Reader],
    recordings: &[Recording],
    requested: impl Fn(&Reader) -> bool,
) -> Result<()> {
    println!(
        "| recording | MB | reader | wall, s | CPU, s | peak anonymous memory, MB | of the file's size, % | wall / nyquist's | CPU / nyquist's |"
    );
    println!("|---|---:|---|---|---|---|---|---|---|");
    for recording in recordings {
        let rounds_of = |reader: &Reader| reader.rounds(recording, rounds);
        let readers: Vec<_> =
            readers.iter().filter(|reader| requested(reader) && rounds_of(reader) > 0).collect();
        let mut rows: Vec<Result<Vec<Cost>>> = readers.iter().map(|_| Ok(Vec::new())).collect();
        for round in 1..=rounds {
            let turns = readers.iter().zip(&mut rows).filter(|(reader, _)| round <= rounds_of(reader));
            for (reader, row) in turns {
                eprintln!("{}, round {round}: {}", recording.name, reader.name);
                let Ok(costs) = row else { continue };
                match measuring.cost(&reader.args(&recording.path)) {
                    Ok(cost) => costs.push(cost),
                    Err(error) => *row = Err(error),
                }
            }
        }
        print_rows(recording, &readers, &rows)?;
    }
    Ok(())
}

/// Prints a row for each reader. The first row is nyquist's; the others are compared with it, round by round.
fn print_rows(recording: &Recording, readers: &[&Reader], rows: &[Result<Vec<Cost>>]) -> Result<()> {
    let first = rows.first().and_then(|row| row.as_ref().ok()).map_or(&[][..], Vec::as_slice);
    for (reader, row) in readers.iter().zip(rows) {
        let megabytes = recording.megabytes()?;
        let begin = format!("| {} | {megabytes:.0} | {}", recording.name, reader.name);
        let costs = match row {
            Ok(costs) => costs,
            Err(error) => {
                println!("{begin} | {error:#} | | | | | |");
                continue;
            }
        };
        let column = |digits, figure: fn(&Cost) -> f64| cell(digits, costs.iter().map(figure));
        let ratio = |figure: fn(&Cost) -> f64| {
            cell(2, costs.iter().zip(first).map(|(cost, first)| figure(cost) / figure(first)))
        };
        let share = costs.iter().map(|cost| 100.0 * cost.anonymous_mb / megabytes);
        println!(
            "{begin} | {} | {} | {} | {} | {} | {} |",
            column(2, |cost| cost.wall),
            column(2, |cost| cost.cpu),
            column(0, |cost| cost.anonymous_mb),
            cell(0, share),
            ratio(|cost| cost.wall),
            ratio(|cost| cost.cpu),
        );
    }
    Ok(())
}
