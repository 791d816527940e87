//! Reading pprof profiles of any producer.

use std::borrow::Cow;

use nyquist_profile::{FrameId, LibId, StackId, StringId, ThreadIndex};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::{OFF_CPU, label, message};
use crate::error::{Imported, Note, ReadError};
use crate::gzip;
use crate::import::{Code, Importer, MILLISECOND, ThreadName};

const FORMAT: &str = "a pprof profile";

/// The most inlined functions at one address; compilers do not come near.
const MAX_INLINED: usize = 255;

/// How many stacks there may be for each byte: each takes an id of a location at least, of which each has a few lines.
const STACKS_PER_BYTE: usize = 16;

/// Reads a profile, compressed or not.
///
/// Its time is taken from the value that is a time, as `cpu/nanoseconds`, else from the one that counts samples, times the
/// period. `off_cpu` and `delay` are times of waiting. Samples have no times in pprof: those of a thread follow each other.
/// Threads are told apart by labels (`thread`, `tid`, `pid` and what others call them).
///
/// # Errors
/// If it is no pprof profile, or one of memory, which has neither times nor samples.
pub fn read(bytes: &[u8]) -> Result<Imported, ReadError> {
    let decompressed;
    let mut note = None;
    let mut plain = bytes;
    if gzip::is_gzip(bytes) {
        (decompressed, note) = gzip::decompress(bytes)?;
        plain = &decompressed;
    }
    let mut file = message::Profile::default();
    if let Err(error) = file.merge(plain) {
        if file.sample_type.is_empty() {
            return Err(malformed(error.to_string()));
        }
        note.get_or_insert(Note::Cut { place: "its end".into() });
    }
    Ok(Reader::new(&file)?.read(plain.len(), note))
}

fn malformed(problem: String) -> ReadError {
    ReadError::Malformed { format: FORMAT, problem }
}

/// A value of the samples that is read.
#[derive(Clone, Copy)]
struct Value {
    index: usize,
    /// How many ns one of it is.
    nanoseconds: u64,
    off_cpu: bool,
}

/// The strings of a file, each looked at once: a hostile file refers to a long one again and again.
struct Strings<'a> {
    texts: Vec<Cow<'a, str>>,
    interned: Vec<Option<StringId>>,
}

impl<'a> Strings<'a> {
    fn new(file: &'a message::Profile) -> Self {
        let texts: Vec<_> = file.string_table.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        let interned = vec![None; texts.len()];
        Self { texts, interned }
    }

    /// A text; one that is missing is empty.
    fn text(&self, index: i64) -> &str {
        let text = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        text.map_or("", |text| text)
    }

    /// Its id in the profile; an empty text has none.
    fn id(&mut self, index: i64, importer: &mut Importer) -> Option<StringId> {
        let index = usize::try_from(index).ok()?;
        let text = self.texts.get(index).filter(|text| !text.is_empty())?;
        let id = self.interned.get_mut(index)?;
        Some(*id.get_or_insert_with(|| importer.builder().intern_string(text)))
    }
}

/// The labels that tell threads apart: process, pid, thread and tid, each as a text's index and a number.
type ThreadLabels = [Option<(i64, i64)>; 4];

/// What others call these labels.
const LABEL_NAMES: [&[&str]; 4] = [
    &[label::PROCESS, "process_name"],
    &[label::PID, "process_id"],
    &[label::THREAD, "thread_comm", "thread name", "thread_name", "comm"],
    &[label::TID, "thread_id", "thread id"],
];

