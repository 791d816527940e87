//! `cargo xtask mutate`: gives damaged files to the real program, and checks how it ends.

mod seed;
mod seeds;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use nyquist_test_support::mutation::{Dice, mutate};
use seed::Seed;
use trial::Trial;

/// The maximum length of a damaged file.
const MAX_BYTES: usize = 2 << 20;

/// The length to which some files are extended by a hole at their end.
const SPARSE_BYTES: u64 = 64 << 20;

/// The files to damage, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// For how long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The seed of the changes: the same seed makes the same changes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tests this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
}

/// Builds the programs and runs. Returns whether the program has always ended correctly.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?,
        None => crate::builds::release()?,
    };
    run_program(&nyquist, options.seconds, options.seed)
}

/// Runs a built program for this many seconds.
fn run_program(nyquist: &Path, seconds: u64, seed: u64) -> Result<bool> {
    let scratch = crate::paths::target().join("mutate");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(scratch.join("failed"))?;
    let trial = Trial::new(nyquist, &scratch);
    let seeds = seeds::all(&trial)?;
    let (mut dice, end) = (Dice::new(seed), Instant::now() + Duration::from_secs(seconds));
    let (mut runs, mut failures) = (0_u64, 0_u64);
    while Instant::now() < end {
        // Each file is damaged once in a round, because there are many small profiles and few recordings.
        for seed in &seeds {
            let damaged = damage(seed, &seeds, &mut dice);
            fs::write(&seed.place, &damaged)
                .with_context(|| format!("cannot write {}", seed.place.display()))?;
            if dice.below(64) == 0 {
                fs::OpenOptions::new().write(true).open(&seed.place)?.set_len(SPARSE_BYTES)?;
            }
            let command = &seed.commands[dice.below(seed.commands.len())];
            runs += 1;
            if let Err(fault) = trial.check(command) {
                failures += 1;
                println!("FAILED: {fault}");
                trial.keep(failures, seed, command, &fault)?;
            }
            fs::write(&seed.place, &seed.bytes)?;
            if Instant::now() >= end {
                break;
            }
        }
    }
    println!("{runs} runs over {} kinds of files, {failures} failed", seeds.len());
    if failures > 0 {
        println!("what failed is in {}", scratch.join("failed").display());
    }
    Ok(failures == 0)
}

fn damage(seed: &Seed, seeds: &[Seed], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    let other = &seeds[dice.below(seeds.len())].bytes;
    mutate(&mut bytes, other, MAX_BYTES, dice);
    bytes
}
