//! The cost of an allocation and its free to a program while they are recorded. heaptrack is measured too.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::cost::Measuring;
use super::spread::cell;
use crate::steps::{cargo, succeeds};
use crate::workloads;

/// What Python does: it makes and writes objects, most of them in its own arenas.
const PYTHON: &str =
    "import json; x=[{'a': [i] * 10, 'b': str(i)} for i in range(300000)]; json.loads(json.dumps(x))";

/// The folder, and the amount of work.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder for recordings
    #[arg(long, default_value = "target/bench-alloc")]
    folder: PathBuf,
    /// Measures this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// How many allocations and frees there are
    #[arg(long, default_value_t = 5_000_000)]
    pairs: u64,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// Measures, and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().context("no such program")?,
        None => {
            ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
            crate::paths::target().join("release/nyquist")
        }
    };
    let workloads = workloads::build_all()?;
    fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let measured = workloads.join("measured");
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_mins(5) };
    let pairs: Vec<OsString> =
        [workloads.join("allocates").into(), "pairs".into(), options.pairs.to_string().into()].into();
    let python: Vec<OsString> = ["/usr/bin/python3", "-c", PYTHON].map(OsString::from).into();
    println!("\n| program | recorder | CPU time of both, s | time, s |\n|---|---|---|---|");
    for (name, program) in [("allocations and frees", pairs), ("python3, json", python)] {
        measure(options, &measuring, name, &program, &ways(&nyquist, &folder))?;
    }
    Ok(())
}

/// Measures a program with each recorder in turn.
fn measure(
    options: &Options,
    measuring: &Measuring<'_>,
    name: &str,
    program: &[OsString],
    ways: &[(&'static str, Vec<OsString>)],
) -> Result<()> {
    let mut rows = vec![Vec::new(); ways.len()];
    for round in 1..=options.rounds {
        for ((way, words), row) in ways.iter().zip(&mut rows) {
            eprintln!("{name}, round {round}: {way}");
            row.push(measuring.cost(&[words, program].concat())?);
        }
    }
    for ((way, _), row) in ways.iter().zip(rows) {
        let (cpu, wall) = (row.iter().map(|it| it.cpu), row.iter().map(|it| it.wall));
        println!("| {name} | {way} | {} | {} |", cell(2, cpu), cell(2, wall));
    }
    Ok(())
}

/// The recorders with their arguments, which stand before those of the program.
fn ways(nyquist: &Path, folder: &Path) -> Vec<(&'static str, Vec<OsString>)> {
    let record = |options: &[&str]| {
        let mut words = vec![nyquist.as_os_str().to_owned(), "record".into(), "-s".into(), "-q".into()];
        words.extend(options.iter().map(OsString::from));
        words.extend(["-o".into(), folder.join("alloc.json.gz").into(), "--".into()]);
        words
    };
    let mut ways = vec![
        ("none", Vec::new()),
        ("nyquist record", record(&[])),
        ("nyquist record --alloc", record(&["--alloc"])),
        ("nyquist record --alloc --alloc-rate 1", record(&["--alloc", "--alloc-rate", "1"])),
    ];
    if Command::new("heaptrack").arg("--version").output().is_ok() {
        let words = ["heaptrack", "-o"].map(OsString::from).into_iter();
        ways.push(("heaptrack", words.chain([folder.join("heaptrack").into()]).collect()));
    }
    ways
}
