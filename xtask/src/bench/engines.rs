//! `cargo xtask bench engines`: how long SQL engines take for the recipes of `docs/fleet`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::Value;

use crate::live::topics::engines::{Engine, RECIPES};

/// What is read, and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder that has the folder `profiles`
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// How often each recipe is run; the fastest time counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Measures and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let names: Vec<_> = RECIPES.iter().map(|(name, _)| name.trim_end_matches(".sql")).collect();
    println!("\n| seconds | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    for engine in [Engine::duckdb(), Engine::clickhouse(), Engine::spark()] {
        let engine = engine.map_err(|stop| anyhow!("an engine is missing: {stop:?}"))?;
        let seconds = seconds(options, &engine)?;
        let shown: Vec<_> = seconds.iter().map(|seconds| format!("{seconds:.2}")).collect();
        println!("| {} | {} |", engine.name, shown.join(" | "));
    }
    Ok(())
}

/// The time of each recipe.
fn seconds(options: &Options, engine: &Engine) -> Result<Vec<f64>> {
    let recipes = RECIPES.iter().map(|(name, _)| engine.recipe(name));
    let recipes: Vec<_> = recipes.collect::<Result<_, _>>().map_err(|stop| anyhow!("no recipe: {stop:?}"))?;
    let mut python = Command::new("python3");
    python.args(["-c", &engine.program()]).current_dir(&options.folder).stderr(Stdio::null());
    python.env("PYTHONPATH", &engine.modules).env("SPARK_LOCAL_IP", "127.0.0.1");
    for _ in 0..options.rounds {
        python.args(&recipes);
    }
    let output = python.output().context("cannot start python3")?;
    ensure!(output.status.success(), "{} fails", engine.name);
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let of = |answer: &Value| answer["seconds"].as_f64().unwrap_or(f64::NAN);
    let fastest = |recipe: usize| {
        answers.iter().skip(recipe).step_by(recipes.len()).map(of).fold(f64::INFINITY, f64::min)
    };
    Ok((0..recipes.len()).map(fastest).collect())
}
