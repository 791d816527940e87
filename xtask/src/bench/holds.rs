//! For how long the ptrace backend holds threads while it reads their stacks.

use std::fs;

use anyhow::{Context as _, Result};

use super::measure::Bench;
use super::program::{self, CROWD, Program};
use super::recorder::Recorder;
use super::spread::cell;
use crate::holds::Holds;

/// Measures and prints the table. `seconds` is the CPU time of each thread; each of two hundred threads gets
/// less ([`CROWD`]).
pub(crate) fn measure(rounds: u32, seconds: f64, bench: &Bench<'_>, by_ptrace: &Recorder) -> Result<()> {
    println!("\n## Holds by ptrace\n");
    println!(
        "| program | Hz | looks a second | median, µs | 99th percentile, µs | all of the command's time, % |"
    );
    println!("|---|---|---|---|---|---|");
    for (threads, seconds) in [(1, seconds), (2, seconds), (200, seconds / CROWD)] {
        let program = program::fixed_work(bench, "fp", threads, seconds)?;
        for rate in [1000, 10_000] {
            let runs = (1..=rounds).map(|round| {
                eprintln!("{}, round {round}: holds at {rate}", program.name);
                held(bench, by_ptrace, rate, &program)
            });
            print(&program, rate, &runs.collect::<Result<Vec<_>>>()?);
        }
    }
    println!();
    Ok(())
}

/// The holds of a recording, and their share of the command's time.
fn held(bench: &Bench<'_>, by_ptrace: &Recorder, rate: u32, program: &Program) -> Result<(Holds, f64)> {
    let run = bench.recorded(by_ptrace, rate, &program.command)?;
    let messages = fs::read_to_string(bench.printed()).context("the recorder left no messages")?;
    let holds = Holds::parse(&messages)?;
    Ok((holds, holds.total_ms / 10.0 / run.command_wall))
}

fn print(program: &Program, rate: u32, runs: &[(Holds, f64)]) {
    let figure =
        |digits, figure: fn(&Holds) -> f64| cell(digits, runs.iter().map(|(holds, _)| figure(holds)));
    println!(
        "| {} | {rate} | {} | {} | {} | {} |",
        program.name,
        figure(0, |holds| holds.a_second),
        figure(0, |holds| holds.median_us),
        figure(0, |holds| holds.percentile_99_us),
        cell(1, runs.iter().map(|(_, share)| *share))
    );
}
