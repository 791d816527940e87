//! Checks threads, their samples and markers, and the counters.

use std::collections::HashMap;

use serde_json::Value;

use super::check_tables::{CheckedTable, TableSizes, check_code_tables};
use super::checker::{Checker, Context};
use super::subset::is_interned;
use crate::counter::{CounterGraph, GraphColor};
use crate::marker::MarkerFormat;

/// The members of a thread that are shared since version 60.
const CODE_TABLES: [&str; 6] =
    ["stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "stringArray"];

/// Checks `threads`. In version 49 each has its own tables; since 66 they refer to the shared ones.
pub(super) fn check_threads(
    checker: &mut Checker,
    profile: &Value,
    context: &Context<'_>,
    shared: Option<&TableSizes>,
) {
    let threads = checker.array("", profile, "threads");
    for (index, thread) in threads.iter().enumerate() {
        let path = format!("threads[{index}]");
        check_members(checker, &path, thread);
        let sizes = match shared {
            Some(sizes) => {
                let own = CODE_TABLES.iter().find(|&&table| thread.get(table).is_some());
                checker.rule(own.is_none(), &path, "has a table that version 66 shares");
                *sizes
            }
            None => check_code_tables(checker, &path, thread, context),
        };
        check_samples(checker, &path, thread, sizes, context.is_v66);
        check_weight_type(checker, &path, profile, &thread["samples"]);
        check_end(checker, &path, profile, &thread["samples"]);
        check_markers(checker, &path, thread, sizes, context);
    }
    check_main_threads(checker, threads);
}

fn check_members(checker: &mut Checker, path: &str, thread: &Value) {
    let is_time_or_null: fn(&Value) -> bool = |value| value.is_number() || value.is_null();
    checker.members(
        path,
        thread,
        &[
            ("processType", "a string", Value::is_string),
            ("processStartupTime", "a time", Value::is_number),
            ("processShutdownTime", "a time or null", is_time_or_null),
            ("registerTime", "a time", Value::is_number),
            ("unregisterTime", "a time or null", is_time_or_null),
            ("pausedRanges", "an array", Value::is_array),
            ("name", "a string", Value::is_string),
            ("isMainThread", "a boolean", Value::is_boolean),
            ("pid", "a string", Value::is_string),
            ("tid", "a number or a string", |value| value.is_number() || value.is_string()),
        ],
    );
    for (start, end) in [("processStartupTime", "processShutdownTime"), ("registerTime", "unregisterTime")] {
        let (start, end) = (thread[start].as_f64(), thread[end].as_f64());
        let is_ordered = start.zip(end).is_none_or(|(start, end)| start <= end);
        checker.rule(is_ordered, path, "ends before it begins");
    }
}

fn check_main_threads(checker: &mut Checker, threads: &[Value]) {
    let mut mains: HashMap<&str, usize> = HashMap::new();
    for thread in threads {
        *mains.entry(thread["pid"].as_str().unwrap_or_default()).or_default() +=
            usize::from(thread["isMainThread"] == true);
    }
    let wrong = mains.iter().find(|(_, mains)| **mains != 1);
    if let Some((pid, mains)) = wrong {
        checker.violation("threads", format!("has {mains} main threads of the process {pid}"));
    }
}

/// Weights are numbers of samples, or of bytes if the profile counts bytes.
fn check_weight_type(checker: &mut Checker, path: &str, profile: &Value, samples: &Value) {
    let counts_bytes = profile["meta"]["nyquist"]["measure"]["unit"] == "bytes";
    let expected = if counts_bytes { "bytes" } else { "samples" };
    let path = format!("{path}.samples.weightType");
    checker.rule(samples["weightType"] == expected, path, &format!("is not {expected:?}"));
}

fn check_samples(checker: &mut Checker, path: &str, thread: &Value, sizes: TableSizes, is_v66: bool) {
    let samples = CheckedTable::new(checker, path, thread, "samples");
    samples.optional_indexes(checker, "stack", sizes.stacks);
    check_times(checker, &samples, is_v66);
    // The readers of version 49 support only integers, and no null.
    let is_count = |_: usize, value: &Value| if is_v66 { value.is_number() } else { value.is_u64() };
    if samples.has("weight") || !is_v66 {
        samples.column(checker, "weight", "a number", is_count);
    }
    if samples.has("threadCPUDelta") {
        samples.column(checker, "threadCPUDelta", "a number not below 0", |row, value| {
            is_count(row, value) && value.as_f64().is_some_and(|delta| delta >= 0.0)
                || (is_v66 && value.is_null())
        });
    }
}

/// Times must not decrease.
fn check_times(checker: &mut Checker, table: &CheckedTable<'_>, is_v66: bool) {
    let is_time = |value: &Value| value.as_f64().is_some_and(|time| time >= 0.0);
    if is_v66 && table.has("timeDeltas") {
        table.column(checker, "timeDeltas", "a difference not below 0", |_, value| is_time(value));
    } else {
        table.column(checker, "time", "a time not before the row above", |row, value| {
            let before = if row == 0 { None } else { table.at("time", row - 1).as_f64() };
            is_time(value) && value.as_f64() >= before
        });
    }
}

/// The front end shows the times from `profilingStartTime` up to, but not including, `profilingEndTime`.
fn check_end(checker: &mut Checker, path: &str, profile: &Value, samples: &Value) {
    let Some(end) = profile["meta"]["profilingEndTime"].as_f64() else { return };
    let numbers = |column: &str| samples[column].as_array().into_iter().flatten().filter_map(Value::as_f64);
    let last =
        numbers("timeDeltas").reduce(|time, delta| time + delta).or_else(|| numbers("time").next_back());
    let is_shown = last.is_none_or(|last| last < end);
    checker.rule(
        is_shown,
        format!("{path}.samples"),
        "has a sample that is not before meta.profilingEndTime",
    );
}

fn check_markers(
    checker: &mut Checker,
    path: &str,
    thread: &Value,
    sizes: TableSizes,
    context: &Context<'_>,
) {
    let markers = CheckedTable::new(checker, path, thread, "markers");
    markers.indexes(checker, "name", sizes.strings);
    markers.indexes(checker, "category", context.categories.len().min(256));
    markers.column(checker, "phase", "a phase from 0 to 3", |_, value| {
        value.as_u64().is_some_and(|phase| phase < 4)
    });
    for time in ["startTime", "endTime"] {
        markers.column(checker, time, "a time or null", |_, value| value.is_null() || value.is_number());
    }
    markers.rows(checker, "has times that do not fit its phase", |row| {
        let (start, end) = (markers.at("startTime", row).as_f64(), markers.at("endTime", row).as_f64());
        match markers.at("phase", row).as_u64() {
            Some(0 | 2) => start.is_some(),
            Some(1) => start.zip(end).is_some_and(|(start, end)| start <= end),
            _ => end.is_some(),
        }
    });
    markers.column(checker, "data", "null or an object of a known type with a valid cause", |_, data| {
        data.is_null() || (has_known_type(data, context) && has_valid_cause(data, sizes.stacks))
    });
    markers.column(checker, "data", "data whose fields fit their formats", |_, data| {
        fits_schema(data, context, sizes.strings)
    });
}

fn has_known_type(data: &Value, context: &Context<'_>) -> bool {
    data["type"].as_str().is_some_and(|name| name.is_empty() || context.schemas.contains_key(name))
}

fn has_valid_cause(data: &Value, stacks: usize) -> bool {
    data.get("cause").is_none_or(|cause| cause["stack"].as_u64().is_some_and(|stack| stack < stacks as u64))
}

fn fits_schema(data: &Value, context: &Context<'_>, strings: usize) -> bool {
    let Some(fields) = data["type"].as_str().and_then(|name| context.schemas.get(name)) else { return true };
    fields.iter().all(|(key, &format)| data.get(key).is_none_or(|value| fits_format(value, format, strings)))
}

fn fits_format(value: &Value, format: MarkerFormat, strings: usize) -> bool {
    match format {
        _ if is_interned(format) => value.as_u64().is_some_and(|index| index < strings as u64),
        MarkerFormat::Url | MarkerFormat::FilePath | MarkerFormat::SanitizedString | MarkerFormat::String => {
            value.is_string()
        }
        MarkerFormat::Pid | MarkerFormat::Tid => value.is_number() || value.is_string(),
        MarkerFormat::List => value.is_array() || value.is_string(),
        _ => value.is_number(),
    }
}

/// Checks `counters`, which are optional.
pub(super) fn check_counters(checker: &mut Checker, profile: &Value, context: &Context<'_>) {
    if profile.get("counters").is_none() {
        return;
    }
    for (index, counter) in checker.array("", profile, "counters").iter().enumerate() {
        let path = format!("counters[{index}]");
        checker.members(
            &path,
            counter,
            &[
                ("name", "a string", Value::is_string),
                ("category", "a string", Value::is_string),
                ("description", "a string", Value::is_string),
                ("pid", "a string", Value::is_string),
                ("mainThreadIndex", "an index", Value::is_u64),
            ],
        );
        let thread = &profile["threads"][counter["mainThreadIndex"].as_u64().unwrap_or(u64::MAX) as usize];
        let is_main = thread["isMainThread"] == true && thread["pid"] == counter["pid"];
        checker.rule(is_main, format!("{path}.mainThreadIndex"), "is not the main thread of its pid");
        let samples = CheckedTable::new(checker, &path, counter, "samples");
        check_times(checker, &samples, context.is_v66);
        samples.column(checker, "count", "a number", |_, value| value.is_number());
        if samples.has("number") {
            samples.column(checker, "number", "a number", |_, value| value.is_number());
        }
        if context.is_v66 {
            check_display(checker, &path, counter);
        }
    }
}

fn check_display(checker: &mut Checker, path: &str, counter: &Value) {
    checker.members(
        &format!("{path}.display"),
        &counter["display"],
        &[
            ("graphType", "a kind of graph", |value| {
                value.as_str().and_then(CounterGraph::from_name).is_some()
            }),
            ("unit", "a string", Value::is_string),
            ("color", "a colour of graphs", |value| value.as_str().and_then(GraphColor::from_name).is_some()),
            ("markerSchemaLocation", "a string or null", |value| value.is_string() || value.is_null()),
            ("sortWeight", "a number", Value::is_number),
            ("label", "a string", Value::is_string),
            ("tooltipRows", "an array", Value::is_array),
        ],
    );
    let rows = counter["display"]["tooltipRows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let holds = rows.iter().all(|row| row["type"] == "separator" || is_value_row(row));
    checker.rule(holds, format!("{path}.display.tooltipRows"), "has a row that the front end does not know");
}

/// Whether a row of a counter's tooltip shows a value with a source and a unit that the front end knows.
fn is_value_row(row: &Value) -> bool {
    /// The sources of values.
    const SOURCES: [&str; 9] = [
        "count",
        "rate",
        "cpu-ratio",
        "accumulated",
        "count-range",
        "selection-total",
        "selection-rate",
        "committed-range-total",
        "sample-number",
    ];
    /// The units of values.
    const UNITS: [&str; 4] = ["bytes", "bytes-per-second", "percent", "number"];
    let is_one_of = |value: &Value, names: &[&str]| value.as_str().is_some_and(|name| names.contains(&name));
    row["type"] == "value"
        && is_one_of(&row["source"], &SOURCES)
        && is_one_of(&row["format"]["unit"], &UNITS)
        && row["label"].is_string()
}
