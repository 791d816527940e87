//! Writing a profile as pprof.

use std::hash::Hash;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_profile::{FrameId, FuncId, Lib, Profile, SourceId, StackId, ThreadIndex, Unit};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::{OFF_CPU, label, message};
use crate::layout::Layout;
use crate::{SourcePaths, source_path};

/// Writes the profile, compressed. The stacks of each thread are summed up: pprof has no times. Values are `samples/count`,
/// `cpu/nanoseconds` and, where threads waited, `off_cpu/nanoseconds`; of a profile of something else, that. Labels name the process and the thread. O(samples +
/// stacks of each thread × depth), in memory that does not grow with the number of these stacks.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    // As pprof's own writers do, it is compressed fast: that takes most of the time, and better takes several times as much.
    let mut encoder = GzEncoder::new(out, Compression::fast());
    let mut writer = Writer::new(profile, paths);
    writer.write_head();
    writer.flush(&mut encoder)?;
    for index in 0..profile.threads().len() {
        writer.write_thread(ThreadIndex::from_index(index), &mut encoder)?;
    }
    writer.write_mappings();
    writer.flush(&mut encoder)?;
    encoder.finish().map(drop)
}

/// The field of `Profile` that has the samples, with the wire type of bytes.
const SAMPLE_TAG: u8 = 2 << 3 | 2;

/// So many bytes of samples are handed on at once.
const BYTES_AT_ONCE: usize = 1 << 16;

/// The sums of a stack.
#[derive(Clone, Copy, Default)]
struct Sums {
    samples: i64,
    /// The CPU time, or what else the profile's samples count.
    main: i64,
    off_cpu: i64,
}

/// Ids from 1 on of what is equal.
struct Numbers<Key>(FxHashMap<Key, u64>);

