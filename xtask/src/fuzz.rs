//! `cargo xtask fuzz`: runs the fuzz targets of the `fuzz` workspace with cargo-fuzz on a nightly toolchain.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::succeeds;

/// What to fuzz, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target; all of them when none is named
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Runs the targets; says whether none found anything.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let folder = crate::root().join("fuzz");
    ensure!(folder.join("Cargo.toml").exists(), "there is no fuzz workspace at {}", folder.display());
    let targets = match &options.target {
        Some(target) => vec![target.clone()],
        None => all_targets()?,
    };
    let mut clean = true;
    for target in targets {
        let limit = format!("-max_total_time={}", options.seconds);
        let mut command = cargo_fuzz();
        command.args(["run", &target, "--", &limit]);
        clean &= succeeds(command)?;
    }
    Ok(clean)
}

fn all_targets() -> Result<Vec<String>> {
    let output = cargo_fuzz().arg("list").output().context("cannot start cargo +nightly fuzz")?;
    ensure!(
        output.status.success(),
        "cargo-fuzz does not work here; get it with `rustup toolchain install nightly && cargo install cargo-fuzz`"
    );
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn cargo_fuzz() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]).current_dir(crate::root());
    command
}
