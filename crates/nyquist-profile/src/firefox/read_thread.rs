//! Reads threads and counters.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::exact_rows::sample_of_exact_row;
use super::idle_rows::is_idle_row;
use super::json::MAX_SAFE_INTEGER;
use super::raw::{
    RawCounter, RawCounterSamples, RawDisplay, RawIndex, RawMarkers, RawNumber, RawSamples, RawTables,
    RawThread,
};
use super::read_error::ReadError;
use super::read_meta::{CpuUnit, nanoseconds};
use super::read_tables::{SharedTables, StringArray, TableReader, add_libs};
use super::subset::is_interned;
use crate::builder::ProfileBuilder;
use crate::counter::{Counter, CounterDisplay, CounterGraph, CounterSample, GraphColor};
use crate::id::{CategoryId, LibId, MarkerSchemaId, ProcessIndex, StackId, StringId, ThreadIndex};
use crate::marker::{Marker, MarkerField, MarkerTiming, MarkerValue};
use crate::measure::Unit;
use crate::sample::Sample;
use crate::samples::Samples;
use crate::thread::{Process, Thread};

/// The processes read so far, by the pid in the file.
#[derive(Default)]
pub(super) struct Processes(FxHashMap<String, ProcessIndex>);

impl Processes {
    /// The process of a thread. The process's first thread determines its properties.
    fn of_thread(&mut self, builder: &mut ProfileBuilder, raw: &RawThread) -> ProcessIndex {
        *self.0.entry(raw.pid.text.clone()).or_insert_with(|| {
            builder.add_process(Process {
                pid: raw.pid.text.clone(),
                name: raw.process_name.clone().unwrap_or_default(),
                start: raw.process_startup_time.map_or(0, nanoseconds),
                end: raw.process_shutdown_time.map(nanoseconds),
            })
        })
    }
}

/// Reads threads into a builder.
pub(super) struct ThreadReader<'a> {
    pub(super) builder: &'a mut ProfileBuilder,
    pub(super) schemas: &'a FxHashMap<String, MarkerSchemaId>,
    pub(super) cpu_unit: CpuUnit,
}

/// The tables that the samples and markers of a thread refer to.
struct ReferredTables<'a> {
    stacks: &'a [StackId],
    strings: &'a mut StringArray,
}