struct Reader<'a> {
    file: &'a message::Profile,
    strings: Strings<'a>,
    importer: Importer,
    values: Vec<Value>,
    /// The frames of each location, outermost first.
    locations: FxHashMap<u64, Vec<FrameId>>,
    /// Which of the labels that tell threads apart a key is.
    label_keys: FxHashMap<i64, usize>,
    threads: FxHashMap<ThreadLabels, ThreadIndex>,
    /// How long the samples of each thread take so far.
    clocks: FxHashMap<ThreadIndex, u64>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a message::Profile) -> Result<Self, ReadError> {
        if file.sample_type.is_empty() {
            return Err(malformed("it has no sample types".into()));
        }
        let strings = Strings::new(file);
        let values = values(file, &strings)?;
        let comment = file.comment.first().map_or("", |&comment| strings.text(comment));
        let product = if comment.is_empty() { main_program(file, &strings) } else { comment };
        let mut importer = Importer::new(product, "pprof");
        importer.meta_mut().start_time = u64::try_from(file.time_nanos).unwrap_or(0) / 1000;
        // Longer than the samples together where the program did not run all the time.
        importer.meta_mut().profiling_end = u64::try_from(file.duration_nanos).ok().filter(|&end| end > 0);
        let kind = |name: &str| LABEL_NAMES.iter().position(|names| names.contains(&name));
        let texts = (0..).zip(&strings.texts);
        let label_keys = texts.filter_map(|(index, text)| Some((index, kind(text)?))).collect();
        Ok(Self {
            file,
            strings,
            importer,
            values,
            locations: FxHashMap::default(),
            label_keys,
            threads: FxHashMap::default(),
            clocks: FxHashMap::default(),
        })
    }

    fn read(mut self, length: usize, note: Option<Note>) -> Imported {
        self.read_locations();
        let most_stacks = length.saturating_mul(STACKS_PER_BYTE);
        let (mut negative, mut unread) = (0, 0);
        for sample in &self.file.sample {
            if self.importer.stack_count() > most_stacks {
                unread += 1;
            } else {
                negative += self.read_sample(sample, most_stacks);
            }
        }
        self.importer.note_left_out(negative, "negative values (it is a difference of two profiles)");
        self.importer.note_left_out(unread, "samples, for their stacks are out of all proportion");
        if let Some(note) = note {
            self.importer.note(note);
        }
        self.importer.finish(Some(period(self.file, &self.strings)))
    }

    fn read_locations(&mut self) {
        let file = self.file;
        let functions: FxHashMap<u64, &message::Function> =
            file.function.iter().map(|function| (function.id, function)).collect();
        let mappings = self.read_mappings();
        for location in &file.location {
            let mapping = mappings.get(&location.mapping_id);
            let has_address = location.address > 0;
            let address = location.address.checked_sub(mapping.map_or(0, |&(base, _)| base));
            let address = address.filter(|_| has_address).and_then(|address| u32::try_from(address).ok());
            let code = Code { lib: mapping.and_then(|&(_, lib)| lib), address, ..Code::default() };
            let frames = if location.line.is_empty() {
                let name = if has_address { format!("{:#x}", location.address) } else { String::new() };
                vec![self.importer.frame(&Code { name: &name, ..code })]
            } else {
                let lines = location.line.iter().rev().take(MAX_INLINED + 1).enumerate();
                lines.map(|(depth, line)| self.line(code, depth, line, &functions)).collect()
            };
            self.locations.insert(location.id, frames);
        }
    }

    /// Each mapping's address of its file's first byte, and its lib.
    fn read_mappings(&mut self) -> FxHashMap<u64, (u64, Option<LibId>)> {
        let mut mappings = FxHashMap::default();
        let mut libs: FxHashMap<(i64, i64), Option<LibId>> = FxHashMap::default();
        for mapping in &self.file.mapping {
            let lib = *libs.entry((mapping.filename, mapping.build_id)).or_insert_with(|| {
                let path = self.strings.text(mapping.filename);
                let build_id = self.strings.text(mapping.build_id);
                (!path.is_empty()).then(|| self.importer.lib(path, Some(build_id)))
            });
            let base = mapping.memory_start.saturating_sub(mapping.file_offset);
            mappings.insert(mapping.id, (base, lib));
        }
        mappings
    }

    fn line(
        &mut self,
        code: Code<'_>,
        depth: usize,
        line: &message::Line,
        functions: &FxHashMap<u64, &message::Function>,
    ) -> FrameId {
        let unknown = message::Function::default();
        let function = functions.get(&line.function_id).copied().unwrap_or(&unknown);
        let importer = &mut self.importer;
        let name = self.strings.id(function.name, importer);
        let name = name.or_else(|| self.strings.id(function.system_name, importer));
        let file = self.strings.id(function.filename, importer);
        let code = Code {
            start_line: u32::try_from(function.start_line).ok(),
            line: u32::try_from(line.number).ok(),
            column: u32::try_from(line.column).ok(),
            inline_depth: depth as u16,
            ..code
        };
        importer.frame_of(name, file, &code)
    }

    /// Reads a sample and gives the number of its values that are negative.
    fn read_sample(&mut self, sample: &message::Sample, most_stacks: usize) -> u64 {
        let mut negative = 0;
        let (mut thread, mut stack) = (None, None);
        for value in self.values.clone() {
            let amount = sample.value.get(value.index).copied().unwrap_or(0);
            negative += u64::from(amount < 0);
            if amount <= 0 {
                continue;
            }
            let thread = *thread.get_or_insert_with(|| self.thread(sample));
            let stack = *stack.get_or_insert_with(|| self.stack(sample, most_stacks));
            let duration = amount.unsigned_abs().saturating_mul(value.nanoseconds);
            let clock = self.clocks.entry(thread).or_default();
            let time = *clock;
            *clock = clock.saturating_add(duration);
            self.importer.span(thread, time, (stack, value.off_cpu), duration);
        }
        negative
    }

    fn stack(&mut self, sample: &message::Sample, most_stacks: usize) -> Option<StackId> {
        let mut stack = None;
        for frames in sample.location_id.iter().rev().filter_map(|id| self.locations.get(id)) {
            if self.importer.stack_count() > most_stacks {
                break;
            }
            for &frame in frames {
                stack = Some(self.importer.stack(stack, frame));
            }
        }
        stack
    }

    fn thread(&mut self, sample: &message::Sample) -> ThreadIndex {
        let mut labels: ThreadLabels = [None; 4];
        for label in &sample.label {
            if let Some(&kind) = self.label_keys.get(&label.key) {
                labels[kind].get_or_insert((label.text, label.number));
            }
        }
        if let Some(&thread) = self.threads.get(&labels) {
            return thread;
        }
        let [process, pid, name, tid] = labels.map(|label| {
            label.map(|(text, number)| match text {
                0 => number.to_string(),
                index => self.strings.text(index).to_owned(),
            })
        });
        let product = self.importer.meta_mut().product.clone();
        let pid = pid.unwrap_or_else(|| "0".into());
        let thread = self.importer.thread(ThreadName {
            process: process.as_deref().unwrap_or(&product),
            tid: tid.as_deref().or(name.as_deref()).unwrap_or(&pid),
            thread: name.as_deref().unwrap_or(&product),
            pid: &pid,
        });
        self.threads.insert(labels, thread);
        thread
    }
}

