//! `cargo xtask fuzz`: runs the fuzz targets of the `fuzz` workspace with cargo-fuzz.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, succeeds};

/// The bounds of one input. Whoever claims a length makes no reader take memory for it, and time stays in
/// proportion to the input, so an input of at most 100 kB needs neither much memory nor seconds. Instrumented code
/// is several times slower than what is shipped.
const BOUNDS: [&str; 4] = ["-max_len=100000", "-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256"];

/// What to fuzz, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target; all of them when none is named
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Writes the seeds and runs the targets; says whether none found anything.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let all = all_targets()?;
    let targets = match &options.target {
        Some(target) => {
            ensure!(all.contains(target), "there is no fuzz target {target}; there are {}", all.join(", "));
            vec![target.clone()]
        }
        None => all,
    };
    let manifest = crate::root().join("fuzz/Cargo.toml");
    let mut seeds = cargo(&["run", "--quiet", "--example", "seeds", "--manifest-path"]);
    seeds.arg(manifest);
    let mut clean = succeeds(seeds)?;
    for target in targets {
        let limit = format!("-max_total_time={}", options.seconds);
        let mut command = cargo_fuzz();
        command.args(["run", &target, "--", &limit, "-print_final_stats=1"]).args(BOUNDS);
        clean &= succeeds(command)?;
    }
    Ok(clean)
}

fn all_targets() -> Result<Vec<String>> {
    let output = cargo_fuzz().arg("list").output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo-fuzz does not work here; get it with `cargo install cargo-fuzz`\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// cargo-fuzz asks for unstable options of the compiler; they are in the stable one too, behind this variable.
fn cargo_fuzz() -> Command {
    let mut command = cargo(&["fuzz"]);
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}
