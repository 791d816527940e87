//! What heaptrack counts. Its own sums are rounded when they are printed, so they are added up from its stacks. It does
//! not print the bytes in all.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::counted::Counted;
use super::names::site_of;
use super::tool::succeeded;
use crate::bench::alloc::bench::Bench;
use crate::bench::alloc::programs::Program;

pub(super) fn count(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    let file = record(bench, program)?;
    let mut counted = Counted::default();
    for (at, cost) in [(1, "allocations"), (2, "peak"), (3, "leaked")] {
        let stacks = bench.folder.join("heaptrack.stacks");
        let mut print = Command::new("heaptrack_print");
        print.args(["-p", "0", "-a", "0", "-T", "0", "--flamegraph-cost-type", cost, "-F"]);
        succeeded(print.arg(&stacks).arg(&file), "heaptrack_print")?;
        for (stack, weight) in fs::read_to_string(stacks)?.lines().filter_map(|line| line.rsplit_once(' ')) {
            let mut amounts = [None; 4];
            amounts[at] = Some(weight.parse().unwrap_or(0.0));
            counted.add(&site_of(innermost_first(stack)), amounts);
        }
    }
    Ok(counted)
}

/// Whether it can be run.
pub(super) fn is_there() -> bool {
    Command::new("heaptrack").arg("--version").output().is_ok()
}

fn record(bench: &Bench<'_>, program: &Program) -> Result<PathBuf> {
    let data = bench.folder.join("heaptrack");
    let files = ["zst", "gz"].map(|ending| data.with_extension(ending));
    for file in &files {
        let _ = fs::remove_file(file);
    }
    let mut command = program.under("heaptrack");
    succeeded(command.arg("-o").arg(&data).args(&program.args), "heaptrack")?;
    files.into_iter().find(|path| path.exists()).context("heaptrack has written nothing")
}

/// The functions of a folded stack. The file is behind the function.
fn innermost_first(stack: &str) -> impl Iterator<Item = &str> {
    let frames = stack.trim_end_matches(';').rsplit(';');
    frames.map(|frame| frame.rsplit_once(" (").map_or(frame, |(function, _)| function))
}
