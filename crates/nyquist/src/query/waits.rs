//! The query about what threads wait for.

use super::answer::Answer;
use super::context::QueryContext;
use nyquist_analysis::schema::List;

/// What threads wait for, the longest in total first, with the place where most of that time is spent. Further queries
/// lead from the first place to its line.
pub(super) fn waits(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    let waits = context.view.waits();
    if waits.is_empty() {
        answer.notes.push("no waits were recorded: `nyquist record --off-cpu` records them".to_owned());
    }
    let columns = &[
        "total_ms", "count", "p50_ms", "max_ms", "reason", "held_by", "woken_by", "object", "handle", "place",
    ];
    let list = List::new("wait", "waits", context.limit, &waits, |wait| context.rows.wait(wait));
    answer.list(&list, columns);
    if let Some(place) = list.rows.first().and_then(|wait| wait.places.first()) {
        let next = |question: &str| context.next_of_waits(&[question, &place.handle]);
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
