//! The result as JSON.

use super::CONFIDENCE;
use super::compare::pairs;
use super::format::missing;
use super::measured::{Quantity, Row, Summary};
use super::table::Change;
use serde_json::{Value, json};
use std::time::Duration;

/// One command, or what runs already.
pub(super) fn summary(summary: &Summary, name: Option<&str>) -> Value {
    json!({
        "command": name.filter(|name| !name.is_empty()),
        "runs": summary.runs,
        "status": summary.status,
        "events": summary.all_rows().iter().map(row).collect::<Vec<_>>(),
    })
}

/// Two commands and how they differ.
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
        "before": summary(before, names[0].as_deref()),
        "after": summary(after, names[1].as_deref()),
        "method": "Welch's t",
        "confidence": CONFIDENCE,
        "changes": changes.collect::<Vec<_>>(),
    })
}

/// What was counted in an interval that ends at a time.
pub(super) fn interval(since: Duration, changes: &[Change<'_>]) -> Value {
    let event = |change: &Change<'_>| {
        let row = super::measured::row_of_interval(change);
        json!({
            "event": row.name,
            "unit": unit(&row),
            "value": change.value.ok(),
            "missing": change.value.err().map(missing),
        })
    };
    json!({ "time_s": since.as_secs_f64(), "events": changes.iter().map(event).collect::<Vec<_>>() })
}

fn unit(row: &Row) -> &str {
    match row.quantity {
        Quantity::Seconds => "s",
        Quantity::Nanoseconds => "ns",
        Quantity::Times => "",
        Quantity::Other => row.unit.as_deref().unwrap_or_default(),
    }
}

fn row(row: &Row) -> Value {
    let spread = row.spread.ok();
    json!({
        "event": row.name,
        "thread": row.thread.as_ref().map(|(tid, name)| json!({ "tid": tid, "name": name })),
        "unit": unit(row),
        "mean": spread.map(|spread| spread.mean),
        "deviation": spread.filter(|spread| spread.count > 1).map(|spread| spread.deviation),
        "min": spread.map(|spread| spread.min),
        "max": spread.map(|spread| spread.max),
        "values": row.values,
        "share_of_time": row.share,
        "user_only": row.user_only,
        "of_waited_for_processes": row.by_process,
        "missing": row.spread.err().map(missing),
    })
}
