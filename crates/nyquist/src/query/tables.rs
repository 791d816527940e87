//! Queries about threads, libs, markers and times.

use super::answer::Answer;
use super::context::QueryContext;
use nyquist_analysis::schema::{List, ThreadRow, TimelinePart};

/// The threads by time.
pub(super) fn threads(context: &QueryContext<'_>) -> Answer {
    let mut answer = context.answer();
    add_threads(context, &mut answer, context.limit);
    answer
}

/// Adds the first threads.
pub(super) fn add_threads(context: &QueryContext<'_>, answer: &mut Answer, limit: usize) {
    let columns = context.columns(
        &["handle", "total_share", "total_ms", "samples", "tid", "pid", "process", "thread"],
        &["handle", "total_share", "total", "samples", "tid", "pid", "process", "thread"],
    );
    let mut threads = context.view.by_thread();
    threads.retain(|thread| thread.samples > 0);
    let list: List<ThreadRow<'_>> =
        List::new("thread", "threads", limit, &threads, |thread| context.rows.thread(thread));
    answer.list(&list, columns);
}

/// The libs by time.
pub(super) fn libs(context: &QueryContext<'_>) -> Answer {
    let mut answer = context.answer();
    let columns = context.columns(
        &["self_share", "self_ms", "total_share", "path", "lib"],
        &["self_share", "self", "total_share", "path", "lib"],
    );
    let libs = context.view.by_lib();
    answer.list(&List::new("lib", "libs", context.limit, &libs, |lib| context.rows.lib(lib)), columns);
    answer
}

/// The markers by kind.
pub(super) fn markers(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    let columns = &["count", "total_ms", "p50_ms", "p99_ms", "max_ms", "marker"];
    let kinds = context.view.markers();
    answer.list(
        &List::new("marker", "markers", context.limit, &kinds, |kind| context.rows.marker(kind)),
        columns,
    );
    answer
}

/// The CPU use over time, in as many parts as the limit of rows.
pub(super) fn timeline(context: &QueryContext<'_>) -> Answer {
    let mut answer = Answer::default();
    let timeline = context.view.thread_timeline(context.limit);
    let parts: Vec<_> = (0..context.limit).collect();
    let part = |&part: &usize| TimelinePart::of(&timeline, part, context.limit);
    let columns = &["start_ms", "end_ms", "cpus", "busiest_handle", "busiest_thread"];
    answer.list(&List::new("part", "parts", context.limit, &parts, part), columns);
    answer
}
