//! Writes threads, with their samples and markers, and counters.

use std::io::Write;

use super::FormatVersion;
use super::exact_rows::exact_rows;
use super::first_view::shows_markers;
use super::idle_rows::{IdleRows, is_idle_row};
use super::json::JsonWriter;
use super::native_allocations::write_native_allocations;
use super::subset::{Subset, is_interned};
use super::wait_color::{COLOR_FIELD, color_of, has_colors};
use super::write_tables::{write_code_tables, write_string_array};
use crate::counter::{Counter, CounterDisplay, CounterGraph, CounterSample};
use crate::marker::{Marker, MarkerField, MarkerTiming, MarkerValue};
use crate::measure::Unit;
use crate::meta::Meta;
use crate::profile::Profile;
use crate::sample::Sample;
use crate::thread::Thread;

/// Writes an element of `threads` with that row name. In version 49 it contains the tables of `subset`.
pub(super) fn write_thread<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    (thread, row_name): (&Thread, &str),
    version: FormatVersion,
) {
    let process = profile.process(thread.process);
    json.object(|json| {
        json.key("processType").string("default");
        json.key("processStartupTime").milliseconds(process.start);
        write_time(json.key("processShutdownTime"), process.end.map(|end| end.max(process.start)));
        json.key("registerTime").milliseconds(thread.start);
        write_time(json.key("unregisterTime"), thread.end.map(|end| end.max(thread.start)));
        json.null_column("pausedRanges", 0);
        json.key("name").string(row_name);
        if row_name != thread.name {
            json.key(OWN_NAME).string(&thread.name);
        }
        json.key("isMainThread").boolean(thread.is_main);
        json.key("processName").string(&process.name);
        json.key("pid").string(&process.pid);
        json.key("tid").string(&thread.tid);
        if shows_markers(profile, thread) {
            json.key("showMarkersInTimeline").boolean(true);
        }
        json.key("samples");
        let meta = profile.meta();
        if meta.has_exact_times {
            let rows = || exact_rows(&thread.samples, meta.interval);
            write_samples(json, subset, &rows, meta, version);
        } else {
            let interval = Some(meta.interval).filter(|_| meta.has_cpu_deltas);
            let rows = IdleRows::new(&thread.samples, thread.start, interval);
            write_samples(json, subset, &|| rows.iter(), meta, version);
        }
        json.key("markers");
        write_markers(json, profile, subset, &thread.markers);
        write_native_allocations(json, profile, subset, thread);
        if version == FormatVersion::V49 {
            write_code_tables(json, profile, subset, version);
            write_string_array(json, profile, subset);
        }
    });
}

/// The member with the thread's name, if its row has another name.
const OWN_NAME: &str = "nyquistName";

/// The column with the weights of samples off the CPU.
const OFF_CPU_WEIGHT: &str = "nyquistOffCpuWeight";

fn write_samples<W: Write, Rows: Iterator<Item = Sample>>(
    json: &mut JsonWriter<W>,
    subset: &Subset<'_>,
    samples: &dyn Fn() -> Rows,
    meta: &Meta,
    version: FormatVersion,
) {
    // The front end shows bytes as bytes, and everything else as samples.
    let (weight_type, unit) = match meta.measure.unit {
        Unit::Bytes => ("bytes", meta.interval),
        Unit::Time | Unit::Count => ("samples", 1),
    };
    let weight = |sample: &Sample| cpu_weight(sample).saturating_mul(unit);
    json.object(|json| {
        json.column("stack", samples(), |json, sample| {
            let waits = sample.off_cpu || is_idle_row(&sample);
            json.optional(
                sample.stack.map(|id| if waits { subset.idle_stack(id) } else { subset.stack(id) }),
            );
        });
        write_times(json, samples().map(|sample| sample.time), version);
        // Weights that are all 1 may be left out, but the readers of version 49 require the column.
        if version == FormatVersion::V66 && samples().all(|sample| weight(&sample) == 1) {
            json.key("weight").null();
        } else {
            json.column("weight", samples(), |json, sample| json.integer(weight(&sample)));
        }
        // An extension that the front end ignores: its own weights are CPU time.
        if samples().any(|sample| sample.off_cpu) {
            json.column(OFF_CPU_WEIGHT, samples(), |json, sample| {
                json.integer(if sample.off_cpu { sample.weight } else { 0 });
            });
        }
        json.key("weightType").string(weight_type);
        if meta.has_cpu_deltas {
            json.column("threadCPUDelta", samples(), |json, sample| json.integer(sample.cpu_delta));
        }
        json.key("length").integer(samples().count() as u64);
    });
}

