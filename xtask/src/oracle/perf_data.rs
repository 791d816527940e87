//! Recordings of the installed perf, compared with linux-perf-data record by record.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::folder::folder;
use crate::steps::{succeeds, succeeds_quietly};
use crate::tally::Tally;
use crate::workloads;
use crate::workspace::Workspace;

/// The options of perf, and the name of the recording.
const MODES: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("frame-pointers", &["-g"]),
    ("copies", &["--call-graph", "dwarf"]),
    ("two-events", &["-g", "-e", "cpu-clock,page-faults"]),
    ("many-fields", &["-g", "-d", "--phys-data", "-T", "--sample-cpu", "--switch-events"]),
    ("compressed", &["-g", "-z"]),
];

/// Samples a second, and the time that the program works. Together they give some thousands of samples in
/// less than a second.
const RATE: &str = "4999";
const PASSES: &str = "6000";

/// Compares the readers on recordings that are made here. This is skipped if perf is missing, if it records
/// nothing, or if the crates of the workspace cannot be fetched.
pub(super) fn compare(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/perf-data", "oracle", tally) else { return Ok(true) };
    let folder = folder()?;
    let program = workloads::build_all()?.join("fixed_work-fp");
    let mut recordings = Vec::new();
    for (name, mode) in MODES {
        match record(&folder, &program, name, mode) {
            Some(path) => recordings.push(path),
            None => tally.skip("oracle", format!("perf cannot record here: {name}")),
        }
    }
    if recordings.is_empty() {
        return Ok(true);
    }
    let mut compare = Command::new(workspace.build("compare")?);
    compare.args(&recordings);
    succeeds(compare)
}

/// Records a program; `None` if perf cannot record it.
fn record(folder: &Path, program: &Path, name: &str, mode: &[&str]) -> Option<PathBuf> {
    let path = folder.join(format!("{name}.data"));
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-F", RATE]).args(mode).arg("-o").arg(&path).arg("--");
    command.arg(program).args([PASSES, "2"]);
    succeeds_quietly(&mut command).then_some(path)
}
