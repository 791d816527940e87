//! Values in readable form.

use super::measured::{KernelCount, MeasuredRow, Quantity, Summary, mean_of, plain};
use crate::number::{grouped, percent};
use nyquist_record::linux::counting::MissingCount;

/// A value of a row, with its unit.
pub(super) fn value(row: &MeasuredRow, value: f64) -> String {
    match row.quantity {
        Quantity::Seconds => format!("{value:.3} s"),
        Quantity::Nanoseconds => format!("{} ms", decimals(value / 1e6, 2)),
        Quantity::Times => decimals(value, usize::from(row.values.len() > 1 && value < 100.0)),
        Quantity::Other => {
            let unit = row.unit.as_deref().unwrap_or_default();
            format!("{} {unit}", decimals(value, 2)).trim_end().to_owned()
        }
    }
}

/// A number with separated thousands and some decimals.
fn decimals(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((&*text, None), |(whole, rest)| (whole, Some(rest)));
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_owned(), grouped);
    let sign = if value < 0.0 { "-" } else { "" };
    match rest {
        Some(rest) => format!("{sign}{whole}.{rest}"),
        None => format!("{sign}{whole}"),
    }
}

/// The deviation of a row: in its unit, and relative to the mean.
pub(super) fn deviation(row: &MeasuredRow) -> (String, String) {
    let Some(spread) = row.spread.ok().filter(|spread| spread.count > 1) else {
        return <(String, String)>::default();
    };
    let share = spread.relative_deviation().map(percent).unwrap_or_default();
    (value(row, spread.deviation), share)
}

/// The reason why a row has no value.
pub(super) fn missing(missing: MissingCount) -> &'static str {
    match missing {
        MissingCount::NotSupported => "not on this machine",
        MissingCount::NotPermitted => "needs more rights",
        MissingCount::WholeMachineOnly => "for the whole machine only (-a)",
        MissingCount::NotCounted => "not counted",
        MissingCount::NoGroup => "needs a control group, and none can be made",
    }
}

/// The relation of a value to others: a rate or a share, and whether it is an estimate. `beside` are the rows
/// of the same thread, or those of all threads together.
pub(super) fn note(row: &MeasuredRow, beside: &[MeasuredRow], summary: &Summary) -> String {
    let Ok(spread) = row.spread else { return row.spread.err().map_or("", missing).to_owned() };
    let mut notes = Vec::new();
    notes.extend(relation(row, spread.mean, beside, summary));
    if row.share < 0.9995 {
        notes.push(format!("counted {} of the time", percent(row.share)));
    }
    notes.extend(row.by_kernel.map(|whose| match whose {
        KernelCount::Processes => "of processes that were waited for".to_owned(),
        KernelCount::Thread => "by the kernel's account of the thread".to_owned(),
    }));
    notes.join(", ")
}

fn relation(row: &MeasuredRow, mean: f64, beside: &[MeasuredRow], summary: &Summary) -> Option<String> {
    let other = |name: &str| mean_of(name, beside).filter(|value| *value > 0.0);
    let name = plain(&row.name);
    let share_of = |of: &str| Some(format!("{} of {of}", percent(mean / other(of)?)));
    match name {
        "task-clock" | "cpu-clock" => {
            let cpus = mean / 1e9 / summary.wall.mean;
            return (summary.wall.mean > 0.0).then(|| format!("{cpus:.3} CPUs used"));
        }
        "cycles" | "cpu-cycles" => {
            let clock = other("task-clock").or_else(|| other("cpu-clock"))?;
            return Some(format!("{:.3} GHz", mean / clock));
        }
        "instructions" => {
            let cycles = other("cycles").or_else(|| other("cpu-cycles"))?;
            return Some(format!("{:.2} per cycle", mean / cycles));
        }
        "branch-misses" => return share_of("branches").or_else(|| share_of("branch-instructions")),
        "cache-misses" => return share_of("cache-references"),
        _ => {}
    }
    if let Some(of) = name.strip_suffix("-misses") {
        // `L1-dcache-load-misses` relates to `L1-dcache-loads`, `-prefetch-misses` to `-prefetches`.
        return ["s", "es"].iter().find_map(|plural| share_of(&format!("{of}{plural}")));
    }
    if row.quantity != Quantity::Times || mean == 0.0 {
        return None;
    }
    let clock = other("task-clock").or_else(|| other("cpu-clock"))?;
    Some(rate(mean / (clock / 1e9)))
}

/// A number per second of CPU time.
fn rate(per_second: f64) -> String {
    let (value, unit) = match per_second {
        rate if rate >= 1e9 => (rate / 1e9, " G"),
        rate if rate >= 1e6 => (rate / 1e6, " M"),
        rate if rate >= 1e3 => (rate / 1e3, " k"),
        rate => (rate, ""),
    };
    format!("{value:.1}{unit}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        let check = |value, places, expected| assert_eq!(decimals(value, places), expected);
        check(1_234_567.4, 0, "1,234,567");
        check(1234.567, 2, "1,234.57");
        check(-0.5, 1, "-0.5");
        check(f64::NAN, 1, "?");
    }

    #[test]
    fn rates_have_a_unit() {
        assert_eq!(
            [rate(2.5e9), rate(3.2e6), rate(1500.0), rate(9.0)],
            ["2.5 G/s", "3.2 M/s", "1.5 k/s", "9.0/s"]
        );
    }
}