/// The weight that counts as CPU time.
fn cpu_weight(sample: &Sample) -> u64 {
    if sample.off_cpu { 0 } else { sample.weight }
}

/// Times that never decrease; as differences since version 50.
fn write_times<W: Write>(json: &mut JsonWriter<W>, times: impl Iterator<Item = u64>, version: FormatVersion) {
    match version {
        FormatVersion::V49 => json.column("time", times, JsonWriter::milliseconds),
        FormatVersion::V66 => {
            let mut last = 0;
            json.column("timeDeltas", times, |json, time| {
                json.milliseconds(time.saturating_sub(last));
                last = time;
            });
        }
    }
}

fn write_markers<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    markers: &[Marker],
) {
    json.object(|json| {
        json.column("data", markers, |json, marker| write_data(json, profile, subset, marker));
        json.column("name", markers, |json, marker| json.integer(subset.string(marker.name).into()));
        json.column("startTime", markers, |json, marker| write_time(json, start_time(marker.timing)));
        json.column("endTime", markers, |json, marker| write_time(json, end_time(marker.timing)));
        json.column("phase", markers, |json, marker| json.integer(phase(marker.timing)));
        json.column("category", markers, |json, marker| {
            json.integer(u8::try_from(marker.category.index()).unwrap_or_default().into());
        });
        json.key("length").integer(markers.len() as u64);
    });
}

fn write_time<W: Write>(json: &mut JsonWriter<W>, time: Option<u64>) {
    match time {
        Some(time) => json.milliseconds(time),
        None => json.null(),
    }
}

fn start_time(timing: MarkerTiming) -> Option<u64> {
    match timing {
        MarkerTiming::Instant(time) | MarkerTiming::Interval(time, _) | MarkerTiming::IntervalStart(time) => {
            Some(time)
        }
        MarkerTiming::IntervalEnd(_) => None,
    }
}

fn end_time(timing: MarkerTiming) -> Option<u64> {
    match timing {
        MarkerTiming::Interval(start, end) => Some(end.max(start)),
        MarkerTiming::IntervalEnd(time) => Some(time),
        MarkerTiming::Instant(_) | MarkerTiming::IntervalStart(_) => None,
    }
}

fn phase(timing: MarkerTiming) -> u64 {
    match timing {
        MarkerTiming::Instant(_) => 0,
        MarkerTiming::Interval(..) => 1,
        MarkerTiming::IntervalStart(_) => 2,
        MarkerTiming::IntervalEnd(_) => 3,
    }
}

fn write_data<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, subset: &Subset<'_>, marker: &Marker) {
    let schema = marker.schema.map(|schema| profile.marker_schema(schema));
    if schema.is_none() && marker.stack.is_none() {
        return json.null();
    }
    json.object(|json| {
        // The front end requires a type if there is data. A name without a schema is a type without
        // fields.
        json.key("type").string(schema.map_or("", |schema| &schema.name));
        if let Some(stack) = marker.stack {
            json.key("cause").object(|json| json.key("stack").integer(subset.stack(stack).into()));
        }
        if schema.is_some_and(has_colors) {
            json.key(COLOR_FIELD).string(color_of(profile, marker));
        }
        let fields = schema.map_or(&[][..], |schema| &schema.fields);
        for (field, value) in fields.iter().zip(&marker.values) {
            write_field(json, profile, subset, field, *value);
        }
    });
}