impl ThreadReader<'_> {
    /// Reads one thread with its own tables.
    pub(super) fn read(
        &mut self,
        mut raw: RawThread,
        libs: &[LibId],
        shared: &mut SharedTables,
        processes: &mut Processes,
    ) -> Result<(), ReadError> {
        let thread = self.add_thread(&raw, processes);
        let own_libs = add_libs(self.builder, std::mem::take(&mut raw.libs));
        let libs = if own_libs.is_empty() { libs } else { &own_libs };
        let tables = take_tables(&mut raw);
        let (own_stacks, mut own_strings) = shared.read_thread(self.builder, tables, libs)?;
        let strings = own_strings.as_mut().unwrap_or(&mut shared.strings);
        let mut refers = ReferredTables { stacks: shared.stacks.as_deref().unwrap_or(&own_stacks), strings };
        self.read_samples(thread, raw.samples, &refers)?;
        self.read_markers(thread, raw.markers, &mut refers)
    }

    fn add_thread(&mut self, raw: &RawThread, processes: &mut Processes) -> ThreadIndex {
        let process = processes.of_thread(self.builder, raw);
        // Before version 46, the name and the ids determined the main thread.
        let is_main = raw.is_main_thread.unwrap_or_else(|| {
            raw.name == "GeckoMain" || !raw.pid.was_number || raw.pid.text == raw.tid.text
        });
        let thread =
            Thread::new(process, raw.tid.text.as_str(), raw.nyquist_name.as_ref().unwrap_or(&raw.name));
        self.builder.add_thread(Thread {
            start: raw.register_time.map_or(0, nanoseconds),
            end: raw.unregister_time.map(nanoseconds),
            is_main,
            ..thread
        })
    }

    fn read_samples(
        &mut self,
        thread: ThreadIndex,
        raw: RawSamples,
        refers: &ReferredTables<'_>,
    ) -> Result<(), ReadError> {
        let meta = self.builder.profile().meta();
        let is_in_bytes = meta.measure.unit == Unit::Bytes;
        match raw.weight_type.as_deref() {
            None | Some("samples") => {}
            // This program's profiles include the number of bytes of a weight of 1.
            Some("bytes") if is_in_bytes => {}
            Some("bytes") => return Err(ReadError::Unsupported("its samples weigh bytes, not time")),
            Some(_) => {
                return Err(ReadError::Unsupported("its samples weigh durations, not sampling intervals"));
            }
        }
        let table = TableReader::new("samples", raw.length, raw.stack.len());
        let stacks = table.column("stack", raw.stack)?;
        let times = read_times(table, raw.time, raw.time_deltas)?;
        let weights = table.optional("weight", raw.weight)?;
        let deltas = table.optional("threadCPUDelta", raw.thread_cpu_delta)?;
        let waits = table.optional("nyquistOffCpuWeight", raw.off_cpu_weight)?;
        let unit = if is_in_bytes { meta.interval.max(1) as f64 } else { 1.0 };
        let mut last_time = None;
        let mut samples = Samples::with_capacity(stacks.len());
        for (row, (&stack, &time)) in stacks.iter().zip(&times).enumerate() {
            let weight = weights.as_ref().and_then(|weights| weights.get(row));
            let delta = deltas.as_ref().and_then(|deltas| deltas.get(row));
            let wait = waits.as_ref().and_then(|waits| waits.get(row)).filter(|wait| wait.0 > 0.0);
            // A missing delta counts as a whole CPU.
            let elapsed = last_time.map_or(0, |last| time.saturating_sub(last));
            let sample = Sample {
                time,
                cpu_delta: self.cpu_unit.map_or(0, |unit| read_delta(delta, unit, elapsed)),
                stack: table.get_optional("stack", row, Some(stack), refers.stacks)?,
                weight: read_weight(wait.or(weight), unit)?,
                off_cpu: wait.is_some(),
            };
            last_time = Some(time);
            if meta.has_exact_times {
                samples.extend(sample_of_exact_row(sample, meta.interval));
            } else if self.cpu_unit.is_none() || !is_idle_row(&sample) {
                samples.push(sample);
            }
        }
        self.builder.thread_mut(thread).samples = samples;
        Ok(())
    }

    fn read_markers(
        &mut self,
        thread: ThreadIndex,
        raw: RawMarkers,
        refers: &mut ReferredTables<'_>,
    ) -> Result<(), ReadError> {
        let table = TableReader::new("markers", raw.length, raw.name.len());
        let names = table.column("name", raw.name)?;
        let data = table.column("data", raw.data)?;
        let starts = table.column("startTime", raw.start_time)?;
        let ends = table.column("endTime", raw.end_time)?;
        let phases = table.column("phase", raw.phase)?;
        let categories = table.column("category", raw.category)?;
        for (row, (data, &name)) in data.iter().zip(&names).enumerate() {
            let schema =
                data.get("type").and_then(Value::as_str).and_then(|name| self.schemas.get(name)).copied();
            let timing = read_timing(&starts, &ends, &phases, row)
                .ok_or_else(|| table.error("phase", Some(row), "does not fit its times"))?;
            let marker = Marker {
                name: refers.strings.get(self.builder, table, "name", row, name)?,
                timing,
                category: self.read_marker_category(table, row, &categories)?,
                schema,
                values: self.read_values(schema, data, refers.strings),
                stack: read_cause(table, row, data, refers.stacks)?,
            };
            self.builder.add_marker(thread, marker);
        }
        Ok(())
    }

    fn read_marker_category(
        &self,
        table: TableReader,
        row: usize,
        categories: &[RawIndex],
    ) -> Result<CategoryId, ReadError> {
        let index = categories.get(row).and_then(|category| category.get()).unwrap_or(0) as usize;
        let count = self.builder.profile().categories().len();
        if count == 0 {
            return Ok(CategoryId::from_index(0));
        }
        if index >= count {
            let problem = format!("is {index}, but its target has {count} rows");
            return Err(table.error("category", Some(row), problem));
        }
        Ok(CategoryId::from_index(index))
    }

    fn read_values(
        &mut self,
        schema: Option<MarkerSchemaId>,
        data: &Value,
        strings: &mut StringArray,
    ) -> Vec<MarkerValue> {
        let Some(schema) = schema else { return Vec::new() };
        let fields = self.builder.profile().marker_schema(schema).fields.clone();
        let values = fields.iter().map(|field| {
            read_value(self.builder, field, data.get(&field.key), |builder, index| {
                strings.find(builder, index)
            })
        });
        values.collect()
    }
}

