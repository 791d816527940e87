//! How many samples a recording holds, by each recorder's own count.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

/// The samples of a profile in the Firefox Profiler's format, each by its weight.
pub(crate) fn in_profile(path: &Path) -> Result<f64> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let profile: Value = serde_json::from_reader(BufReader::new(GzDecoder::new(file)))?;
    let threads = profile["threads"].as_array().context("a profile has threads")?;
    Ok(threads.iter().map(|thread| in_table(&thread["samples"])).sum())
}

fn in_table(samples: &Value) -> f64 {
    match samples["weight"].as_array() {
        Some(weights) => weights.iter().filter_map(Value::as_f64).sum(),
        None => samples["length"].as_f64().unwrap_or_default(),
    }
}

/// The sample records of a `perf.data`, as `perf report --stats` counts them.
pub(crate) fn in_perf_data(path: &Path) -> Result<f64> {
    let output = Command::new("perf").args(["report", "--stats", "-i"]).arg(path).output()?;
    ensure!(output.status.success(), "perf report --stats failed ({})", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    // "SAMPLE events:       1503  (98.7%)": first of all events together.
    let line = text.lines().find_map(|line| line.trim().strip_prefix("SAMPLE events:"));
    let count = line.and_then(|line| line.split_whitespace().next()).context("perf counts no samples")?;
    Ok(count.parse()?)
}
