//! The checked-in list of records that the two readers take differently, each kind with its reason.

use anyhow::{Context as _, Result, ensure};

/// Lines of what differs, how many of a thousand records of the type may, and why.
const TEXT: &str = include_str!("../known-differences.txt");

/// Fails where a difference is not on the list, or there are more of it than the list allows. Gives back the reason.
pub fn check(what: &str, count: usize, of: usize) -> Result<&'static str> {
    let mut lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let fields = lines.find_map(|line| {
        let (name, rest) = line.split_once('\t')?;
        (name == what).then(|| rest.split_once('\t')).flatten()
    });
    let (per_mille, reason) = fields
        .with_context(|| format!("{count} of {of} records differ in a way that is not listed: {what}"))?;
    let per_mille: usize = per_mille.parse().context("a number of records of a thousand")?;
    ensure!(count * 1000 <= per_mille * of, "{count} of {of} records differ, more than are listed: {what}");
    Ok(reason)
}
