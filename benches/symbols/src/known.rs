//! The list of differences that are known, and comparing with it.

use std::collections::BTreeMap;

/// A difference that is known: which programs, which oracle, what kind, and the reason.
pub struct KnownDifference<'a> {
    program: &'a str,
    oracle: &'a str,
    kind: &'a str,
    /// The largest share of the addresses, in thousandths.
    at_most: usize,
}

/// `PROGRAM ORACLE KIND PER-MILLE: reason`; a `*` at the end of a word stands for anything.
pub fn parse(line: &str) -> Option<KnownDifference<'_>> {
    let (head, _reason) = line.split_once(": ")?;
    let mut fields = head.split_whitespace();
    Some(KnownDifference {
        program: fields.next()?,
        oracle: fields.next()?,
        kind: fields.next()?,
        at_most: fields.next()?.parse().ok()?,
    })
}

/// How many addresses of a program were compared, and how many differ, by oracle and kind.
#[derive(Default)]
pub struct Report {
    pub addresses: usize,
    pub differences: BTreeMap<(&'static str, &'static str), usize>,
}

/// Whether all differences of a program are known.
pub fn judge(name: &str, report: &Report, known: &[KnownDifference<'_>]) -> bool {
    let matches = |pattern: &str, text: &str| match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    };
    let mut good = true;
    for ((oracle, kind), &count) in &report.differences {
        let share = (count * 1000).div_ceil(report.addresses);
        let listed = known.iter().any(|known| {
            matches(known.program, name)
                && matches(known.oracle, oracle)
                && matches(known.kind, kind)
                && share <= known.at_most
        });
        let word = if listed { "known" } else { "NEW" };
        println!("{name}: {word}: {oracle} {kind}: {count} of {} ({share} ‰)", report.addresses);
        good &= listed;
    }
    if report.differences.is_empty() {
        println!("{name}: {} addresses equal", report.addresses);
    }
    good
}
