//! The cost of a span: each layer compared with a bare registry, each in a separate process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, succeeds};

/// The options of the measurement.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The recorder
    #[arg(long, default_value = "target/release/nyquist")]
    nyquist: PathBuf,
    /// How often each is measured, in turn; the median counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// Measures, and prints the table of `docs/benchmarks/markers.md`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = crate::paths::root().join("benches/tracing");
    let mut build = cargo(&["build", "--release", "--manifest-path"]);
    build.arg(workspace.join("Cargo.toml"));
    ensure!(succeeds(build)?, "the benchmark cannot be built");
    let program = workspace.join("target/release/nyquist-tracing-bench");
    let folder = PathBuf::from("/dev/shm").join(format!("nyquist-bench-{}", std::process::id()));
    let mut times: BTreeMap<usize, Vec<[f64; 2]>> = BTreeMap::new();
    for _ in 0..options.runs {
        for (index, (_, mode)) in MODES.iter().enumerate() {
            times.entry(index).or_default().push(measure(*mode, &program, &folder, &options.nyquist)?);
        }
    }
    println!("| ns a span | no fields | two fields | no fields, over the registry |\n|---|---|---|---|");
    let median = |index: usize, field: usize| {
        let mut times: Vec<f64> = times[&index].iter().map(|times| times[field]).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    for (index, (name, mode)) in MODES.iter().enumerate() {
        let over = match mode {
            Mode::Plain("none" | "registry" | "nyquist") => String::new(),
            _ => format!("{:.0}", median(index, 0) - median(REGISTRY, 0)),
        };
        println!("| {name} | {:.1} | {:.1} | {over} |", median(index, 0), median(index, 1));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Mode {
    /// The benchmark's own name for the layer.
    Plain(&'static str),
    /// nyquist's layer, whose markers the benchmark itself receives.
    Alone,
    /// nyquist's layer in a program that nyquist records.
    Recorded,
}

const MODES: &[(&str, Mode)] = &[
    ("no subscriber", Mode::Plain("none")),
    ("a registry without a layer", Mode::Plain("registry")),
    ("nyquist-tracing, off", Mode::Plain("nyquist")),
    ("nyquist-tracing, on", Mode::Alone),
    ("nyquist-tracing, on and sampled at 1000 Hz", Mode::Recorded),
    ("tracing-chrome", Mode::Plain("chrome")),
    ("tracing-tracy, not connected", Mode::Plain("tracy")),
];
const REGISTRY: usize = 1;

fn measure(mode: Mode, program: &Path, folder: &Path, nyquist: &Path) -> Result<[f64; 2]> {
    fs::create_dir_all(folder)?;
    let mut command = match mode {
        Mode::Recorded => {
            let mut command = Command::new(crate::paths::root().join(nyquist));
            command.args(["record", "-q", "-s", "-o"]).arg(folder.join("p.json.gz")).arg(program);
            command
        }
        _ => Command::new(program),
    };
    command.env_remove("NYQUIST_MARKER_DIR").arg(match mode {
        Mode::Plain(layer) => layer,
        _ => "nyquist",
    });
    if let Mode::Alone = mode {
        command.env("NYQUIST_MARKER_DIR", folder).env("NYQUIST_TRACING_BENCH_ALONE", "1");
    }
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    fs::remove_dir_all(folder)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_ascii_whitespace().skip(1).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(plain)), Some(Ok(fields))) if output.status.success() => Ok([plain, fields]),
        _ => anyhow::bail!("{command:?} said {text:?} ({})", output.status),
    }
}