/// The value of a marker's field; `string` looks up the index of a string in the file.
pub(super) fn read_value(
    builder: &mut ProfileBuilder,
    field: &MarkerField,
    value: Option<&Value>,
    string: impl FnOnce(&mut ProfileBuilder, u32) -> Option<StringId>,
) -> MarkerValue {
    match value {
        None | Some(Value::Null) => MarkerValue::Missing,
        Some(Value::Number(number)) if is_interned(field.format) => {
            let index = number.as_u64().and_then(|index| u32::try_from(index).ok());
            let string = index.and_then(|index| string(builder, index));
            string.map_or(MarkerValue::Missing, MarkerValue::String)
        }
        Some(Value::Number(number)) if !field.format.is_text() => number_value(number),
        Some(Value::String(text)) if field.format.takes_text() => {
            MarkerValue::String(builder.intern_string(text))
        }
        // Old profiles have numbers as text. Text that is no number cannot be shown as one.
        Some(Value::String(text)) => text.parse().as_ref().map_or(MarkerValue::Missing, number_value),
        Some(other) if field.format.takes_text() => {
            MarkerValue::String(builder.intern_string(&other.to_string()))
        }
        Some(_) => MarkerValue::Missing,
    }
}

/// An integer beyond those that are exact in JavaScript is what a large float was written as.
fn number_value(number: &serde_json::Number) -> MarkerValue {
    let exact = number.as_i64().filter(|integer| integer.unsigned_abs() <= MAX_SAFE_INTEGER);
    match (exact, number.as_f64()) {
        (Some(integer), _) => MarkerValue::Integer(integer),
        (None, Some(float)) => MarkerValue::Number(float),
        (None, None) => MarkerValue::Missing,
    }
}

fn take_tables(raw: &mut RawThread) -> RawTables {
    RawTables {
        stack_table: raw.stack_table.take(),
        frame_table: std::mem::take(&mut raw.frame_table),
        func_table: std::mem::take(&mut raw.func_table),
        resource_table: std::mem::take(&mut raw.resource_table),
        native_symbols: std::mem::take(&mut raw.native_symbols),
        string_array: std::mem::take(&mut raw.string_array),
        ..RawTables::default()
    }
}

/// The times in ns, from times in ms or from differences; a table has one of these.
fn read_times(
    table: TableReader,
    times: Option<Vec<RawNumber>>,
    deltas: Option<Vec<RawNumber>>,
) -> Result<Vec<u64>, ReadError> {
    if let Some(times) = table.optional("time", times)? {
        return Ok(times.iter().map(|time| nanoseconds(time.0)).collect());
    }
    match table.optional("timeDeltas", deltas)? {
        Some(deltas) => Ok(sum_deltas(&deltas)),
        None if table.length == 0 => Ok(Vec::new()),
        None => Err(table.error("time", None, "is missing")),
    }
}

/// The running sum of differences, in whole ns. The rounding error of a difference is added to the next one,
/// so that errors do not accumulate.
fn sum_deltas(deltas: &[RawNumber]) -> Vec<u64> {
    let mut time = 0_i64;
    let mut remainder = 0.0;
    let sum = deltas.iter().map(|delta| {
        let exact = delta.0 * 1e6 + remainder;
        let exact = if exact.is_finite() { exact } else { 0.0 };
        remainder = exact - exact.round();
        time = time.saturating_add(exact.round() as i64);
        u64::try_from(time).unwrap_or(0)
    });
    sum.collect()
}

/// The weight for a number of units.
fn read_weight(weight: Option<&RawNumber>, unit: f64) -> Result<u64, ReadError> {
    match weight {
        Some(weight) if weight.0 < 0.0 => Err(ReadError::Unsupported(
            "its samples have negative weights: it is the difference of two profiles",
        )),
        Some(weight) if !weight.0.is_nan() => Ok((weight.0 / unit).round() as u64),
        _ => Ok(1),
    }
}

