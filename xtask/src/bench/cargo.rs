//! `cargo xtask bench cargo`: the time of `cargo nyquist` beyond `cargo run` and the recording of its
//! program.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::spread::cell;
use crate::steps::{cargo, succeeds};

/// How often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often each of the two is measured
    #[arg(long, default_value_t = 15)]
    rounds: u32,
}

/// The limit of the median, in milliseconds.
const LIMIT: f64 = 300.0;

/// Measures and prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
    let programs = crate::paths::target().join("release");
    let folder = crate::paths::target().join("bench-cargo");
    write_package(&folder)?;
    // Both build with the same settings, so that nothing is left to build in a measured round.
    let settings =
        ["--config", "profile.release.debug=\"limited\"", "--config", "profile.release.strip=false"];
    let recorder = programs.join("nyquist").display().to_string();
    let runner = format!("target.'cfg(all())'.runner=[\"{recorder}\", \"record\", \"-s\", \"-q\", \"--\"]");
    let by_hand = [&["run", "--release", "-q", "--config", &runner], &settings[..]].concat();
    let by_itself = ["nyquist", "-s", "-q"];
    let mut figures: Vec<(f64, f64)> = Vec::new();
    // The first round only builds.
    for round in 0..=options.rounds {
        let pair = (wall_ms(&folder, &programs, &by_hand)?, wall_ms(&folder, &programs, &by_itself)?);
        if round > 0 {
            figures.push(pair);
        }
    }
    println!("| `cargo run` with `nyquist record` as runner, ms | `cargo nyquist`, ms | more, ms |");
    println!("|---|---|---|");
    let mut more: Vec<f64> = figures.iter().map(|(by_hand, by_itself)| by_itself - by_hand).collect();
    let by_hand = cell(0, figures.iter().map(|pair| pair.0));
    let by_itself = cell(0, figures.iter().map(|pair| pair.1));
    println!("| {by_hand} | {by_itself} | {} |", cell(0, more.iter().copied()));
    more.sort_by(f64::total_cmp);
    let median = more.get(more.len() / 2).copied().context("no round was run")?;
    ensure!(median < LIMIT, "`cargo nyquist` takes {median:.0} ms more, {LIMIT} ms are allowed");
    Ok(())
}

/// A package with one small program.
fn write_package(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    let toml = "[package]\nname = \"small\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), toml)?;
    fs::write(folder.join("src/main.rs"), "fn main() {}\n")?;
    Ok(())
}

fn wall_ms(folder: &Path, programs: &Path, args: &[&str]) -> Result<f64> {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(folder).env("PATH", path).env("CARGO_TARGET_DIR", folder.join("target"));
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    ensure!(output.status.success(), "cargo {args:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}
