//! The step `oracle`: comparisons of this project's results with other people's programs. A comparison whose
//! programs are missing is skipped.

mod benches;
mod go;
mod images;
mod perf_data;
mod rows;
mod symbols;

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::packages;
use crate::tally::Tally;

/// Each compares with one kind of oracle, and says whether there was no difference that is not known. Before that, the programs that
/// compare have to build.
const COMPARISONS: &[fn(&mut Tally) -> Result<bool>] = &[
    benches::check,
    images::check,
    rows::check,
    rows::check_followed,
    go::compare,
    symbols::check_lines,
    symbols::check_pdb,
    perf_data::compare,
];

/// Runs all, also when one has failed.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    packages::install_oracles();
    let mut clean = true;
    for compare in COMPARISONS {
        clean &= compare(tally)?;
    }
    Ok(clean)
}

/// Where files for the comparisons are made.
fn folder() -> Result<PathBuf> {
    let folder = crate::target().join("oracle");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
