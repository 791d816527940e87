//! The query about what threads wait for.

use super::answer::{Answer, Rows};
use super::context::{QueryContext, milliseconds};
use crate::report::wait_places;
use nyquist_analysis::WaitedFor;
use serde_json::json;

/// What threads wait for, the longest in total first, with the place where most of that time is spent. Further queries lead from the
/// first place to its line.
pub(super) fn waits(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    let waits = context.view.waits();
    if waits.is_empty() {
        answer.notes.push("no waits were recorded: `nyquist record --off-cpu` records them".to_owned());
    }
    let profile = context.view.profile();
    let row = |wait: &WaitedFor<'_>| {
        let place = wait_places(profile, wait).first().copied();
        let first = |threads: &[(&str, u64)]| json!(threads.first().map(|(thread, _)| *thread));
        vec![
            milliseconds(wait.durations.total_ns),
            json!(wait.durations.count),
            milliseconds(wait.durations.p50_ns),
            milliseconds(wait.durations.max_ns),
            json!(wait.reason),
            first(&wait.holders),
            first(&wait.wakers),
            json!(wait.object),
            json!(place.map(|place| format!("f-{}", place.func.index()))),
            json!(place.map(|place| context.names.show(place.name))),
        ]
    };
    let columns = &[
        "total_ms", "count", "p50_ms", "max_ms", "reason", "held_by", "woken_by", "object", "handle", "place",
    ];
    answer.rows(Rows::new("waits", columns, context.limit, &waits, row));
    if let Some(place) = waits.first().and_then(|wait| wait_places(profile, wait).first().copied()) {
        let handle = format!("f-{}", place.func.index());
        let next = |question: &str| context.next_of_waits(&[question, &handle]);
        answer.next = vec![next("source"), next("callers")];
    }
    answer
}

/// Notes in a summary that waiting was recorded, or that much of the time was spent waiting. Returns the further query.
pub(super) fn in_summary(context: &QueryContext<'_>, answer: &mut Answer) -> Option<String> {
    if !context.view.waits().is_empty() {
        return Some(context.next(&["waits"]));
    }
    let summary = context.view.summary();
    let is_mostly_waiting = context.total_name() == "cpu_ms"
        && context.view.profile().meta().measure.is_cpu_time()
        && summary.cpu_ns < summary.duration_ns / 4;
    if is_mostly_waiting {
        answer.notes.push("less than a quarter of the duration is CPU time: `nyquist record --off-cpu` shows where threads wait".to_owned());
    }
    None
}
