//! The step `oracle`: compares this project's results with those of other programs. A comparison whose
//! programs are missing is skipped.

mod benches;
mod folder;
mod go;
mod images;
mod names;
mod perf_data;
mod rows;
mod symbols;

use anyhow::Result;

use crate::tally::Tally;

/// Each function compares with one kind of oracle, and returns whether all differences are known ones. The
/// first one checks that the comparing programs build.
const COMPARISONS: &[fn(&mut Tally) -> Result<bool>] = &[
    benches::check,
    images::check,
    rows::check,
    rows::check_followed,
    go::compare,
    names::check,
    symbols::check_lines,
    symbols::check_pdb,
    perf_data::compare,
];

/// Runs all comparisons, even after one has failed.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let mut clean = true;
    for compare in COMPARISONS {
        clean &= compare(tally)?;
    }
    Ok(clean)
}
