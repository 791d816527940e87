//! `cargo xtask fuzz`: runs the fuzz targets (`fuzz/`), by their own driver or with cargo-fuzz.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};

use crate::builds;
use crate::steps::{cargo, succeeds, succeeds_quietly};
use crate::sys;

/// The limits for one input. Readers must not allocate memory for a claimed length, and their time must be
/// proportional to the input. So an input of at most 100 kB needs little memory and little time. Instrumented
/// code is several times slower than the shipped code.
const BOUNDS: [&str; 4] = ["-max_len=100000", "-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256"];

/// The address space of the driver. The threads of some targets reserve more than they use.
const ADDRESS_SPACE: u64 = 3 << 30;

/// The limits for each target in the check of every change. The number of inputs is one that has run without
/// a fault. So a failure comes from a change, and not from a faster machine.
const CHECK: Bounds = Bounds { seconds: 3, seed: 1, inputs: 2000 };

/// The limits of a target: the time, the number of inputs, and their seed.
#[derive(Clone, Copy)]
struct Bounds {
    seconds: u32,
    seed: u64,
    inputs: u64,
}

/// The target to fuzz, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target; all of them when none is named
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Changes known inputs without measuring coverage, which needs no cargo-fuzz
    #[arg(long)]
    plain: bool,
    /// The seed of the changes that --plain makes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Writes the seeds and runs the targets. Returns whether no target has failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let driver = builds::fuzz_driver()?;
    let all = all_targets(&driver)?;
    let targets = match &options.target {
        Some(target) => {
            ensure!(all.contains(target), "there is no fuzz target {target}; there are {}", all.join(", "));
            vec![target.clone()]
        }
        None => all,
    };
    write_seeds(&driver)?;
    if options.plain {
        let bounds = Bounds { seconds: options.seconds, seed: options.seed, inputs: u64::MAX };
        return run_driver(&driver, targets, bounds);
    }
    let is_there = succeeds_quietly(&mut cargo(&["fuzz", "--version"]));
    ensure!(
        is_there,
        "cargo-fuzz does not work here; get it with `cargo install cargo-fuzz`, or use --plain"
    );
    let mut clean = true;
    for target in targets {
        clean &= succeeds(cargo_fuzz(&target, options.seconds)?)?;
    }
    Ok(clean)
}

/// The check of every change: builds all targets, and runs each of them for a few seconds.
pub(crate) fn check() -> Result<bool> {
    let driver = builds::fuzz_driver()?;
    write_seeds(&driver)?;
    run_driver(&driver, all_targets(&driver)?, CHECK)
}

fn all_targets(driver: &Path) -> Result<Vec<String>> {
    let output =
        Command::new(driver).arg("list").output().context("cannot start the fuzz targets' driver")?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn write_seeds(driver: &Path) -> Result<()> {
    let mut seeds = Command::new(driver);
    seeds.arg("seeds");
    ensure!(succeeds(seeds)?, "the first inputs of the fuzz targets cannot be written");
    Ok(())
}

/// Runs each target, as many at a time as there are CPUs.
fn run_driver(driver: &Path, targets: Vec<String>, bounds: Bounds) -> Result<bool> {
    let Bounds { seconds, seed, inputs } = bounds;
    let numbers = [seconds.to_string(), seed.to_string(), inputs.to_string()];
    let left = Mutex::new(VecDeque::from(targets));
    let next = || left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
    let run_some = || {
        let mut clean = true;
        while let Some(target) = next() {
            let mut command = Command::new(driver);
            command.args(["run", &target]).args(&numbers).stdin(Stdio::null());
            sys::limit_address_space(&mut command, ADDRESS_SPACE);
            let output = command.output().context("cannot start the fuzz targets' driver")?;
            clean &= print_result(&target, &output);
        }
        anyhow::Ok(clean)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..sys::cpu_count()).map(|_| scope.spawn(run_some)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    outcomes.into_iter().try_fold(true, |clean, outcome| Ok(clean & outcome?))
}

/// Prints how a target has ended. Returns whether it succeeded.
fn print_result(target: &str, output: &Output) -> bool {
    print!("{}", String::from_utf8_lossy(&output.stdout));
    let is_clean = output.status.success();
    if !is_clean {
        println!("FAILED: {target}: {}", output.status);
        println!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
        println!("the input is fuzz/artifacts/{target}/tried; what is mended is kept in fuzz/found/{target}");
    }
    is_clean
}

/// cargo-fuzz needs unstable options of the compiler. A variable enables them in the stable compiler.
fn cargo_fuzz(target: &str, seconds: u32) -> Result<Command> {
    let folder = crate::paths::root().join("fuzz");
    let (corpus, artifacts) = (folder.join("corpus").join(target), folder.join("artifacts").join(target));
    for made in [&corpus, &artifacts] {
        std::fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    let mut command = cargo(&["fuzz", "run", "--features", "libfuzzer", "any"]);
    command
        .arg(corpus)
        .args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1"])
        .args(BOUNDS);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.env("RUSTC_BOOTSTRAP", "1").env("NYQUIST_FUZZ_TARGET", target);
    // Lines for the stacks of crashes; optimising across crates would only make the build longer.
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only").env("CARGO_PROFILE_RELEASE_LTO", "off");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_fuzz_target_is_in_the_table() {
        let folder = crate::paths::root().join("fuzz/src/targets");
        let table = fs::read_to_string(folder.join("mod.rs")).unwrap();
        let listed: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = name.strip_suffix(".rs").unwrap();
            assert!(name == "mod" || listed.contains(&name), "{name} is missing in fuzz/src/targets/mod.rs");
        }
    }
}
