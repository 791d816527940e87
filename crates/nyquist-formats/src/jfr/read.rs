//! Reads JFR recordings of the JDK and of async-profiler.

use nyquist_profile::{
    CategoryId, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerSchemaId, MarkerTiming,
    MarkerValue, StackId, ThreadIndex,
};
use rustc_hash::FxHashMap;

use super::chunk::{Chunk, extent};
use super::measures::{EventAmount, MeasuredValue, SamplingSettings, VALUES, choose, measure};
use super::names::{ChunkNames, RecordedProcess};
use super::values::JfrValue;
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{Importer, ThreadName};

const FORMAT: &str = "a JFR recording";

/// The most bytes of names for each byte of the file.
const NAME_BYTES_PER_BYTE: usize = 16;

/// Reads a recording.
///
/// # Errors
/// As for [`read_value`].
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// Reads the events of a recording with the given name, such as `jdk.ThreadPark` or `ThreadPark`. Short names
/// are `cpu`, `wall`, `alloc`, `live`, `lock`, `wait`, `park`, `sleep` and `native`. Without a name, it reads the
/// first kind that exists. The order is samples of execution, samples of allocations, waits. Waits also become markers.
/// Times in ns. O(bytes).
///
/// # Errors
/// If it is no JFR recording, or has no events of that name.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let (chunks, cut) = chunks(bytes)?;
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    for (chunk, _) in &chunks {
        for (id, name) in chunk.metadata.names() {
            let count = chunk.counts.get(&id).copied().unwrap_or(0);
            if count > 0 {
                *counts.entry(name.to_owned()).or_default() += count;
            }
        }
    }
    let chosen = choose(&counts, requested)?;
    let mut reader = JfrReader::new(chosen, bytes.len());
    for (chunk, _) in &chunks {
        reader.read_head(chunk);
    }
    reader.begin();
    let mut damaged = None;
    for (chunk, start) in &chunks {
        reader.read_chunk(chunk);
        damaged = damaged.or_else(|| chunk.is_damaged.then(|| format!("the chunk at byte {start}")));
    }
    Ok(reader.finish(&counts, damaged.or(cut)))
}

/// The state of a thread that async-profiler has sampled by the wall clock, though it did not run.
const SLEEPING: &str = "STATE_SLEEPING";

/// The chunks of a file with their places.
type Chunks<'a> = Vec<(Chunk<'a>, usize)>;

/// The chunks of a file, and where it is truncated.
fn chunks(bytes: &[u8]) -> Result<(Chunks<'_>, Option<String>), ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let (mut chunks, mut at, mut cut) = (Vec::new(), 0, None);
    while let Some((chunk, is_whole)) = bytes.get(at..).and_then(extent) {
        match Chunk::read(chunk) {
            Some(read) => chunks.push((read, at)),
            None => cut = Some(format!("the chunk at byte {at}, whose metadata cannot be read")),
        }
        at += chunk.len();
        if !is_whole {
            break;
        }
    }
    if at < bytes.len() && cut.is_none() {
        cut = Some(format!("byte {at}"));
    }
    match chunks.is_empty() {
        false => Ok((chunks, cut)),
        true if at > 0 => Err(malformed("it is cut off or damaged before what describes its events")),
        true => Err(malformed("it does not begin as one")),
    }
}

/// The fields of an event.
struct EventFields<'m, 'a> {
    chunk: &'m Chunk<'a>,
    class: u64,
    values: Vec<JfrValue<'a>>,
}

impl<'a> EventFields<'_, 'a> {
    fn get(&self, name: &str) -> &JfrValue<'a> {
        let place = self.chunk.metadata.field(self.class, name).map(|(place, _)| place);
        place.and_then(|place| self.values.get(place)).unwrap_or(&JfrValue::Missing)
    }

    /// The first of the fields that exists.
    fn first(&self, names: &[&str]) -> &JfrValue<'a> {
        let mut values = names.iter().map(|name| self.get(name));
        values.find(|value| **value != JfrValue::Missing).unwrap_or(&JfrValue::Missing)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).unsigned().unwrap_or(0)
    }

    /// A duration in ns.
    fn duration(&self, name: &str) -> u64 {
        let is_ticks = self.chunk.metadata.field(self.class, name).is_some_and(|(_, field)| field.is_ticks);
        if is_ticks { self.chunk.nanoseconds(self.number(name)) } else { self.number(name) }
    }
}

