//! What the recording of allocations costs a program, and how right its sums are, beside heaptrack and DHAT.

mod bench;
mod cost;
mod programs;
mod sites;
mod sums;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use self::bench::Bench;
use crate::steps::{cargo, succeeds};
use crate::workloads;

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
    /// How many recordings of known sums there are
    #[arg(long, default_value_t = 50)]
    runs: u32,
    /// What is measured
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Cost, Part::Sums, Part::Sites])]
    part: Vec<Part>,
}

/// A part of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The CPU time of programs while they are recorded
    Cost,
    /// The mean of many recordings of known sums
    Sums,
    /// Sums and sites beside heaptrack and DHAT
    Sites,
}

/// Measures, and prints tables.
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
    let Options { pairs, rounds, runs, .. } = *options;
    let bench = Bench { nyquist, folder, workloads: &workloads, pairs, rounds, runs };
    for part in &options.part {
        match part {
            Part::Cost => cost::run(&bench)?,
            Part::Sums => sums::run(&bench)?,
            Part::Sites => sites::run(&bench)?,
        }
    }
    Ok(())
}
