//! Writes a profile as OpenTelemetry's profiles.

use std::io::{self, Write};

use nyquist_profile::{FuncKind, Profile, Sample, StackId, Thread, Unit, well_known};
use rustc_hash::FxHashMap;

use super::message::{self, AnyValueContent};
use super::{KERNEL, OFF_CPU, key};
use crate::SourcePaths;
use crate::pprof::{self, Tables, signed, unit_name};

/// The fields of `ProfilesData`, with the wire type of bytes.
const RESOURCE_TAG: u8 = 1 << 3 | 2;
const DICTIONARY_TAG: u8 = 2 << 3 | 2;

/// Writes the profile, with a resource for each process. It contains a profile of the samples' measure
/// (`cpu/nanoseconds` for CPU time) and, if threads waited, a profile of `off_cpu/nanoseconds`. Samples have
/// their times, and threads are attributes. O(samples + stacks × depth), in memory of the largest process.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut writer = OtlpWriter::new(profile, paths);
    for process in 0..profile.processes().len() {
        let threads: Vec<_> = profile.threads().iter().filter(|it| it.process.index() == process).collect();
        if !threads.is_empty() {
            let resource = writer.resource(&threads);
            write_message(RESOURCE_TAG, &resource, out)?;
        }
    }
    write_message(DICTIONARY_TAG, &writer.dictionary(), out)
}

fn write_message(tag: u8, message: &impl prost::Message, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![tag];
    message.encode_length_delimited(&mut bytes)?;
    out.write_all(&bytes)
}

struct OtlpWriter<'a> {
    profile: &'a Profile,
    tables: Tables<'a>,
    stacks: Vec<message::Stack>,
    numbers: FxHashMap<StackId, i32>,
    attributes: Vec<message::Attribute>,
    attribute_numbers: FxHashMap<(&'static str, String), i32>,
}

fn text(text: &str) -> message::AnyValue {
    message::AnyValue { content: Some(AnyValueContent::Text(text.as_bytes().to_vec())) }
}

/// An id, as a number if it is one.
fn id(id: &str) -> message::AnyValue {
    id.parse()
        .map_or_else(|_| text(id), |id| message::AnyValue { content: Some(AnyValueContent::Integer(id)) })
}

impl<'a> OtlpWriter<'a> {
    fn new(profile: &'a Profile, paths: SourcePaths<'a>) -> Self {
        Self {
            profile,
            tables: Tables::new(profile, paths),
            stacks: vec![message::Stack::default()],
            numbers: FxHashMap::default(),
            attributes: vec![message::Attribute::default()],
            attribute_numbers: FxHashMap::default(),
        }
    }

    fn string(&mut self, text: &str) -> i32 {
        self.tables.string(text) as i32
    }

    fn attribute(
        &mut self,
        key: &'static str,
        text: &str,
        value: impl FnOnce(&str) -> message::AnyValue,
    ) -> i32 {
        if let Some(&number) = self.attribute_numbers.get(&(key, text.to_owned())) {
            return number;
        }
        let number = self.attributes.len() as i32;
        let name = self.string(key);
        self.attributes.push(message::Attribute { key: name, value: Some(value(text)) });
        self.attribute_numbers.insert((key, text.to_owned()), number);
        number
    }

    fn resource(&mut self, threads: &[&Thread]) -> message::ResourceProfiles {
        let process = threads.first().map(|thread| self.profile.process(thread.process));
        let pair = |key: &str, value| message::KeyValue {
            key: key.as_bytes().to_vec(),
            value: Some(value),
            key_index: 0,
        };
        let attributes = process.iter().flat_map(|process| {
            [pair(key::PID, id(&process.pid)), pair(key::EXECUTABLE, text(&process.name))]
        });
        let resource = message::Resource { attributes: attributes.collect() };
        let mut profiles = vec![self.one_kind(threads, false)];
        if threads.iter().any(|thread| thread.samples.iter().any(|sample| sample.off_cpu)) {
            profiles.push(self.one_kind(threads, true));
        }
        let scope = message::Scope { name: b"nyquist".to_vec(), version: env!("CARGO_PKG_VERSION").into() };
        let scopes = vec![message::ScopeProfiles { scope: Some(scope), profiles }];
        message::ResourceProfiles { resource: Some(resource), scopes }
    }

    fn value_type(&mut self, off_cpu: bool) -> message::ValueType {
        let measure = &self.profile.meta().measure;
        let (kind, unit) = match off_cpu {
            true => (OFF_CPU, Unit::Time),
            false if measure.is_cpu_time() => ("cpu", Unit::Time),
            false => (measure.name.as_str(), measure.unit),
        };
        message::ValueType { kind: self.string(kind), unit: self.string(unit_name(unit)) }
    }

