//! The rows of a table: the recorders that are measured in turn, with their runs.

use super::measure::{Bench, Run};
use super::program::Program;
use super::recorder::Recorder;
use super::spread::cell;

/// One row: a recorder (or none) at a rate, and the result of each round, or why there is none.
pub(crate) struct Row<'a> {
    recorder: Option<&'a Recorder>,
    pub(crate) rate: u32,
    pub(crate) runs: Vec<Run>,
    failure: Option<String>,
}

/// Measures every row once in each round, so that a busy moment of the machine affects all rows.
pub(crate) fn take_turns(rounds: u32, bench: &Bench<'_>, program: &Program, rows: &mut [Row<'_>]) {
    for round in 1..=rounds {
        for row in rows.iter_mut() {
            eprintln!("{}, round {round}: {} {}", program.name, row.name(), row.rate);
            row.measure(bench, program);
        }
    }
}

impl<'a> Row<'a> {
    pub(crate) fn new(recorder: Option<&'a Recorder>, rate: u32) -> Self {
        Self { recorder, rate, runs: Vec::new(), failure: None }
    }

    fn name(&self) -> &str {
        self.recorder.map_or("unrecorded", |recorder| recorder.name)
    }

    /// Makes one run. After a failure, there are no further runs.
    fn measure(&mut self, bench: &Bench<'_>, program: &Program) {
        if self.failure.is_some() {
            return;
        }
        let run = match self.recorder {
            None => bench.unrecorded(&program.command),
            Some(recorder) if recorder.program.is_none() => Err(anyhow::anyhow!("not on this machine")),
            Some(recorder) => bench.recorded(recorder, self.rate, &program.command),
        };
        match run {
            Ok(run) => self.runs.push(run),
            Err(error) => self.failure = Some(format!("{error:#}")),
        }
    }

    pub(crate) fn cell(&self, digits: usize, figure: impl Fn(&Run) -> f64) -> String {
        cell(digits, self.runs.iter().map(figure))
    }

    /// A cell that is empty if there is no recorder.
    pub(crate) fn recorded(&self, digits: usize, figure: impl Fn(&Run) -> f64) -> String {
        self.recorder.map_or_else(String::new, |_| self.cell(digits, figure))
    }

    pub(crate) fn print(&self, cells: &[String]) {
        let mode = self.recorder.map_or("", |recorder| recorder.mode);
        let rate = if self.rate == 0 { String::new() } else { self.rate.to_string() };
        match &self.failure {
            Some(failure) => {
                println!("| {} | {mode} | {rate} | {failure} |{}", self.name(), " |".repeat(cells.len() - 1));
            }
            None => println!("| {} | {mode} | {rate} | {} |", self.name(), cells.join(" | ")),
        }
    }
}