fn write_field<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    field: &MarkerField,
    value: MarkerValue,
) {
    if MarkerField::RESERVED_KEYS.contains(&field.key.as_str()) {
        return;
    }
    match value {
        MarkerValue::String(id) if is_interned(field.format) => {
            json.key(&field.key).integer(subset.string(id).into());
        }
        MarkerValue::String(id) => json.key(&field.key).string(profile.string(id)),
        // In a field of string indexes, a number would be read as an index.
        MarkerValue::Integer(value) if !is_interned(field.format) => json.key(&field.key).signed(value),
        MarkerValue::Number(value) if !is_interned(field.format) && value.is_finite() => {
            json.key(&field.key).number(value);
        }
        _ => {}
    }
}

/// Writes an element of `counters`.
pub(super) fn write_counter<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    counter: &Counter,
    main_thread: usize,
    version: FormatVersion,
) {
    json.object(|json| {
        json.key("name").string(&counter.name);
        json.key("category").string(&counter.category);
        json.key("description").string(&counter.description);
        json.key("pid").string(&profile.process(counter.process).pid);
        json.key("mainThreadIndex").integer(main_thread as u64);
        json.key("samples");
        write_counter_samples(json, &counter.samples, version);
        match version {
            FormatVersion::V49 => json.key("color").string(counter.display.color.as_str()),
            FormatVersion::V66 => write_display(json, counter),
        }
    });
}

fn write_counter_samples<W: Write>(
    json: &mut JsonWriter<W>,
    samples: &[CounterSample],
    version: FormatVersion,
) {
    json.object(|json| {
        write_times(json, samples.iter().map(|sample| sample.time), version);
        json.column("count", samples, |json, sample| json.number(sample.delta));
        if samples.iter().any(|sample| sample.operations.is_some()) {
            json.column("number", samples, |json, sample| {
                json.integer(sample.operations.unwrap_or_default().into());
            });
        }
        json.key("length").integer(samples.len() as u64);
    });
}

fn write_display<W: Write>(json: &mut JsonWriter<W>, counter: &Counter) {
    let display = &counter.display;
    json.key("display").object(|json| {
        json.key("graphType").string(display.graph.as_str());
        json.key("unit").string(&display.unit);
        json.key("color").string(display.color.as_str());
        match &display.marker_schema_location {
            Some(location) => json.key("markerSchemaLocation").string(location),
            None => json.key("markerSchemaLocation").null(),
        }
        json.key("sortWeight").signed(display.sort_weight.into());
        json.key("label").string(&display.label);
        json.column("tooltipRows", tooltip_rows(display), write_tooltip_row);
    });
}

/// A row of a counter's tooltip: the source of its value, its unit, and its label.
type TooltipRow<'a> = (&'static str, &'static str, &'a str);

/// The tooltip of a counter's graph. A rate is in units per millisecond, so milliseconds of
/// CPU time give a share of one CPU.
fn tooltip_rows(display: &CounterDisplay) -> Vec<TooltipRow<'_>> {
    const IN_ALL: &str = "in the visible range";
    let label = display.label.as_str();
    match (display.graph, display.unit.as_str()) {
        (CounterGraph::Accumulated, "bytes") => {
            vec![("accumulated", "bytes", label), ("count-range", "bytes", "range in the graph")]
        }
        (CounterGraph::Accumulated, _) => vec![("accumulated", "number", label)],
        (CounterGraph::Rate, "bytes") => {
            vec![("rate", "bytes-per-second", label), ("committed-range-total", "bytes", IN_ALL)]
        }
        (CounterGraph::Rate, "ms") => vec![("rate", "percent", label)],
        (CounterGraph::Rate, _) => {
            vec![("count", "number", label), ("committed-range-total", "number", IN_ALL)]
        }
    }
}

fn write_tooltip_row<W: Write>(json: &mut JsonWriter<W>, (source, unit, label): TooltipRow<'_>) {
    json.object(|json| {
        json.key("type").string("value");
        json.key("source").string(source);
        json.key("format").object(|json| json.key("unit").string(unit));
        json.key("label").string(label);
    });
}
