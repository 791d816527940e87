//! Waits of threads: the objects, the places, the threads that held the objects, and those that ended the
//! waits.

use super::context::{Report, TABLE_ROWS, more};
use super::markers::duration;
use crate::number::grouped;
use crate::text::{Cell, Column, Style, Table, Text, one_line};
use nyquist_analysis::WaitedFor;
use nyquist_profile::{Frame, FuncId, Profile, StackId, well_known};
use serde_json::{Value, json};
use std::cmp::Reverse;

pub(super) fn text(report: &Report<'_>) -> Text {
    let waits = report.view.waits();
    if waits.is_empty() {
        return "No waits were recorded: `nyquist record --off-cpu` records them.\n".into();
    }
    let limit = report.limit(TABLE_ROWS);
    let shown: Vec<_> = waits.iter().take(limit).collect();
    let are_known =
        [shown.iter().any(|wait| !wait.holders.is_empty()), shown.iter().any(|wait| !wait.wakers.is_empty())];
    let numbers = ["TOTAL", "COUNT", "MEDIAN", "LONGEST"].map(Column::Number);
    let threads = ["HELD BY", "WOKEN BY"].map(Column::Minor).into_iter().zip(are_known);
    let threads = threads.filter_map(|(column, is_known)| is_known.then_some(column));
    let things = [Column::Minor("WHICH"), Column::Main("WHERE")];
    let columns = numbers.into_iter().chain([Column::Minor("FOR")]).chain(threads).chain(things);
    let mut table = Table::new(columns.collect());
    for wait in shown {
        table.add(row(report, wait, are_known));
    }
    table.render(report.screen)
        + more(waits.len().saturating_sub(limit), "thing that was waited for", "things that were waited for")
}

/// A row, with the holding threads and the waking threads if their columns are shown.
fn row(report: &Report<'_>, wait: &WaitedFor<'_>, are_known: [bool; 2]) -> Vec<Cell> {
    let durations = wait.durations;
    let profile = report.view.profile();
    let place = places_text(report, &places(profile, wait));
    let first = |threads: &[(&str, u64)]| -> Cell {
        one_line(threads.first().map_or("", |(thread, _)| thread)).into_owned().into()
    };
    let numbers = [
        duration(durations.total_ns),
        grouped(durations.count),
        duration(durations.p50_ns),
        duration(durations.max_ns),
        one_line(wait.reason).into_owned(),
    ];
    let threads = [&wait.holders, &wait.wakers].into_iter().zip(are_known);
    let threads = threads.filter(|(_, is_known)| *is_known).map(|(threads, _)| first(threads));
    let which = Cell::new(one_line(wait.object.unwrap_or_default()).into_owned(), Style::Dim);
    let things = [which, place.into()];
    numbers.into_iter().map(Cell::from).chain(threads).chain(things).collect()
}

/// A function in which threads waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitPlace<'p> {
    pub(crate) func: FuncId,
    pub(crate) name: &'p str,
    /// The total time, in ns.
    pub(crate) time: u64,
}

/// The functions in which threads waited, the one with the longest time first.
pub(crate) fn places<'p>(profile: &'p Profile, wait: &WaitedFor<'_>) -> Vec<WaitPlace<'p>> {
    let mut places: Vec<WaitPlace<'_>> = Vec::new();
    for (stack, time) in &wait.stacks {
        let Some(func) = place(profile, *stack).map(|frame| frame.func) else { continue };
        let name = profile.func_name(func);
        match places.iter_mut().find(|known| known.name == name) {
            Some(known) => known.time = known.time.saturating_add(*time),
            None => places.push(WaitPlace { func, name, time: *time }),
        }
    }
    places.sort_by_key(|place| Reverse(place.time));
    places
}

