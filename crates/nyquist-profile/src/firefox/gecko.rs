//! Profiles in Firefox's own form ("gecko profiles"), before the Firefox Profiler has processed them
//! (`src/types/gecko-profile.ts` and `src/profile-logic/process-profile.ts` of its repository).

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::raw::RawMeta;
use super::raw_gecko::{RawGeckoThread, RawMappedLib, RawProcess};
use super::read_error::{Inconsistency, ReadError};
use super::read_meta::{CpuUnit, nanoseconds, read_categories, read_marker_schemas, read_meta};
use super::read_tables::add_libs;
use super::read_thread::read_value;
use crate::builder::ProfileBuilder;
use crate::category::CategoryPair;
use crate::code::{Frame, Func, FuncKind, Source};
use crate::id::{CategoryId, FrameId, LibId, MarkerSchemaId, ProcessIndex, StackId};
use crate::marker::{Marker, MarkerTiming, MarkerValue};
use crate::profile::Profile;
use crate::sample::Sample;
use crate::thread::{Process, Thread};

/// The supported versions of the gecko format. The members that are read are the same in all of them.
pub(super) const VERSIONS: std::ops::RangeInclusive<u32> = 20..=40;

/// Makes a profile of a process and its child processes. Addresses remain without names.
pub(super) fn convert(raw_meta: RawMeta, root: RawProcess) -> Result<Profile, ReadError> {
    let (mut meta, cpu_unit) = read_meta(&raw_meta, &[]);
    meta.symbolicated = false;
    if meta.product.is_empty() {
        "Firefox".clone_into(&mut meta.product);
    }
    let mut builder = ProfileBuilder::without_categories(meta);
    read_categories(&mut builder, &raw_meta.categories);
    let schemas = read_marker_schemas(&mut builder, raw_meta.marker_schema);
    let mut open = vec![(root, 0.0)];
    while let Some((process, later)) = open.pop() {
        read_process(&mut builder, process.libs, process.threads, Times { later, cpu_unit }, &schemas)?;
        open.extend(process.processes.into_iter().map(|child| {
            let start = child.meta.as_ref().map_or(raw_meta.start_time, |meta| meta.start_time);
            (child, start - raw_meta.start_time)
        }));
    }
    Ok(builder.finish())
}

/// The kinds of markers, by name.
type Schemas = FxHashMap<String, MarkerSchemaId>;

/// How to read the times of a process.
#[derive(Clone, Copy)]
struct Times {
    /// The start of the process in ms after the profile's start. Its times are relative to this.
    later: f64,
    cpu_unit: CpuUnit,
}

impl Times {
    fn at(self, milliseconds: f64) -> u64 {
        nanoseconds(self.later + milliseconds)
    }
}

fn read_process(
    builder: &mut ProfileBuilder,
    libs: Vec<RawMappedLib>,
    threads: Vec<RawGeckoThread>,
    times: Times,
    schemas: &Schemas,
) -> Result<(), ReadError> {
    // A lib without a name is no file: it is the kernel's part of the process.
    let libs = libs.into_iter().filter(|mapped| !mapped.lib.name.is_empty());
    let (places, libs): (Vec<_>, Vec<_>) = libs.map(|it| ((it.start, it.end), it.lib)).unzip();
    let ids = add_libs(builder, libs);
    let mut mapped: Vec<_> =
        places.into_iter().zip(ids).map(|((start, end), id)| MappedLib { start, end, id }).collect();
    mapped.sort_by_key(|lib| lib.start);
    let mut process = None;
    for raw in threads {
        let owner = *process.get_or_insert_with(|| {
            let name = raw.process_name.clone().unwrap_or_else(|| raw.name.clone());
            builder.add_process(Process { pid: text(&raw.pid), name, ..Process::default() })
        });
        ThreadReader { builder, mapped: &mapped, times, schemas }.read(&raw, owner)?;
    }
    Ok(())
}

/// The CPU time of a thread that is not covered by samples yet, in ns. Firefox samples its threads by
/// wall-clock time. For each sample it records the thread's CPU time since the previous one. Our samples
/// stand for that time, in whole intervals. If it is 0, the thread waited.
#[derive(Default)]
struct CpuTime(u64);

impl CpuTime {
    /// Adds the used time, and removes whole intervals from it, rounded.
    fn take(&mut self, used: u64, interval: u64) -> u64 {
        let interval = interval.max(1);
        self.0 = self.0.saturating_add(used);
        let intervals = self.0.saturating_add(interval / 2) / interval;
        self.0 = self.0.saturating_sub(intervals.saturating_mul(interval));
        intervals
    }
}

