//! A comparison as JSON.

use super::compared::Compared;
use super::verdict::Verdict;
use crate::args::DiffArgs;
use nyquist_analysis::{DiffUnit, FunctionDiff};
use nyquist_profile::Unit;
use serde_json::{Value, json};

const SCHEMA: &str = "nyquist-diff/1";

/// The object that `docs/report-json.md` describes.
pub(super) fn of(compared: &Compared<'_, '_>, args: &DiffArgs) -> Value {
    let Compared { diff, measure, .. } = *compared;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let chosen = diff.functions.iter().filter(|function| args.all || !function.self_time.is_noise);
    let function = |function: &FunctionDiff<'_>| {
        json!({
            "function": function.name,
            "lib": function.lib,
            "self": function.self_time,
            "total": function.total,
        })
    };
    json!({
        "schema": SCHEMA,
        "name": compared.name,
        "unit": match diff.unit {
            DiffUnit::Nanoseconds if measure.unit != Unit::Time => json!(measure.unit.as_str()),
            unit => json!(unit),
        },
        "measure": measure.name,
        "runs_before": diff.runs_before,
        "runs_after": diff.runs_after,
        "whole": diff.total,
        "verdict": compared.verdict.as_ref().map(verdict),
        "function_count": diff.functions.len(),
        "noise_count": diff.functions.iter().filter(|function| function.self_time.is_noise).count(),
        "functions": chosen.take(limit).map(function).collect::<Vec<_>>(),
    })
}

fn verdict(verdict: &Verdict<'_, '_>) -> Value {
    json!({
        "fail_above": verdict.accepted,
        "passed": verdict.passed(),
        "whole_is_slower": verdict.whole_is_slower,
        "slower": verdict.slower.iter().map(|function| &function.name).collect::<Vec<_>>(),
    })
}

/// The object of several comparisons.
pub(super) fn of_several(comparisons: &[Value]) -> Value {
    let passed = comparisons.iter().all(|comparison| comparison["verdict"]["passed"] != json!(false));
    json!({ "schema": SCHEMA, "passed": passed, "comparisons": comparisons })
}
