//! The checked-in list of differences between the two unwinders, each with its reason.

use anyhow::{Context, Result, ensure};

/// The list.
const TEXT: &str = include_str!("../known-differences.txt");

/// A kind of difference.
pub struct KnownDifference {
    /// How a stack or a step is classified.
    pub class: String,
    /// The most of a thousand that may be of this class.
    pub per_mille: usize,
    /// Why.
    pub reason: String,
}

/// Reads the list: lines of a class, a number and a reason.
pub fn list() -> Result<Vec<KnownDifference>> {
    let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let mut next = || fields.next().with_context(|| format!("{line:?} has not three fields"));
        let (class, number, reason) = (next()?.to_owned(), next()?, next()?.to_owned());
        Ok(KnownDifference { class, per_mille: number.parse().context("a number of a thousand")?, reason })
    };
    lines.map(parse).collect()
}

/// Fails where there are more of a class than the list allows.
pub fn check(class: &str, count: usize, of: usize) -> Result<()> {
    let known = list()?;
    let known = known.iter().find(|known| known.class == class);
    let known =
        known.with_context(|| format!("{count} of {of} differ in a way that is not listed: {class}"))?;
    ensure!(
        count * 1000 <= known.per_mille * of,
        "{count} of {of} differ in this way, more than {} of a thousand: {class}",
        known.per_mille
    );
    println!("{count} of {of}: {class} ({})", known.reason);
    Ok(())
}