struct JfrReader {
    importer: Importer,
    measured_value: &'static MeasuredValue,
    settings: SamplingSettings,
    process: RecordedProcess,
    /// The amount of one sample.
    factor: u64,
    /// Whether samples of CPU time are among those of the wall clock.
    may_sleep: bool,
    schema: Option<MarkerSchemaId>,
    name_bytes_left: usize,
    /// The earliest time of a sample or marker, in ns since 1970.
    first: u64,
    damaged: u64,
}

impl JfrReader {
    fn new(measured_value: &'static MeasuredValue, length: usize) -> Self {
        Self {
            importer: Importer::new("Java", "JFR"),
            measured_value,
            settings: SamplingSettings::default(),
            process: RecordedProcess { pid: "0".into(), name: "java".into() },
            factor: 1,
            may_sleep: false,
            schema: None,
            name_bytes_left: length.saturating_mul(NAME_BYTES_PER_BYTE),
            first: u64::MAX,
            damaged: 0,
        }
    }

    /// Reads a chunk's description of the recording.
    fn read_head(&mut self, chunk: &Chunk<'_>) {
        let process = self.process.clone();
        let mut names = ChunkNames::new(chunk, &process, &mut self.name_bytes_left);
        let mut decoder = chunk.decoder();
        for mut event in chunk.events() {
            let class = event.class;
            let name = chunk.metadata.name(class);
            if !matches!(name, "jdk.ActiveSetting" | "jdk.JVMInformation") {
                continue;
            }
            let Some(values) = decoder.fields(&mut event.cursor, class) else { continue };
            let fields = EventFields { chunk, class, values };
            if name == "jdk.JVMInformation" {
                let command = names.text(fields.get("javaArguments"));
                let program = command.split_whitespace().next().unwrap_or("java");
                let program = program.rsplit('/').next().unwrap_or(program);
                self.process =
                    RecordedProcess { pid: fields.number("pid").to_string(), name: program.to_owned() };
                self.importer.meta_mut().arguments = Some(command.to_string());
                continue;
            }
            let value = names.text(fields.get("value"));
            let number = value.parse().ok();
            match &*names.text(fields.get("name")) {
                "event" => self.settings.event = Some(value.to_string()),
                "interval" => self.settings.interval = number,
                "wall" => self.settings.wall = number,
                _ => {}
            }
        }
    }

    /// The measure is known from here on.
    fn begin(&mut self) {
        let (measure, factor) = measure(self.measured_value, &self.settings);
        self.factor = factor;
        self.may_sleep = measure.is_cpu_time();
        let meta = self.importer.meta_mut();
        meta.measure = measure;
        meta.product.clone_from(&self.process.name);
    }

    fn read_chunk(&mut self, chunk: &Chunk<'_>) {
        let process = self.process.clone();
        let mut name_bytes_left = self.name_bytes_left;
        let mut names = ChunkNames::new(chunk, &process, &mut name_bytes_left);
        let mut decoder = chunk.decoder();
        // The requested classes are looked up once, because there are many events.
        let requested: FxHashMap<u64, (Option<EventAmount>, bool)> = (chunk.metadata.names())
            .map(|(id, name)| (id, (self.measured_value.amount(name), is_wait(name))))
            .filter(|(_, (amount, is_wait))| amount.is_some() || *is_wait)
            .collect();
        for mut event in chunk.events() {
            let Some(&(amount, is_wait)) = requested.get(&event.class) else { continue };
            let Some(values) = decoder.fields(&mut event.cursor, event.class) else {
                self.damaged += 1;
                continue;
            };
            let fields = EventFields { chunk, class: event.class, values };
            let thread = fields.first(&["sampledThread", "eventThread"]);
            let thread = names.thread(&mut self.importer, thread);
            let stack = names.stack(&mut self.importer, fields.get("stackTrace"));
            if let Some(amount) = amount {
                let sleeps = self.may_sleep && &*names.text(fields.get("state")) == SLEEPING;
                self.add_sample(&fields, amount, thread, (stack, sleeps));
            }
            if is_wait {
                self.add_marker(&fields, &mut names, thread, stack);
            }
        }
        self.name_bytes_left = name_bytes_left;
    }

