//! `cargo xtask bench analysis`: queries of a large profile, in the workspace `benches/analysis`.

use std::path::PathBuf;

use anyhow::Result;

use super::reports;
use crate::steps::{cargo, succeeds};

/// The size of the profile, and the queries.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many samples the profile has
    #[arg(long, default_value_t = 20_000_000)]
    samples: usize,
    /// How many stacks it has at least
    #[arg(long, default_value_t = 2_000_000)]
    stacks: usize,
    /// How often each kind of query is run
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Only the queries whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// The folder that the profile is saved to and loaded from, which needs 1 GB; without it, saving and
    /// loading are left out
    #[arg(long)]
    folder: Option<PathBuf>,
    /// A release build of nyquist, whose export and reports are then timed beside pprof's and perf's
    #[arg(long, requires = "folder")]
    nyquist: Option<PathBuf>,
}

/// Builds and runs the benchmark, which prints its table.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut command = cargo(&["run", "--release", "--quiet", "--manifest-path"]);
    command.arg(crate::paths::root().join("benches/analysis/Cargo.toml")).arg("--");
    let numbers = [options.samples, options.stacks, options.rounds].map(|number| number.to_string());
    command.args(numbers).arg(&options.only).args(&options.folder);
    if options.nyquist.is_some() {
        command.arg("keep");
    }
    let is_well = succeeds(command)?;
    if let (Some(folder), Some(nyquist)) = (&options.folder, &options.nyquist) {
        reports::run(folder, nyquist)?;
    }
    Ok(is_well)
}
