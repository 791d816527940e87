//! `cargo xtask bench viewer`: how long the built-in viewer takes to draw and to react to a click, and the
//! memory of its tab and of the server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::steps::{cargo, succeeds};
use crate::workloads;

/// The name of the generated profile that the benchmark of the analysis writes into the folder.
const MADE: &str = "large-profile.json.gz";

/// A name that no query of that benchmark has, so that it only makes the profile.
const NO_QUESTION: &str = "(none)";

/// The measurement.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A release build of nyquist
    #[arg(long)]
    nyquist: PathBuf,
    /// The folder in which profiles are recorded or made
    #[arg(long)]
    folder: PathBuf,
    /// How many samples the generated profiles have; a recording of 10,000 samples is measured too
    #[arg(long, value_delimiter = ',')]
    samples: Vec<usize>,
    /// How often the page is opened, and each interaction is done
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How long the recording is, in ms of CPU time: at 1,000 samples a second
    #[arg(long, default_value = "10000")]
    recorded_ms: String,
}

/// Measures each profile, and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let playwright = crate::paths::target().join("front-end");
    ensure!(
        playwright.join("node_modules/playwright-core").is_dir(),
        "{} has no playwright-core: `cargo xtask test viewer` installs it",
        playwright.display()
    );
    let folder = std::path::absolute(&options.folder)?;
    std::fs::create_dir_all(&folder)?;
    println!("| profile | what | median ms | 95th percentile ms |\n|---|---|---:|---:|");
    let recorded = record(options, &folder)?;
    measure(options, &playwright, "recorded", &recorded)?;
    for samples in &options.samples {
        let made = make(*samples, &folder)?;
        measure(options, &playwright, &format!("{samples} samples"), &made)?;
    }
    Ok(())
}

/// Records the workload that has three functions.
fn record(options: &Options, folder: &Path) -> Result<PathBuf> {
    let shares = workloads::build_all()?.join("shares");
    let profile = folder.join("viewer.json.gz");
    let mut command = Command::new(&options.nyquist);
    command.args(["record", "--save-only", "-o"]).arg(&profile).arg("--").arg(shares);
    let output = command.arg(&options.recorded_ms).output().context("nyquist cannot be run")?;
    ensure!(output.status.success(), "nyquist record: {}", String::from_utf8_lossy(&output.stderr));
    Ok(profile)
}

/// Generates a profile of this many samples.
fn make(samples: usize, folder: &Path) -> Result<PathBuf> {
    let mut command = cargo(&["run", "--release", "--quiet", "--manifest-path"]);
    command.arg(crate::paths::root().join("benches/analysis/Cargo.toml")).arg("--");
    command.args([samples.to_string(), (samples / 10).to_string(), "1".to_owned()]);
    command.arg(NO_QUESTION).arg(folder).arg("keep").stdout(Stdio::null());
    ensure!(succeeds(command)?, "no profile of {samples} samples could be made");
    Ok(folder.join(MADE))
}

/// A server that is killed when this is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a profile, opens it in a browser, and prints the cost.
fn measure(options: &Options, playwright: &Path, name: &str, profile: &Path) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec "$0" load --no-open "$1" 2>&1"#]).arg(&options.nyquist).arg(profile);
    let mut served = KillOnDrop(command.stdout(Stdio::piped()).spawn()?);
    let output = served.0.stdout.take().context("the server has no output")?;
    let url = BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("Built-in viewer").map(|(_, url)| url.trim().to_owned()))
        .context("the server has no address")?;
    let loaded = memory_of(served.0.id())?;
    let script = crate::paths::root().join("benches/viewer/measure.mjs");
    let mut node = Command::new("node");
    node.arg(script).args([url, options.rounds.to_string()]).env("PLAYWRIGHT_HOME", playwright);
    let output = node.output().context("node cannot be run")?;
    ensure!(output.status.success(), "measure.mjs: {}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    for row in measured["rows"].as_array().into_iter().flatten() {
        let what = row["what"].as_str().unwrap_or_default();
        println!("| {name} | {what} | {:.0} | {:.0} |", number(&row["median"]), number(&row["high"]));
    }
    for (what, member) in [("once it is drawn", "drawn_mb"), ("at the end", "memory_mb")] {
        let megabytes = number(&measured[member]);
        println!("| {name} | the tab's memory {what}, MB more than an empty page's | {megabytes:.0} | |");
    }
    println!("| {name} | the server's memory once it is loaded, MB | {loaded:.0} | |");
    println!("| {name} | the server's memory at the end, MB | {:.0} | |", memory_of(served.0.id())?);
    println!("| {name} | the page, kB | {:.0} | |", number(&measured["page_kb"]));
    println!("| {name} | answers until it is drawn, kB | {:.0} | |", number(&measured["answers_kb"]));
    Ok(())
}

/// What a process has for itself, in MB.
fn memory_of(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the server has ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no RssAnon")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1000.0)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