    fn add_sample(
        &mut self,
        fields: &EventFields<'_, '_>,
        amount: EventAmount,
        thread: ThreadIndex,
        (stack, sleeps): (Option<StackId>, bool),
    ) {
        let time = fields.chunk.time(fields.number("startTime"));
        self.first = self.first.min(time);
        if sleeps {
            let interval = self.settings.wall.filter(|&interval| interval > 0).unwrap_or(self.factor);
            return self.importer.off_cpu_sample(thread, time, stack, interval);
        }
        let count = match amount {
            EventAmount::Sample => 1,
            EventAmount::WallSamples(field) | EventAmount::Bytes(field) => fields.number(field),
            EventAmount::CpuTime(field) => fields.duration(field),
            EventAmount::Duration => {
                let duration = fields.duration("duration");
                return self.importer.span(thread, time, (stack, false), duration);
            }
        };
        if count > 0 {
            self.importer.sample(thread, time, stack, count.saturating_mul(self.factor));
        }
    }

    fn add_marker<'a>(
        &mut self,
        fields: &EventFields<'_, 'a>,
        names: &mut ChunkNames<'_, 'a>,
        thread: ThreadIndex,
        stack: Option<StackId>,
    ) {
        let start = fields.chunk.time(fields.number("startTime"));
        self.first = self.first.min(start);
        let end = start.saturating_add(fields.duration("duration"));
        let class = names.class(fields.first(&["monitorClass", "parkedClass"]));
        let builder = self.importer.builder();
        let schema = *self.schema.get_or_insert_with(|| builder.add_marker_schema(waits()));
        let class = match class.as_str() {
            "" => MarkerValue::Missing,
            class => MarkerValue::String(builder.intern_string(class)),
        };
        let name = builder.intern_string(fields.chunk.metadata.name(fields.class));
        builder.add_marker(
            thread,
            Marker {
                name,
                timing: MarkerTiming::Interval(start, end),
                category: CategoryId::from_index(0),
                schema: Some(schema),
                values: vec![class],
                stack,
            },
        );
    }

    fn finish(mut self, counts: &FxHashMap<String, u64>, cut: Option<String>) -> ImportedProfile {
        if let Some(place) = cut {
            self.importer.note(Note::Cut { place });
        }
        self.importer.note_left_out(self.damaged, "events whose fields cannot be read");
        for other in VALUES.iter().filter(|value| value.name != self.measured_value.name && !value.is_wait())
        {
            let what = format!("events {}: import --event {} reads them", other.name, other.event_argument());
            self.importer.note_left_out(other.count(counts), what);
        }
        if self.first < u64::MAX {
            self.importer.meta_mut().start_time = self.first / 1000;
        } else {
            // A profile has at least one thread.
            let RecordedProcess { pid, name } = &self.process;
            self.importer.thread(ThreadName { pid, process: name, tid: pid, thread: name });
        }
        let is_sampled = self.factor > 1;
        self.importer.finish(is_sampled.then_some(self.factor))
    }
}

fn is_wait(event: &str) -> bool {
    VALUES.iter().any(|value| value.is_wait() && value.amount(event).is_some())
}

fn waits() -> MarkerSchema {
    let class =
        MarkerField { key: "class".into(), label: Some("Class".into()), format: MarkerFormat::UniqueString };
    MarkerSchema {
        name: "JavaWait".into(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: vec![class],
        table_label: Some("{marker.data.class}".into()),
        ..MarkerSchema::default()
    }
}
