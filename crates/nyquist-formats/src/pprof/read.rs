//! Reads pprof profiles of any producer.

use nyquist_profile::{FrameId, LibId, StackId, ThreadIndex, Unit};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::label_filter::LabelFilter;
use super::prune::{self, Prune, PrunedFrames};
use super::values::{SelectedValue, SelectedValues, cpu_period, values};
use super::{label, message};
use crate::error::{ImportedProfile, Note, ReadError};
use crate::gzip;
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::strings::{FunctionLine, NumberedStrings};
use crate::values::is_of_allocations;

const FORMAT: &str = "a pprof profile";

/// The most inlined functions at one address. Compilers do not come near this.
const MAX_INLINED: usize = 255;

/// The limit of stacks for each byte. Each stack takes at least the id of a location, which has a few lines.
const STACKS_PER_BYTE: usize = 16;

/// Reads a profile, compressed or not.
///
/// The value that is read is the file's default, or else its last one, as in `go tool pprof`. If that is CPU
/// time, `off_cpu` is the time of waiting. Samples have no times in pprof, so the samples of a thread follow
/// each other. Threads are distinguished by labels (`thread`, `tid`, `pid` and other tools' names of these).
/// Frames that the file marks for dropping are dropped.
///
/// # Errors
/// It is no pprof profile.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// As [`read`], for the value with this name.
///
/// # Errors
/// As there, and if there is no such value.
pub fn read_value(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    read_labelled(bytes, name, &[])
}

/// As [`read_value`], for the samples with these labels: `KEY=VALUE`, or `KEY` for any value. If a key is
/// given with several values, one of them is enough. All given keys must exist.
///
/// # Errors
/// As there, and if no sample has a label with such a key.
pub fn read_labelled(
    bytes: &[u8],
    name: Option<&str>,
    labels: &[String],
) -> Result<ImportedProfile, ReadError> {
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
    let reader = PprofReader::new(&file, name)?;
    let filter = LabelFilter::new(&file, &reader.strings, labels)?;
    Ok(reader.read(plain.len(), &filter, note))
}

fn malformed(problem: String) -> ReadError {
    ReadError::Malformed { format: FORMAT, problem }
}

/// The labels that distinguish threads: process, pid, thread and tid, each as a text's index and a number.
type ThreadLabels = [Option<(i64, i64)>; 4];

/// Other tools' names of these labels.
const LABEL_NAMES: [&[&str]; 4] = [
    &[label::PROCESS, "process_name"],
    &[label::PID, "process_id"],
    &[label::THREAD, "thread_comm", "thread name", "thread_name", "comm"],
    &[label::TID, "thread_id", "thread id"],
];

struct PprofReader<'a> {
    file: &'a message::Profile,
    strings: NumberedStrings<'a>,
    importer: Importer,
    values: Vec<SelectedValue>,
    /// The frames of each location, outermost first, and which of them are dropped.
    locations: FxHashMap<u64, (Vec<FrameId>, PrunedFrames)>,
    prune: Prune,
    /// The index of each key among the labels that distinguish threads.
    label_keys: FxHashMap<i64, usize>,
    threads: FxHashMap<ThreadLabels, ThreadIndex>,
    /// The sum of the samples' times for each thread so far.
    clocks: FxHashMap<ThreadIndex, u64>,
}

impl<'a> PprofReader<'a> {
    fn new(file: &'a message::Profile, requested: Option<&str>) -> Result<Self, ReadError> {
        if file.sample_type.is_empty() {
            return Err(malformed("it has no sample types".into()));
        }
        let strings = NumberedStrings::new(&file.string_table);
        let SelectedValues { values, measure, empty_default } = values(file, &strings, requested)?;
        let comment = file.comment.first().map_or("", |&comment| strings.text(comment));
        let product = if comment.is_empty() { main_program(file, &strings) } else { comment };
        let mut importer = Importer::new(product, "pprof");
        if let Some(empty) = empty_default {
            importer.note(Note::Instead { shown: measure.name.clone(), empty });
        }
        importer.meta_mut().measure = measure;
        importer.meta_mut().start_time = u64::try_from(file.time_nanos).unwrap_or(0) / 1000;
        // The recording is longer than the sum of the samples if the program did not run all the time. Bytes
        // have no times.
        if importer.meta_mut().measure.unit == Unit::Time {
            importer.meta_mut().profiling_end =
                u64::try_from(file.duration_nanos).ok().filter(|&end| end > 0);
        }
        let (prune, invalid) = Prune::new(strings.text(file.drop_frames), strings.text(file.keep_frames));
        importer
            .note_left_out(invalid, "patterns of frames to be dropped, which are not regular expressions");
        let kind = |name: &str| LABEL_NAMES.iter().position(|names| names.contains(&name));
        let texts = (0..).zip(&strings.texts);
        let label_keys = texts.filter_map(|(index, text)| Some((index, kind(text)?))).collect();
        Ok(Self {
            file,
            strings,
            importer,
            values,
            locations: FxHashMap::default(),
            prune,
            label_keys,
            threads: FxHashMap::default(),
            clocks: FxHashMap::default(),
        })
    }

