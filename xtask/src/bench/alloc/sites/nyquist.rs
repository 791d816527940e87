//! What nyquist counts where it records each allocation.

use std::process::Command;

use anyhow::Result;

use super::counted::Counted;
use super::dhat;
use super::tool::succeeded;
use crate::bench::alloc::bench::Bench;
use crate::bench::alloc::programs::Program;

pub(super) fn count(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    let (recording, file) = (bench.folder.join("each.json.gz"), bench.folder.join("each.dhat.json"));
    let mut command = program.under(&bench.nyquist);
    command.args(["record", "-s", "-q", "--alloc", "--alloc-rate", "1", "-o"]).arg(&recording).arg("--");
    succeeded(command.args(&program.args), "nyquist")?;
    let mut export = Command::new(&bench.nyquist);
    succeeded(export.args(["export", "-o"]).arg(&file).arg(&recording), "nyquist export")?;
    dhat::of_file(&file)
}
