//! The step `oracle`: what this project reads and answers, beside other people's programs. Where what one needs is missing it is skipped.

mod go;
mod images;
mod perf_data;
mod rows;
mod symbols;

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::packages;
use crate::tally::Tally;

/// Each compares with one kind of oracle, and says whether there was no difference that is not known.
const COMPARISONS: &[fn(&mut Tally) -> Result<bool>] = &[
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