    fn read(mut self, length: usize, filter: &LabelFilter<'_>, note: Option<Note>) -> ImportedProfile {
        self.read_locations();
        let most_stacks = length.saturating_mul(STACKS_PER_BYTE);
        let (mut negative, mut unread) = (0, 0);
        let file = self.file;
        for sample in &file.sample {
            if !filter.has(sample, &self.strings) {
                continue;
            }
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
        let is_cpu_time = self.importer.meta_mut().measure.is_cpu_time();
        let period = is_cpu_time.then(|| cpu_period(self.file, &self.strings).unwrap_or(MILLISECOND));
        if is_of_allocations(&self.importer.meta_mut().measure.name) {
            return self.importer.finish_allocations(period);
        }
        self.importer.finish(period)
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
            let code =
                CodePosition { lib: mapping.and_then(|&(_, lib)| lib), address, ..CodePosition::default() };
            let frames = if location.line.is_empty() {
                let name = if has_address { format!("{:#x}", location.address) } else { String::new() };
                vec![self.importer.frame(&CodePosition { name: &name, ..code })]
            } else {
                let lines = location.line.iter().rev().take(MAX_INLINED + 1).enumerate();
                lines.map(|(depth, line)| self.line(code, depth, line, &functions)).collect()
            };
            let names = location.line.iter().rev().take(MAX_INLINED + 1).map(|line| {
                functions.get(&line.function_id).map_or("", |function| self.strings.text(function.name))
            });
            let dropped = names.enumerate().find(|(_, name)| self.prune.drops(name));
            let pruned = dropped.map_or(PrunedFrames::None, |(depth, _)| PrunedFrames::From(depth));
            self.locations.insert(location.id, (frames, pruned));
        }
    }

    /// Each mapping's address of its file's first byte, and its lib.
    fn read_mappings(&mut self) -> FxHashMap<u64, (u64, Option<LibId>)> {
        let mut mappings = FxHashMap::default();
        let mut libs: FxHashMap<(i64, i64), Option<LibId>> = FxHashMap::default();
        // A file may be mapped several times, and only one of its mappings may have its build id.
        let with_id = self.file.mapping.iter().filter(|mapping| mapping.build_id != 0);
        let ids: FxHashMap<i64, i64> = with_id.map(|mapping| (mapping.filename, mapping.build_id)).collect();
        for mapping in &self.file.mapping {
            let build_id = match mapping.build_id {
                0 => ids.get(&mapping.filename).copied().unwrap_or(0),
                declared => declared,
            };
            let lib = *libs.entry((mapping.filename, build_id)).or_insert_with(|| {
                let path = self.strings.text(mapping.filename);
                let build_id = self.strings.text(build_id);
                (!path.is_empty()).then(|| self.importer.lib(path, Some(build_id)))
            });
            let base = mapping.memory_start.saturating_sub(mapping.file_offset);
            mappings.insert(mapping.id, (base, lib));
        }
        mappings
    }

    fn line(
        &mut self,
        code: CodePosition<'_>,
        depth: usize,
        line: &message::Line,
        functions: &FxHashMap<u64, &message::Function>,
    ) -> FrameId {
        let unknown = message::Function::default();
        let function = functions.get(&line.function_id).copied().unwrap_or(&unknown);
        let line = FunctionLine {
            name: function.name,
            system_name: function.system_name,
            file: function.filename,
            start_line: function.start_line,
            line: line.number,
            column: line.column,
        };
        self.strings.frame(&mut self.importer, &line, (code, depth))
    }

    /// Reads a sample and returns the number of its negative values.
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
            let duration = amount.unsigned_abs().saturating_mul(value.factor);
            let clock = self.clocks.entry(thread).or_default();
            let time = *clock;
            *clock = clock.saturating_add(duration);
            self.importer.span(thread, time, (stack, value.off_cpu), duration);
        }
        negative
    }

    fn stack(&mut self, sample: &message::Sample, most_stacks: usize) -> Option<StackId> {
        let mut stack = None;
        let locations = || sample.location_id.iter().rev().filter_map(|id| self.locations.get(id));
        let (whole, rest) =
            prune::kept_part(locations().map(|&(_, pruned)| pruned)).unwrap_or((usize::MAX, 0));
        for (place, (frames, _)) in (0..=whole).zip(locations()) {
            let frames = if place < whole { frames } else { &frames[..rest.min(frames.len())] };
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
fn main_program<'a>(file: &message::Profile, strings: &'a NumberedStrings<'_>) -> &'a str {
    let path = file.mapping.first().map_or("", |mapping| strings.text(mapping.filename));
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "pprof profile" } else { name }
}
