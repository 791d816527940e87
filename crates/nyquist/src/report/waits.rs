//! What threads waited for, where, and which thread held it.

use super::context::{Report, TABLE_ROWS, more};
use super::markers::duration;
use crate::number::grouped;
use crate::text::{Cell, Column, Style, Table, Text, one_line};
use nyquist_analysis::WaitedFor;
use nyquist_profile::{Frame, Profile, StackId, well_known};
use serde_json::{Value, json};

pub(super) fn text(report: &Report<'_>) -> Text {
    let waits = report.view.waits();
    if waits.is_empty() {
        return "There are no waits: `nyquist record --off-cpu` records them.\n".into();
    }
    let limit = report.limit(TABLE_ROWS);
    let mut table = Table::new(vec![
        Column::Number("TOTAL"),
        Column::Number("COUNT"),
        Column::Number("MEDIAN"),
        Column::Number("LONGEST"),
        Column::Minor("FOR"),
        Column::Minor("HELD BY"),
        Column::Minor("WHICH"),
        Column::Main("WHERE"),
    ]);
    for wait in waits.iter().take(limit) {
        table.add(row(report, wait));
    }
    table.render(report.screen)
        + more(waits.len().saturating_sub(limit), "thing that was waited for", "things that were waited for")
}

fn row(report: &Report<'_>, wait: &WaitedFor<'_>) -> Vec<Cell> {
    let durations = wait.durations;
    let profile = report.view.profile();
    let place = wait.stacks.first().and_then(|(stack, _)| place(profile, *stack));
    let place = place.map(|frame| report.names.show(profile.func_name(frame.func)));
    vec![
        duration(durations.total_ns).into(),
        grouped(durations.count).into(),
        duration(durations.p50_ns).into(),
        duration(durations.max_ns).into(),
        one_line(wait.reason).into_owned().into(),
        one_line(wait.holders.first().map_or("", |(holder, _)| holder)).into_owned().into(),
        Cell::new(one_line(wait.object.unwrap_or_default()).into_owned(), Style::Dim),
        place.unwrap_or_default().into(),
    ]
}

/// Where a thread waits in the eyes of who wrote the program: the innermost function that is no part of the libraries of the language.
fn place(profile: &Profile, stack: StackId) -> Option<&Frame> {
    let is_own = |frame: &&Frame| {
        let name = profile.func_name(frame.func);
        let lib = profile.func(frame.func).lib.map_or("", |lib| &profile.lib(lib).name);
        let is_of_language = ["std::", "core::", "<std::", "<core::", "__", "runtime."];
        let of_language = ["libc.so", "libc-", "libpthread", "ld-", "ld.so", "[vdso]", "libstdc++"];
        !is_reason(name)
            && !is_of_language.iter().any(|start| name.starts_with(start))
            && !of_language.iter().any(|start| lib.starts_with(start))
    };
    let innermost = || profile.stack_frames(stack).find(|it| !is_reason(profile.func_name(it.func)));
    profile.stack_frames(stack).find(is_own).or_else(innermost)
}

/// Whether a function is none, and says what is waited for.
fn is_reason(name: &str) -> bool {
    name == well_known::RUNNABLE || well_known::wait_reason(name).is_some()
}

pub(super) fn json(report: &Report<'_>) -> Value {
    let waits = report.view.waits();
    let rows = waits.iter().take(report.limit(TABLE_ROWS));
    json!({ "wait_count": waits.len(), "waits": rows.map(|wait| wait_json(report, wait)).collect::<Vec<_>>() })
}

/// How many stacks of each thing that was waited for the JSON has.
const STACKS: usize = 5;

fn wait_json(report: &Report<'_>, wait: &WaitedFor<'_>) -> Value {
    let profile = report.view.profile();
    let frames = |stack: StackId| -> Vec<&str> {
        profile.stack_frames(stack).map(|frame| profile.func_name(frame.func)).collect()
    };
    let stack = |(stack, time): &(StackId, u64)| json!({ "total_ns": time, "frames": frames(*stack) });
    let holder = |(holder, time): &(&str, u64)| json!({ "thread": holder, "total_ns": time });
    json!({
        "reason": wait.reason,
        "object": wait.object,
        "process": wait.process,
        "count": wait.durations.count,
        "total_ns": wait.durations.total_ns,
        "p50_ns": wait.durations.p50_ns,
        "p90_ns": wait.durations.p90_ns,
        "p99_ns": wait.durations.p99_ns,
        "max_ns": wait.durations.max_ns,
        "held_by": wait.holders.iter().map(holder).collect::<Vec<_>>(),
        "stacks": wait.stacks.iter().take(STACKS).map(stack).collect::<Vec<_>>(),
    })
}
