//! Writing a profile as pprof.

use std::hash::Hash;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_profile::{FrameId, FuncId, Profile, StackId, ThreadIndex};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::{OFF_CPU, label, message};
use crate::layout::Layout;

/// Writes the profile, compressed. The stacks of each thread are summed up: pprof has no times. Values are `samples/count`,
/// `cpu/nanoseconds` and, where threads waited, `off_cpu/nanoseconds`; labels name the process and the thread. O(samples +
/// stacks × depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let message = Writer::new(profile).message();
    let mut encoder = GzEncoder::new(out, Compression::default());
    encoder.write_all(&message.encode_to_vec())?;
    encoder.finish().map(drop)
}

/// The sums of a stack.
#[derive(Clone, Copy, Default)]
struct Sums {
    samples: i64,
    cpu: i64,
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

struct Writer<'a> {
    profile: &'a Profile,
    layout: Layout,
    message: message::Profile,
    strings: FxHashMap<String, i64>,
    locations: Numbers<Vec<FrameId>>,
    functions: Numbers<FuncId>,
    has_off_cpu: bool,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile) -> Self {
        let has_off_cpu =
            profile.threads().iter().flat_map(|thread| &thread.samples).any(|sample| sample.off_cpu);
        let mut writer = Self {
            profile,
            layout: Layout::new(profile),
            message: message::Profile::default(),
            strings: FxHashMap::default(),
            locations: Numbers(FxHashMap::default()),
            functions: Numbers(FxHashMap::default()),
            has_off_cpu,
        };
        writer.string("");
        writer
    }

    fn message(mut self) -> message::Profile {
        self.write_head();
        self.write_mappings();
        for index in 0..self.profile.threads().len() {
            self.write_thread(ThreadIndex::from_index(index));
        }
        self.message
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
        let samples = self.value_type("samples", "count");
        let cpu = self.value_type("cpu", "nanoseconds");
        self.message.sample_type = vec![samples, cpu];
        if self.has_off_cpu {
            let off_cpu = self.value_type(OFF_CPU, "nanoseconds");
            self.message.sample_type.push(off_cpu);
        }
        self.message.period_type = Some(cpu);
        self.message.period = meta.interval as i64;
        self.message.default_sample_type = cpu.kind;
        self.message.time_nanos = meta.start_time.saturating_mul(1000) as i64;
        let duration = meta.profiling_end.unwrap_or(0).saturating_sub(meta.profiling_start.unwrap_or(0));
        self.message.duration_nanos = duration as i64;
        let arguments = meta.arguments.iter().chain([&meta.product]).find(|text| !text.is_empty());
        if let Some(comment) = arguments {
            let comment = self.string(comment);
            self.message.comment.push(comment);
        }
    }

    /// A mapping's id is its lib's index + 1. They all say that they have functions, even if they have not: pprof would
    /// take addresses that are made up for real ones and look for names by itself.
    fn write_mappings(&mut self) {
        for (index, lib) in self.profile.libs().iter().enumerate() {
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

    fn write_thread(&mut self, thread: ThreadIndex) {
        let labels = self.labels(thread);
        let mut sums: Vec<_> = self.sums(thread).into_iter().collect();
        sums.sort_unstable_by_key(|&(stack, _)| stack);
        for (stack, sums) in sums {
            let mut value = vec![sums.samples, sums.cpu];
            if self.has_off_cpu {
                value.push(sums.off_cpu);
            }
            let location_id = self.locations_of(stack);
            self.message.sample.push(message::Sample { location_id, value, label: labels.clone() });
        }
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
                sums.cpu = sums.cpu.saturating_add(time);
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
    fn locations_of(&mut self, stack: Option<StackId>) -> Vec<u64> {
        let profile = self.profile;
        let mut nodes = stack.into_iter().flat_map(|stack| profile.ancestors(stack)).peekable();
        let mut locations = Vec::new();
        while let Some(node) = nodes.next() {
            let mut frames = vec![profile.stack(node).frame];
            let mut inner = profile.stack(node).frame;
            while let Some(&outer) = nodes.peek()
                && is_inlined_into(profile, inner, profile.stack(outer).frame)
            {
                inner = profile.stack(outer).frame;
                frames.push(inner);
                nodes.next();
            }
            locations.push(self.location(frames));
        }
        locations
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
            function_id: self.function(frame.func),
            number: frame.line.unwrap_or(0).into(),
            column: frame.column.unwrap_or(0).into(),
        }
    }

    fn function(&mut self, func: FuncId) -> u64 {
        let (id, is_new) = self.functions.number(func);
        if is_new {
            let func = self.profile.func(func);
            let source =
                func.source.map_or("", |source| self.profile.string(self.profile.source(source).filename));
            let name = self.string(self.profile.string(func.name));
            let filename = self.string(source);
            let start_line = func.line.unwrap_or(0).into();
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

/// Whether the function of a frame is inlined, at the same address, into that of the frame that comes next outwards.
fn is_inlined_into(profile: &Profile, inner: FrameId, outer: FrameId) -> bool {
    let (inner, outer) = (profile.frame(inner), profile.frame(outer));
    inner.inline_depth > 0
        && outer.inline_depth == inner.inline_depth - 1
        && inner.address == outer.address
        && profile.func(inner.func).lib == profile.func(outer.func).lib
}