/// The places in a few words. The time of each is there if there are several.
fn places_text(report: &Report<'_>, places: &[WaitPlace<'_>]) -> String {
    /// The most places that are named.
    const NAMED: usize = 3;
    if let [place] = places {
        return report.names.show(place.name);
    }
    let named = places.iter().take(NAMED);
    let named = named.map(|place| format!("{} {}", report.names.show(place.name), duration(place.time)));
    let more = Some(places.len().saturating_sub(NAMED)).filter(|more| *more > 0);
    named.chain(more.map(|more| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}

/// The place where a thread waits, for the programmer: the innermost function outside of the kernel and of
/// the language's libraries.
fn place(profile: &Profile, stack: StackId) -> Option<&Frame> {
    let lib = |frame: &Frame| profile.func(frame.func).lib.map_or("", |lib| &profile.lib(lib).name);
    // The names of the kernel and of its modules are in brackets.
    let is_kernels = |frame: &Frame| lib(frame).starts_with('[');
    let is_own = |frame: &&Frame| {
        let (name, lib) = (profile.func_name(frame.func), lib(frame));
        let is_of_language = ["std::", "core::", "<std::", "<core::", "__", "runtime."];
        let of_language = ["libc.so", "libc-", "libpthread", "ld-", "ld.so", "libstdc++"];
        !is_reason(name)
            && !is_of_language.iter().any(|start| name.starts_with(start))
            && !of_language.iter().any(|start| lib.starts_with(start))
            && !is_kernels(frame)
    };
    let innermost = || profile.stack_frames(stack).find(|it| !is_reason(profile.func_name(it.func)));
    let innermost_of_user = || {
        let mut frames = profile.stack_frames(stack);
        frames.find(|it| !is_reason(profile.func_name(it.func)) && !is_kernels(it))
    };
    profile.stack_frames(stack).find(is_own).or_else(innermost_of_user).or_else(innermost)
}

/// Whether a function is only the reason of a wait.
fn is_reason(name: &str) -> bool {
    name == well_known::RUNNABLE || well_known::wait_reason(name).is_some()
}

pub(super) fn json(report: &Report<'_>) -> Value {
    let waits = report.view.waits();
    let rows = waits.iter().take(report.limit(TABLE_ROWS));
    json!({ "wait_count": waits.len(), "waits": rows.map(|wait| wait_json(report, wait)).collect::<Vec<_>>() })
}

/// The number of stacks per object in the JSON.
const STACKS: usize = 5;

fn wait_json(report: &Report<'_>, wait: &WaitedFor<'_>) -> Value {
    let profile = report.view.profile();
    let frames = |stack: StackId| -> Vec<&str> {
        profile.stack_frames(stack).map(|frame| profile.func_name(frame.func)).collect()
    };
    let stack = |(stack, time): &(StackId, u64)| json!({ "total_ns": time, "frames": frames(*stack) });
    let place = |place: &WaitPlace<'_>| json!({ "function": place.name, "total_ns": place.time });
    let thread = |(thread, time): &(&str, u64)| json!({ "thread": thread, "total_ns": time });
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
        "held_by": wait.holders.iter().map(thread).collect::<Vec<_>>(),
        "woken_by": wait.wakers.iter().map(thread).collect::<Vec<_>>(),
        "places": places(profile, wait).iter().take(STACKS).map(place).collect::<Vec<_>>(),
        "stacks": wait.stacks.iter().take(STACKS).map(stack).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::Durations;
    use nyquist_profile::{Meta, ProfileBuilder};

    #[test]
    fn each_function_that_waited_is_a_place() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let [stop, other] = ["w_stop", "w_other"].map(|name| builder.intern_label(None, name, None));
        let [stopped, reading] = [(stop, "[waiting: child process]"), (other, "[waiting: child process]")]
            .map(|(within, reason)| builder.intern_label(Some(within), reason, None));
        let profile = builder.finish();
        let wait = WaitedFor {
            reason: "child process",
            object: None,
            process: "sh",
            durations: Durations {
                count: 3,
                total_ns: 929,
                min_ns: 200,
                p50_ns: 300,
                p90_ns: 429,
                p99_ns: 429,
                max_ns: 429,
            },
            holders: Vec::new(),
            wakers: Vec::new(),
            stacks: vec![(stopped, 300), (reading, 429), (stop, 200)],
        };
        let places: Vec<_> =
            places(&profile, &wait).into_iter().map(|place| (place.name, place.time)).collect();
        assert_eq!(places, [("w_stop", 500), ("w_other", 429)]);
    }
}
