//! The mean of many recordings of known sums, beside its standard error.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::bench::Bench;
use super::cost::report;

/// How often the workload does its work: 1.1 GB in blocks of at most 64,000 bytes.
const FACTOR: f64 = 190.0;

/// The functions, with the bytes that each allocates in all.
const KNOWN: [(&str, f64); 4] = [
    ("temps", 3e6 * FACTOR),
    ("in_thread", 1e6 * FACTOR),
    ("aligns", 1_638_400.0 * FACTOR),
    ("grows", 127_000.0 * FACTOR),
];

pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    let recording = bench.folder.join("sums.json.gz");
    let mut found = vec![Vec::new(); KNOWN.len() + 1];
    for run in 1..=bench.runs {
        eprintln!("sums, run {run}");
        let mut command = Command::new(&bench.nyquist);
        command.args(["record", "-s", "-q", "--alloc", "-o"]).arg(&recording).arg("--");
        command.arg(bench.workloads.join("allocates")).args(["sums", &FACTOR.to_string()]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        ensure!(status.success(), "the workload was not recorded");
        let report = report(bench, &recording, "total")?;
        let sums = KNOWN.map(|(function, _)| total(&report, function));
        for (all, sum) in found.iter_mut().zip(sums.iter().copied().chain([sums.iter().sum()])) {
            all.push(sum);
        }
    }
    println!(
        "\n| function | true, MB | mean of {} recordings, MB | its standard error, MB | off by, standard errors |\n|---|---|---|---|---|",
        bench.runs
    );
    let all: f64 = KNOWN.iter().map(|(_, sum)| sum).sum();
    for ((name, truth), found) in KNOWN.into_iter().chain([("all", all)]).zip(found) {
        let (mean, error) = mean_and_error(&found);
        let off = (mean - truth) / error;
        println!("| {name} | {:.1} | {:.2} | {:.2} | {off:+.2} |", truth / 1e6, mean / 1e6, error / 1e6);
    }
    Ok(())
}

fn total(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"].as_str() == Some(function));
    row.and_then(|row| row["total"].as_f64()).unwrap_or(0.0)
}

/// The mean of figures, and its standard error.
fn mean_and_error(figures: &[f64]) -> (f64, f64) {
    let count = figures.len().max(2) as f64;
    let mean = figures.iter().sum::<f64>() / figures.len().max(1) as f64;
    let variance = figures.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}
