//! How many samples a recording holds, by each recorder's own count.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::live::harness::profile::Profile;

/// The samples of a recording. Profile entries for time without samples are not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Samples {
    /// How many were taken.
    pub(crate) taken: f64,
    /// How many intervals of CPU time they represent.
    pub(crate) intervals: f64,
}

/// The samples of a profile in the Firefox Profiler's format.
pub(crate) fn in_profile(path: &Path) -> Result<Samples> {
    let profile = Profile::read(path)?;
    Ok(Samples { taken: profile.taken(), intervals: profile.sampled() })
}

/// The sample records of a `perf.data`, as `perf report --stats` counts them. Each represents an interval.
pub(crate) fn in_perf_data(path: &Path) -> Result<Samples> {
    let output = Command::new("perf").args(["report", "--stats", "-i"]).arg(path).output()?;
    ensure!(output.status.success(), "perf report --stats failed ({})", output.status);
    in_stats(&String::from_utf8_lossy(&output.stdout))
}

/// The samples that `perf report --stats` has counted.
pub(crate) fn in_stats(text: &str) -> Result<Samples> {
    // "SAMPLE events:       1503  (98.7%)": the first such line counts all events together.
    let line = text.lines().find_map(|line| line.trim().strip_prefix("SAMPLE events:"));
    let count = line.and_then(|line| line.split_whitespace().next()).context("perf counts no samples")?;
    let taken = count.parse()?;
    Ok(Samples { taken, intervals: taken })
}