/// The name of the first mapping, which is the program's by convention.
fn main_program<'a>(file: &message::Profile, strings: &'a Strings<'_>) -> &'a str {
    let path = file.mapping.first().map_or("", |mapping| strings.text(mapping.filename));
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "pprof profile" } else { name }
}

fn unit_nanoseconds(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "ns" | "nanosecond" => Some(1),
        "microseconds" | "us" | "µs" | "microsecond" => Some(1000),
        "milliseconds" | "ms" | "millisecond" => Some(1_000_000),
        "seconds" | "s" | "second" => Some(1_000_000_000),
        _ => None,
    }
}

/// The values that are read: one of time on the CPU, or of samples, and one of waiting.
fn values(file: &message::Profile, strings: &Strings<'_>) -> Result<Vec<Value>, ReadError> {
    let types: Vec<_> =
        file.sample_type.iter().map(|kind| (strings.text(kind.kind), strings.text(kind.unit))).collect();
    let times = types.iter().enumerate().filter_map(|(index, &(kind, unit))| {
        let off_cpu = matches!(kind, OFF_CPU | "off-cpu" | "offcpu" | "delay");
        unit_nanoseconds(unit).map(|nanoseconds| Value { index, nanoseconds, off_cpu })
    });
    let (waits, cpu): (Vec<_>, Vec<_>) = times.partition(|value| value.off_cpu);
    let mut values: Vec<_> = cpu.into_iter().take(1).chain(waits.into_iter().take(1)).collect();
    if values.is_empty() && !types.iter().any(|&(_, unit)| unit == "bytes") {
        values.push(Value { index: 0, nanoseconds: period(file, strings), off_cpu: false });
    }
    if values.is_empty() {
        let names: Vec<_> = types.iter().map(|(kind, unit)| format!("{kind} ({unit})")).take(8).collect();
        let problem = format!("it is a profile of memory, without CPU time: it has {}", names.join(", "));
        return Err(ReadError::Unsupported(problem));
    }
    Ok(values)
}

/// What a sample stands for, in ns; a millisecond where the file does not say it.
fn period(file: &message::Profile, strings: &Strings<'_>) -> u64 {
    let unit = file.period_type.and_then(|kind| unit_nanoseconds(strings.text(kind.unit)));
    let period = u64::try_from(file.period).ok().filter(|&period| period > 0);
    unit.zip(period).map_or(MILLISECOND, |(unit, period)| unit.saturating_mul(period))
}