impl<Key: Eq + Hash> Numbers<Key> {
    /// The number of `key`, and whether it is new.
    fn number(&mut self, key: Key) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// Where the locations of a stack go on from one of its nodes.
#[derive(Clone, Copy)]
struct Step {
    location: u64,
    /// The node of the next location outwards, past all that is inlined at this one's address.
    next: Option<StackId>,
}

struct Writer<'a> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    layout: Layout,
    /// What is to be written next, in any part that is needed: the parts of a message may come in any order and number.
    message: message::Profile,
    /// The steps that are known, by node.
    steps: Vec<Option<Step>>,
    strings: FxHashMap<String, i64>,
    locations: Numbers<Vec<FrameId>>,
    functions: Numbers<(FuncId, Option<SourceId>)>,
    has_off_cpu: bool,
    counts_cpu_time: bool,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile, paths: SourcePaths<'a>) -> Self {
        let has_off_cpu =
            profile.threads().iter().flat_map(|thread| &thread.samples).any(|sample| sample.off_cpu);
        let mut writer = Self {
            profile,
            paths,
            layout: Layout::new(profile),
            message: message::Profile::default(),
            steps: vec![None; profile.stacks().len()],
            strings: FxHashMap::default(),
            locations: Numbers(FxHashMap::default()),
            functions: Numbers(FxHashMap::default()),
            has_off_cpu,
            counts_cpu_time: profile.meta().measure.is_cpu_time(),
        };
        writer.string("");
        writer
    }

    /// Writes what is there.
    fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        let message = std::mem::take(&mut self.message);
        out.write_all(&message.encode_to_vec())
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.strings.get(text) {
            return number;
        }
        let number = self.strings.len() as i64;
        self.strings.insert(text.to_owned(), number);
        self.message.string_table.push(text.as_bytes().to_vec());
        number
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> message::ValueType {
        message::ValueType { kind: self.string(kind), unit: self.string(unit) }
    }

    fn write_head(&mut self) {
        let meta = self.profile.meta();
        let main = if self.counts_cpu_time {
            let samples = self.value_type("samples", "count");
            self.message.sample_type.push(samples);
            self.value_type("cpu", "nanoseconds")
        } else {
            self.value_type(&meta.measure.name, unit_name(meta.measure.unit))
        };
        self.message.sample_type.push(main);
        if self.has_off_cpu {
            let off_cpu = self.value_type(OFF_CPU, "nanoseconds");
            self.message.sample_type.push(off_cpu);
        }
        self.message.period_type = Some(main);
        self.message.period = meta.interval as i64;
        self.message.default_sample_type = main.kind;
        self.message.time_nanos = meta.start_time.saturating_mul(1000) as i64;
        self.message.duration_nanos = self.profile.duration() as i64;
        let arguments = meta.arguments.iter().chain([&meta.product]).find(|text| !text.is_empty());
        if let Some(comment) = arguments {
            let comment = self.string(comment);
            self.message.comment.push(comment);
        }
    }

    /// A mapping's id is its lib's index + 1, and the first one is the main program's, as pprof has it. They all say that they have functions, even if they have not: pprof would
    /// take addresses that are made up for real ones and look for names by itself.
    fn write_mappings(&mut self) {
        let main = main_lib(self.profile);
        let mut libs: Vec<_> = self.profile.libs().iter().enumerate().collect();
        libs.sort_by_key(|&(index, _)| Some(index) != main);
        for (index, lib) in libs {
            let range = self.layout.range(nyquist_profile::LibId::from_index(index));
            let path = if lib.path.is_empty() { &lib.name } else { &lib.path };
            let filename = self.string(path);
            let build_id = self.string(lib.code_id.as_deref().unwrap_or(""));
            self.message.mapping.push(message::Mapping {
                id: index as u64 + 1,
                memory_start: range.start,
                memory_limit: range.end,
                file_offset: 0,
                filename,
                build_id,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
    }

    fn write_thread(&mut self, thread: ThreadIndex, out: &mut impl Write) -> io::Result<()> {
        let mut sums: Vec<_> = self.sums(thread).into_iter().collect();
        sums.sort_unstable_by_key(|&(stack, _)| stack);
        let mut sample = message::Sample { label: self.labels(thread), ..message::Sample::default() };
        let mut bytes = Vec::new();
        for (stack, sums) in sums {
            sample.value.clear();
            sample.value.extend(self.counts_cpu_time.then_some(sums.samples));
            sample.value.push(sums.main);
            if self.has_off_cpu {
                sample.value.push(sums.off_cpu);
            }
            sample.location_id.clear();
            self.push_locations(stack, &mut sample.location_id);
            bytes.push(SAMPLE_TAG);
            sample.encode_length_delimited(&mut bytes)?;
            if bytes.len() >= BYTES_AT_ONCE {
                out.write_all(&bytes)?;
                bytes.clear();
            }
        }
        out.write_all(&bytes)
    }

    fn sums(&self, thread: ThreadIndex) -> FxHashMap<Option<StackId>, Sums> {
        let mut by_stack: FxHashMap<_, Sums> = FxHashMap::default();
        for sample in self.profile.thread(thread).samples.iter().filter(|sample| sample.weight > 0) {
            let sums = by_stack.entry(sample.stack).or_default();
            let time = i64::from(sample.weight).saturating_mul(self.profile.meta().interval as i64);
            if sample.off_cpu {
                sums.off_cpu = sums.off_cpu.saturating_add(time);
            } else {
                sums.samples += i64::from(sample.weight);
                sums.main = sums.main.saturating_add(time);
            }
        }
        by_stack
    }

    fn labels(&mut self, thread: ThreadIndex) -> Vec<message::Label> {
        let thread = self.profile.thread(thread);
        let process = self.profile.process(thread.process);
        let texts = [
            (label::PROCESS, &process.name),
            (label::PID, &process.pid),
            (label::THREAD, &thread.name),
            (label::TID, &thread.tid),
        ];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        texts
            .map(|(key, text)| {
                let is_id = matches!(key, label::PID | label::TID);
                let key = self.string(key);
                match text.parse().ok().filter(|&number: &i64| is_id && number > 0) {
                    Some(number) => message::Label { key, number, text: 0 },
                    None => message::Label { key, text: self.string(text), number: 0 },
                }
            })
            .collect()
    }

    /// The locations of a stack from the innermost to the outermost, each with the functions inlined at its address.
    fn push_locations(&mut self, stack: Option<StackId>, locations: &mut Vec<u64>) {
        let mut next = stack;
        while let Some(node) = next {
            let step = self.step(node);
            locations.push(step.location);
            next = step.next;
        }
    }

    fn step(&mut self, node: StackId) -> Step {
        if let Some(step) = self.steps[node.index()] {
            return step;
        }
        let profile = self.profile;
        let mut frames = vec![profile.stack(node).frame];
        let mut inner = profile.stack(node).frame;
        let mut next = profile.stack(node).prefix;
        while let Some(outer) = next
            && is_inlined_into(profile, inner, profile.stack(outer).frame)
        {
            inner = profile.stack(outer).frame;
            frames.push(inner);
            next = profile.stack(outer).prefix;
        }
        let step = Step { location: self.location(frames), next };
        self.steps[node.index()] = Some(step);
        step
    }

    fn location(&mut self, frames: Vec<FrameId>) -> u64 {
        let lines: Vec<_> = frames.iter().map(|&frame| self.line(frame)).collect();
        let innermost = frames.first().map(|&frame| self.profile.frame(frame));
        let lib = innermost.and_then(|frame| self.profile.func(frame.func).lib);
        let address = innermost.and_then(|frame| self.layout.address(self.profile, frame)).unwrap_or(0);
        let (id, is_new) = self.locations.number(frames);
        if is_new {
            let mapping_id = lib.map_or(0, |lib| lib.index() as u64 + 1);
            self.message.location.push(message::Location { id, mapping_id, address, line: lines });
        }
        id
    }

    fn line(&mut self, frame: FrameId) -> message::Line {
        let frame = self.profile.frame(frame);
        message::Line {
            function_id: self.function(frame.func, frame.source),
            number: frame.line.unwrap_or(0).into(),
            column: frame.column.unwrap_or(0).into(),
        }
    }

    /// The number of a function, given the other file that it has a line in. pprof takes a line for one of the function's
    /// file, so there is one for each file; by their name, its readers take them for one.
    fn function(&mut self, func: FuncId, elsewhere: Option<SourceId>) -> u64 {
        let (id, is_new) = self.functions.number((func, elsewhere));
        if is_new {
            let func = self.profile.func(func);
            let source = elsewhere.or(func.source);
            let source = source.map(|source| source_path(self.profile, source, self.paths));
            let name = self.string(self.profile.string(func.name));
            let filename = self.string(&source.unwrap_or_default());
            // Where it begins is a line of its own file.
            let start_line = func.line.filter(|_| elsewhere.is_none()).unwrap_or(0).into();
            self.message.function.push(message::Function {
                id,
                name,
                system_name: name,
                filename,
                start_line,
            });
        }
        id
    }
}

/// What pprof calls a unit.
fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    }
}

/// The lib of the main program: the one that is called as the process with the most samples. A name of the kernel's is cut
/// off behind 15 bytes.
fn main_lib(profile: &Profile) -> Option<usize> {
    const KERNELS_NAME: usize = 15;
    let busiest = profile.threads().iter().max_by_key(|thread| thread.samples.len())?;
    let name = profile.process(busiest.process).name.as_str();
    let is_program = |lib: &Lib| lib.name == name || name.len() >= KERNELS_NAME && lib.name.starts_with(name);
    profile.libs().iter().position(is_program)
}

/// Whether the function of a frame is inlined, at the same address, into that of the frame that comes next outwards.
fn is_inlined_into(profile: &Profile, inner: FrameId, outer: FrameId) -> bool {
    let (inner, outer) = (profile.frame(inner), profile.frame(outer));
    inner.inline_depth > 0
        && outer.inline_depth == inner.inline_depth - 1
        && inner.address == outer.address
        && profile.func(inner.func).lib == profile.func(outer.func).lib
}