    /// A profile of the samples on the CPU, or of those of waiting.
    fn one_kind(&mut self, threads: &[&Thread], off_cpu: bool) -> message::Profile {
        let meta = self.profile.meta();
        let has_times = pprof::has_times(meta);
        let kind = self.value_type(off_cpu);
        let mut samples = Vec::new();
        for thread in threads {
            let attributes = vec![
                self.attribute(key::TID, &thread.tid, id),
                self.attribute(key::THREAD, &thread.name, text),
            ];
            let mut by_stack: FxHashMap<Option<StackId>, usize> = FxHashMap::default();
            for sample in thread.samples.iter().filter(|it| it.weight > 0 && it.off_cpu == off_cpu) {
                let place = *by_stack.entry(sample.stack).or_insert_with(|| {
                    samples.push(message::Sample {
                        stack: sample.stack.map_or(0, |stack| self.stack(stack)),
                        attributes: attributes.clone(),
                        ..message::Sample::default()
                    });
                    samples.len() - 1
                });
                let (value, time) = (self.amount(&sample), self.time(&sample));
                let sample = &mut samples[place];
                match sample.values.first_mut().filter(|_| !has_times) {
                    Some(sum) => *sum = sum.saturating_add(value),
                    None => sample.values.push(value),
                }
                sample.times.extend(has_times.then_some(time));
            }
        }
        message::Profile {
            sample_type: Some(kind),
            samples,
            time_unix_nano: meta.start_time.saturating_mul(1000),
            duration_nano: if has_times { self.profile.duration() } else { 0 },
            period_type: Some(kind),
            period: signed(meta.interval),
            attributes: Vec::new(),
        }
    }

    fn amount(&self, sample: &Sample) -> i64 {
        signed(sample.weight.saturating_mul(self.profile.meta().interval))
    }

    fn time(&self, sample: &Sample) -> u64 {
        self.profile.meta().start_time.saturating_mul(1000).saturating_add(sample.time)
    }

    fn stack(&mut self, stack: StackId) -> i32 {
        if let Some(&number) = self.numbers.get(&stack) {
            return number;
        }
        let mut locations = Vec::new();
        self.tables.push_locations(Some(stack), &mut locations);
        let number = self.stacks.len() as i32;
        let locations = locations.into_iter().map(|location| location as i32).collect();
        self.stacks.push(message::Stack { locations });
        self.numbers.insert(stack, number);
        number
    }

    /// The type of frames at each location, if it is not plain native code.
    fn frame_types(&mut self) -> FxHashMap<u64, i32> {
        let (profile, mut types) = (self.profile, FxHashMap::default());
        for (location, frames) in self.tables.locations() {
            let Some(&frame) = frames.first() else { continue };
            let frame = profile.frame(frame);
            let category = frame.category.map(|pair| profile.category(pair.category).name.as_str());
            if category == Some(well_known::KERNEL) {
                types.insert(location, KERNEL);
            } else if profile.func(frame.func).kind == FuncKind::JavaScript {
                types.insert(location, "v8js");
            }
        }
        types
            .into_iter()
            .map(|(location, kind)| (location, self.attribute(key::FRAME_TYPE, kind, text)))
            .collect()
    }

    fn dictionary(mut self) -> message::Dictionary {
        self.tables.write_mappings();
        let types = self.frame_types();
        let file = std::mem::take(&mut self.tables.message);
        let mappings = self.mappings(file.mapping);
        // All strings have been added at this point.
        let mut strings = file.string_table;
        strings.append(&mut self.tables.message.string_table);
        let location = |it: pprof::message::Location| message::Location {
            mapping: it.mapping_id as i32,
            address: it.address,
            lines: it.line.into_iter().map(line).collect(),
            attributes: types.get(&it.id).copied().into_iter().collect(),
        };
        let locations = file.location.into_iter().map(location);
        message::Dictionary {
            mappings,
            locations: [message::Location::default()].into_iter().chain(locations).collect(),
            functions: [message::Function::default()]
                .into_iter()
                .chain(file.function.into_iter().map(function))
                .collect(),
            links: vec![message::Link {}],
            strings,
            attributes: self.attributes,
            stacks: self.stacks,
        }
    }

    /// The mappings by their numbers.
    fn mappings(&mut self, mut mappings: Vec<pprof::message::Mapping>) -> Vec<message::Mapping> {
        mappings.sort_unstable_by_key(|mapping| mapping.id);
        let mut written = vec![message::Mapping::default()];
        for (mapping, lib) in mappings.into_iter().zip(self.profile.libs()) {
            let build_id = lib.code_id.as_deref().filter(|id| !id.is_empty());
            written.push(message::Mapping {
                memory_start: mapping.memory_start,
                memory_limit: mapping.memory_limit,
                file_offset: mapping.file_offset,
                filename: mapping.filename as i32,
                attributes: build_id.map(|id| self.attribute(key::BUILD_ID, id, text)).into_iter().collect(),
            });
        }
        written
    }
}

fn line(line: pprof::message::Line) -> message::Line {
    message::Line { function: line.function_id as i32, number: line.number, column: line.column }
}

fn function(function: pprof::message::Function) -> message::Function {
    message::Function {
        name: function.name as i32,
        system_name: function.system_name as i32,
        filename: function.filename as i32,
        start_line: function.start_line,
    }
}
