//! The result as JSON.

use super::compare::pairs;
use super::format::missing;
use super::interval::IntervalCount;
use super::measured::{CONFIDENCE, KernelCount, MeasuredRow, Quantity, Summary};
use serde_json::{Value, json};
use std::time::Duration;

/// The version of the members, which grows when one of them changes its meaning.
const SCHEMA: &str = "nyquist-stat/1";

/// One command, or running processes.
pub(super) fn summary(summary: &Summary, name: Option<&str>) -> Value {
    json!({
        "schema": SCHEMA,
        "command": name.filter(|name| !name.is_empty()),
        "runs": summary.runs,
        "status": summary.status,
        "events": summary.all_rows().iter().map(row).collect::<Vec<_>>(),
    })
}

/// Two commands and their differences.
pub(super) fn comparison(before: &Summary, after: &Summary, names: &[Option<String>; 2]) -> Value {
    let changes = pairs(before, after).into_iter().map(|(one, _, change)| {
        json!({
            "event": one.name,
            "unit": unit(&one),
            "difference": change.difference,
            "margin": change.margin,
            "relative": change.relative,
            "is_significant": change.is_significant(),
        })
    });
    json!({
        "schema": SCHEMA,
        "before": summary(before, names[0].as_deref()),
        "after": summary(after, names[1].as_deref()),
        "method": "Welch's t",
        "confidence": CONFIDENCE,
        "changes": changes.collect::<Vec<_>>(),
    })
}

/// The counts of an interval that ends at a time, with the number of the run if there are several.
pub(super) fn interval(run: Option<u32>, since: Duration, counts: &[IntervalCount<'_>]) -> Value {
    let event = |change: &IntervalCount<'_>| {
        let row = super::measured::row_of_interval(change);
        json!({
            "event": row.name,
            "unit": unit(&row),
            "value": change.value.ok(),
            "missing": change.value.err().map(missing),
        })
    };
    let events: Vec<_> = counts.iter().map(event).collect();
    let mut interval = json!({ "time_s": since.as_secs_f64(), "events": events });
    if let Some(run) = run {
        interval["run"] = run.into();
    }
    interval
}

fn unit(row: &MeasuredRow) -> &str {
    match row.quantity {
        Quantity::Seconds => "s",
        Quantity::Nanoseconds => "ns",
        Quantity::Times => "",
        Quantity::Other => row.unit.as_deref().unwrap_or_default(),
    }
}

fn row(row: &MeasuredRow) -> Value {
    let spread = row.spread.ok();
    json!({
        "event": row.name,
        "thread": row.thread.as_ref().map(|it| json!({ "pid": it.pid, "tid": it.tid, "name": it.name })),
        "unit": unit(row),
        "mean": spread.map(|spread| spread.mean),
        "deviation": spread.filter(|spread| spread.count > 1).map(|spread| spread.deviation),
        "min": spread.map(|spread| spread.min),
        "max": spread.map(|spread| spread.max),
        "values": row.values,
        "share_of_time": row.share,
        "user_only": row.user_only,
        "of_waited_for_processes": row.by_kernel == Some(KernelCount::Processes),
        "of_kernels_account": row.by_kernel == Some(KernelCount::Thread),
        "missing": row.spread.err().map(missing),
    })
}
