//! Reports beside those of `pprof -top` and `perf report --stdio` on the same data.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use super::measure::{Bench, Run};
use crate::workloads;

/// The name of the profile that the benchmark writes into the folder.
pub(super) const PROFILE: &str = "large-profile.json.gz";

/// The CPU time that perf records, in ms, and its rate. The number of samples takes `perf report` some
/// seconds.
const RECORDED_MS: &str = "20000";
const RATE: &str = "20000";

/// Exports and reports the profile with nyquist and with the peers, and prints a table.
pub(super) fn run(folder: &Path, nyquist: &Path) -> Result<()> {
    let workloads = workloads::build_all()?;
    let (folder, nyquist) = (std::path::absolute(folder)?, std::path::absolute(nyquist)?);
    let bench = Bench { folder: &folder, measured: &workloads.join("measured") };
    let nyquist = nyquist.display().to_string();
    let shares = workloads.join("shares").display().to_string();
    println!("\n| data | command | wall s | CPU s |\n|---|---|---:|---:|");
    let pprof = "large.pb.gz";
    row(&bench, "generated", &[&nyquist, "export", PROFILE, "-o", pprof]);
    row(&bench, "generated", &[&nyquist, "report", PROFILE]);
    row(&bench, "generated", &[&nyquist, "report", pprof]);
    row(&bench, "generated", &["go", "tool", "pprof", "-top", pprof]);
    let record = ["perf", "record", "-q", "-F", RATE, "-e", "cpu-clock:u", "-g", "-o", "perf.data", "--"];
    let recorded = [&record[..], &[&shares, RECORDED_MS]].concat();
    row(&bench, "`perf record` of 20 s", &recorded);
    row(&bench, "perf.data", &[&nyquist, "report", "perf.data"]);
    row(&bench, "perf.data", &["perf", "report", "--stdio", "-i", "perf.data"]);
    for file in [PROFILE, pprof, "perf.data"] {
        // A file that could not be made does not exist.
        let _ = std::fs::remove_file(folder.join(file));
    }
    Ok(())
}

/// Runs a command and prints its cost, or why it cannot be run here.
fn row(bench: &Bench<'_>, data: &str, args: &[&str]) {
    let command: Vec<OsString> = args.iter().map(Into::into).collect();
    let shown: Vec<_> = args.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
    let shown = shown.join(" ");
    match bench.unrecorded(&command) {
        Ok(Run { command_wall, command_cpu, .. }) => {
            println!("| {data} | `{shown}` | {command_wall:.1} | {command_cpu:.1} |");
        }
        Err(error) => println!("| {data} | `{shown}` | {error:#} | |"),
    }
}