struct MappedLib {
    start: u64,
    end: u64,
    id: LibId,
}

/// An id, which is a number or text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

struct ThreadReader<'a> {
    builder: &'a mut ProfileBuilder,
    mapped: &'a [MappedLib],
    times: Times,
    schemas: &'a Schemas,
}

impl ThreadReader<'_> {
    fn read(mut self, raw: &RawGeckoThread, process: ProcessIndex) -> Result<(), ReadError> {
        let frames = self.frames(raw)?;
        let stacks = self.stacks(raw, &frames)?;
        let mut thread = Thread::new(process, text(&raw.tid), raw.name.clone());
        thread.start = self.times.at(raw.register_time.unwrap_or(0.0));
        thread.end = raw.unregister_time.map(|time| self.times.at(time));
        thread.is_main = raw.name == "GeckoMain";
        let thread = self.builder.add_thread(thread);
        let mut used = CpuTime::default();
        for (row, cells) in raw.samples.data.iter().enumerate() {
            let stack = match raw.samples.index(cells, "stack") {
                Some(stack) => Some(*stacks.get(stack).ok_or_else(|| beyond("samples", "stack", row))?),
                None => None,
            };
            let time = self.times.at(raw.samples.number(cells, "time").unwrap_or(0.0));
            let delta = raw.samples.number(cells, "threadCPUDelta").unwrap_or(0.0);
            let delta = (delta * self.times.cpu_unit.unwrap_or(0.0)).round() as u64;
            let mut sample = Sample::new(time, stack, delta);
            // The reference of a thread's first delta is not known.
            if self.times.cpu_unit.is_some() && row > 0 {
                let intervals = used.take(delta, self.builder.profile().meta().interval);
                (sample.weight, sample.off_cpu) = (intervals.max(1), intervals == 0);
            }
            self.builder.add_sample(thread, sample);
        }
        for (row, cells) in raw.markers.data.iter().enumerate() {
            let marker = self.marker(raw, row, cells)?;
            self.builder.add_marker(thread, marker);
        }
        Ok(())
    }

    fn frames(&mut self, raw: &RawGeckoThread) -> Result<Vec<FrameId>, ReadError> {
        let table = &raw.frame_table;
        let frames = table.data.iter().enumerate().map(|(row, cells)| {
            let location = table.index(cells, "location").and_then(|index| raw.string_table.get(index));
            let location = location.ok_or_else(|| beyond("frameTable", "location", row))?;
            let mut frame = self.frame_of(location);
            let positive = |number: Option<f64>| number.map(|it| it as u32).filter(|&it| it > 0);
            frame.line = positive(table.number(cells, "line")).or(frame.line);
            frame.column = positive(table.number(cells, "column")).or(frame.column);
            frame.category = match table.index(cells, "category") {
                Some(category) => Some(
                    self.category(category, table.index(cells, "subcategory"))
                        .ok_or_else(|| beyond("frameTable", "category", row))?,
                ),
                None => None,
            };
            Ok(self.builder.intern_frame(frame))
        });
        frames.collect()
    }

    /// A category of the file. An unknown subcategory counts as none.
    fn category(&self, category: usize, subcategory: Option<usize>) -> Option<CategoryPair> {
        let is_there = category < self.builder.profile().categories().len();
        let category = is_there.then(|| CategoryId::from_index(category))?;
        let subcategory = subcategory.and_then(|number| self.builder.subcategory_of_file(category, number));
        Some(CategoryPair { category, subcategory: subcategory.unwrap_or(0) })
    }

    /// The frame for a location: an address, a JavaScript function with its file, or a label.
    fn frame_of(&mut self, location: &str) -> Frame {
        let address = location.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if let Some((lib, offset)) = address.and_then(|address| self.lib_at(address)) {
            let func = self.func(&format!("{offset:#x}"), Some(lib), None, None);
            return Frame { address: Some(offset), ..func };
        }
        match script_function(location) {
            Some((name, file, line)) => self.func(name, None, Some(file), line),
            None => self.func(location, None, None, None),
        }
    }

    fn func(&mut self, name: &str, lib: Option<LibId>, file: Option<&str>, line: Option<u32>) -> Frame {
        let name = self.builder.intern_string(name);
        let source = file.map(|file| {
            let filename = self.builder.intern_string(file);
            self.builder.intern_source(Source { filename })
        });
        let kind = if file.is_some() { FuncKind::JavaScript } else { FuncKind::Native };
        Frame::label(self.builder.intern_func(Func { source, line, kind, ..Func::new(name, lib) }))
    }

    /// The lib at an address, and the address in it.
    fn lib_at(&self, address: u64) -> Option<(LibId, u32)> {
        let after = self.mapped.partition_point(|lib| lib.start <= address);
        let lib = self.mapped.get(after.checked_sub(1)?).filter(|lib| address < lib.end)?;
        Some((lib.id, u32::try_from(address - lib.start).ok()?))
    }

    fn stacks(&mut self, raw: &RawGeckoThread, frames: &[FrameId]) -> Result<Vec<StackId>, ReadError> {
        let table = &raw.stack_table;
        let mut stacks: Vec<StackId> = Vec::with_capacity(table.data.len());
        for (row, cells) in table.data.iter().enumerate() {
            let frame = table.index(cells, "frame").and_then(|index| frames.get(index));
            let frame = *frame.ok_or_else(|| beyond("stackTable", "frame", row))?;
            let prefix = match table.index(cells, "prefix") {
                Some(prefix) => Some(*stacks.get(prefix).ok_or_else(|| beyond("stackTable", "prefix", row))?),
                None => None,
            };
            stacks.push(self.builder.intern_stack(prefix, frame));
        }
        Ok(stacks)
    }

    fn marker(&mut self, raw: &RawGeckoThread, row: usize, cells: &[Value]) -> Result<Marker, ReadError> {
        let table = &raw.markers;
        let name = table.index(cells, "name").and_then(|index| raw.string_table.get(index));
        let name = name.ok_or_else(|| beyond("markers", "name", row))?;
        let category = self.category(table.index(cells, "category").unwrap_or(0), None);
        let category = category.ok_or_else(|| beyond("markers", "category", row))?.category;
        let start = self.times.at(table.number(cells, "startTime").unwrap_or(0.0));
        let end = self.times.at(table.number(cells, "endTime").unwrap_or(0.0));
        let timing = match table.index(cells, "phase") {
            Some(1) => MarkerTiming::Interval(start, end.max(start)),
            Some(2) => MarkerTiming::IntervalStart(start),
            Some(3) => MarkerTiming::IntervalEnd(end),
            _ => MarkerTiming::Instant(start),
        };
        let name = self.builder.intern_string(name);
        let data = table.value(cells, "data");
        let schema =
            data.get("type").and_then(Value::as_str).and_then(|name| self.schemas.get(name)).copied();
        let values = schema.map_or_else(Vec::new, |schema| self.values(raw, schema, data));
        Ok(Marker { name, timing, category, schema, values, stack: None })
    }

    fn values(&mut self, raw: &RawGeckoThread, schema: MarkerSchemaId, data: &Value) -> Vec<MarkerValue> {
        let fields = self.builder.profile().marker_schema(schema).fields.clone();
        let string = |builder: &mut ProfileBuilder, index: u32| {
            Some(builder.intern_string(raw.string_table.get(index as usize)?))
        };
        fields.iter().map(|field| read_value(self.builder, field, data.get(&field.key), string)).collect()
    }
}

/// Parses `name (file:line:column)`, and `name (file:line)` too.
fn script_function(location: &str) -> Option<(&str, &str, Option<u32>)> {
    let (name, place) = location.strip_suffix(')')?.rsplit_once(" (")?;
    let (rest, last) = place.rsplit_once(':')?;
    let last = last.parse::<u32>().ok()?;
    match rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?))) {
        Some((file, line)) => Some((name, file, Some(line))),
        None => Some((name, rest, Some(last))),
    }
}

fn beyond(table: &'static str, column: &'static str, row: usize) -> ReadError {
    let problem = "is not a row of the table that it refers to".to_owned();
    ReadError::Inconsistent(Inconsistency { table, column, row: Some(row), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_of_scripts_have_files() {
        let check = |location, expected| assert_eq!(script_function(location), expected, "{location}");
        check("run (https://a.org/x.js:12:3)", Some(("run", "https://a.org/x.js", Some(12))));
        check("run (x.js:12)", Some(("run", "x.js", Some(12))));
        check("(root)", None);
        check("js::RunScript", None);
        check("Something (no place)", None);
    }
}