fn read_delta(delta: Option<&RawNumber>, unit: f64, elapsed: u64) -> u64 {
    match delta {
        Some(delta) if !delta.0.is_nan() => (delta.0 * unit).round() as u64,
        _ => elapsed,
    }
}

fn read_timing(
    starts: &[RawNumber],
    ends: &[RawNumber],
    phases: &[RawIndex],
    row: usize,
) -> Option<MarkerTiming> {
    let time = |column: &[RawNumber]| {
        column.get(row).filter(|time| !time.0.is_nan()).map(|time| nanoseconds(time.0))
    };
    match phases.get(row).and_then(|phase| phase.get()) {
        Some(0) => Some(MarkerTiming::Instant(time(starts)?)),
        Some(1) => Some(MarkerTiming::Interval(time(starts)?, time(ends)?)),
        Some(2) => Some(MarkerTiming::IntervalStart(time(starts)?)),
        Some(3) => Some(MarkerTiming::IntervalEnd(time(ends)?)),
        _ => None,
    }
}

fn read_cause(
    table: TableReader,
    row: usize,
    data: &Value,
    stacks: &[StackId],
) -> Result<Option<StackId>, ReadError> {
    let Some(index) = data.get("cause").and_then(|cause| cause.get("stack")).filter(|index| !index.is_null())
    else {
        return Ok(None);
    };
    let stack = index.as_u64().and_then(|index| stacks.get(usize::try_from(index).ok()?));
    let problem =
        || table.error("data", Some(row), format!("has the stack {index}, but there are {}", stacks.len()));
    stack.copied().map(Some).ok_or_else(problem)
}

/// Reads a counter. A counter of a process without threads cannot be shown and is left out.
pub(super) fn read_counter(
    builder: &mut ProfileBuilder,
    raw: RawCounter,
    processes: &Processes,
) -> Result<(), ReadError> {
    let Some(&process) = processes.0.get(&raw.pid.text) else { return Ok(()) };
    let display = read_display(raw.display, &raw.name, &raw.category, raw.color.as_deref());
    let samples = raw.sample_groups.into_iter().next().map_or(raw.samples, |group| group.samples);
    let samples = read_counter_samples(samples)?;
    builder.add_counter(Counter {
        name: raw.name,
        category: raw.category,
        description: raw.description,
        process,
        display,
        samples,
    });
    Ok(())
}

fn read_counter_samples(raw: RawCounterSamples) -> Result<Vec<CounterSample>, ReadError> {
    let table = TableReader::new("counters.samples", raw.length, raw.count.len());
    let counts = table.column("count", raw.count)?;
    let times = read_times(table, raw.time, raw.time_deltas)?;
    let numbers = table.optional("number", raw.number)?;
    let samples = times.iter().zip(&counts).enumerate().map(|(row, (&time, count))| CounterSample {
        time,
        delta: if count.0.is_nan() { 0.0 } else { count.0 },
        operations: numbers.as_ref().and_then(|numbers| numbers.get(row)).map(|number| number.0 as u32),
    });
    Ok(samples.collect())
}

/// Before version 62, the front end chose the display of a counter by its category.
fn read_display(raw: Option<RawDisplay>, name: &str, category: &str, color: Option<&str>) -> CounterDisplay {
    let is_memory = category == "Memory";
    let raw = raw.unwrap_or_else(|| RawDisplay {
        graph_type: if is_memory { "line-accumulated" } else { "line-rate" }.into(),
        unit: if is_memory { "bytes" } else { "" }.into(),
        color: color.unwrap_or("grey").into(),
        marker_schema_location: is_memory.then(|| "timeline-memory".into()),
        sort_weight: 0.0,
        label: name.into(),
    });
    CounterDisplay {
        graph: CounterGraph::from_name(&raw.graph_type).unwrap_or(CounterGraph::Rate),
        unit: raw.unit,
        color: GraphColor::from_name(&raw.color).unwrap_or(GraphColor::Grey),
        marker_schema_location: raw.marker_schema_location,
        sort_weight: raw.sort_weight as i32,
        label: raw.label,
    }
}
