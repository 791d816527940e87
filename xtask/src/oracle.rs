//! The step `oracle`: recordings of the installed perf, record by record as linux-perf-data reads them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, succeeds};
use crate::tally::Tally;
use crate::workloads;

/// What perf is asked for, and what the recording is called.
const MODES: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("frame-pointers", &["-g"]),
    ("copies", &["--call-graph", "dwarf"]),
    ("two-events", &["-g", "-e", "cpu-clock,page-faults"]),
    ("many-fields", &["-g", "-d", "--phys-data", "-T", "--sample-cpu", "--switch-events"]),
    ("compressed", &["-g", "-z"]),
];

/// Samples a second, and how long the program works: for some thousands of samples in less than a second.
const RATE: &str = "4999";
const PASSES: &str = "6000";

/// Compares the readers on recordings that are made here. Skipped where perf is missing or records nothing, or the crates of
/// the workspace cannot be fetched.
pub(crate) fn perf_data(tally: &mut Tally) -> Result<bool> {
    let workspace = crate::root().join("benches/perf-data");
    let mut fetch = cargo(&["fetch", "--locked", "--quiet", "--manifest-path"]);
    if !succeeds_quietly(fetch.arg(workspace.join("Cargo.toml"))) {
        tally.skip("oracle", "the crates of benches/perf-data cannot be fetched".to_owned());
        return Ok(true);
    }
    let folder = crate::target().join("oracle");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let program = workloads::build_all()?.join("fixed_work-fp");
    let mut recordings = Vec::new();
    for (name, mode) in MODES {
        match record(&folder, &program, name, mode) {
            Some(path) => recordings.push(path),
            None => tally.skip("oracle", format!("perf cannot record here: {name}")),
        }
    }
    let mut build = cargo(&["build", "--release", "--quiet", "--bin", "compare", "--manifest-path"]);
    build.arg(workspace.join("Cargo.toml")).env_remove("CARGO_TARGET_DIR");
    ensure!(succeeds(build)?, "the workspace does not build");
    let mut compare = Command::new(workspace.join("target/release/compare"));
    compare.args(&recordings);
    Ok(recordings.is_empty() || succeeds(compare)?)
}

/// Records a program; `None` where perf cannot.
fn record(folder: &Path, program: &Path, name: &str, mode: &[&str]) -> Option<PathBuf> {
    let path = folder.join(format!("{name}.data"));
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-F", RATE]).args(mode).arg("-o").arg(&path).arg("--");
    command.arg(program).args([PASSES, "2"]);
    succeeds_quietly(&mut command).then_some(path)
}

fn succeeds_quietly(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
