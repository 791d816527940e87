//! Queries about threads, libs, markers and times.

use super::answer::{Answer, Rows};
use super::context::{QueryContext, milliseconds};
use nyquist_analysis::{LibRow, MarkerKind, ThreadRow};
use serde_json::{Value, json};

/// The threads by time.
pub(super) fn threads(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    answer.rows(thread_rows(context, context.limit));
    answer
}

/// The first threads.
pub(super) fn thread_rows(context: &QueryContext<'_>, limit: usize) -> Rows {
    let columns = context.columns(
        &["handle", "total_share", "total_ms", "samples", "tid", "pid", "process", "thread"],
        &["handle", "total_share", "total", "samples", "tid", "pid", "process", "thread"],
    );
    let mut threads = context.view.by_thread();
    threads.retain(|thread| thread.samples > 0);
    let row = |thread: &ThreadRow<'_>| {
        vec![
            json!(format!("t-{}", thread.thread.index())),
            context.share(thread.amount.weight),
            context.amount(thread.amount.weight),
            json!(thread.samples),
            json!(thread.tid),
            json!(thread.pid),
            json!(context.view.profile().process(thread.process).name),
            json!(thread.name),
        ]
    };
    Rows::new("threads", columns, limit, &threads, row)
}

/// The libs by time.
pub(super) fn libs(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    let row = |lib: &LibRow<'_>| {
        vec![
            context.share(lib.self_amount.weight),
            context.amount(lib.self_amount.weight),
            context.share(lib.total.weight),
            json!(lib.path),
            json!(lib.name),
        ]
    };
    let columns = context.columns(
        &["self_share", "self_ms", "total_share", "path", "lib"],
        &["self_share", "self", "total_share", "path", "lib"],
    );
    answer.rows(Rows::new("libs", columns, context.limit, &context.view.by_lib(), row));
    answer
}

/// The markers by kind.
pub(super) fn markers(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    let row = |kind: &MarkerKind<'_>| {
        let ms = |nanoseconds: Option<u64>| nanoseconds.map_or(Value::Null, milliseconds);
        let durations = kind.durations;
        vec![
            json!(kind.count),
            ms(durations.map(|it| it.total_ns)),
            ms(durations.map(|it| it.p50_ns)),
            ms(durations.map(|it| it.p99_ns)),
            ms(durations.map(|it| it.max_ns)),
            json!(kind.name),
        ]
    };
    let columns = &["count", "total_ms", "p50_ms", "p99_ms", "max_ms", "marker"];
    answer.rows(Rows::new("markers", columns, context.limit, &context.view.markers(), row));
    answer
}

/// The CPU use over time, in as many parts as the limit of rows.
pub(super) fn timeline(context: &QueryContext<'_>) -> Answer {
    let timeline = context.view.thread_timeline(context.limit);
    let length = timeline.end_ns.saturating_sub(timeline.start_ns) as f64 / context.limit as f64;
    let part = |part: usize| {
        let used: u64 =
            timeline.rows.iter().map(|thread| thread.parts_ns.get(part).copied().unwrap_or(0)).sum();
        let begin = timeline.start_ns + (part as f64 * length) as u64;
        let busiest =
            timeline.rows.iter().max_by_key(|thread| thread.parts_ns.get(part)).filter(|_| used > 0);
        [
            milliseconds(begin),
            milliseconds(begin + length as u64),
            json!((used as f64 / length.max(1.0) * 100.0).round() / 100.0),
            json!(busiest.map(|thread| format!("t-{}", thread.thread.index()))),
            json!(busiest.map(|thread| thread.name)),
        ]
    };
    let parts: Vec<_> = (0..context.limit).map(part).collect();
    let columns = &["start_ms", "end_ms", "cpus", "busiest_handle", "busiest_thread"];
    let mut answer = Answer::default();
    answer.rows(Rows::new("parts", columns, context.limit, &parts, |part| part.to_vec()));
    answer
}
