//! Writes a profile as OpenTelemetry's profiles.

use std::io::{self, Write};

use nyquist_profile::{FuncKind, Lib, ProcessIndex, Profile, StackId, Thread, Unit, well_known};
use rustc_hash::FxHashMap;

use super::message::{self, AnyValueContent};
use super::{CPU, KERNEL, OFF_CPU, SAMPLES, key};
use crate::pprof::{self, Tables, signed, unit_name};
use crate::{ProcessLabels, SourcePaths};

/// The fields of `ProfilesData`, with the wire type of bytes.
const RESOURCE_TAG: u8 = 1 << 3 | 2;
const DICTIONARY_TAG: u8 = 2 << 3 | 2;

/// How a profile is written.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// Where source files are.
    pub paths: SourcePaths<'a>,
    /// The hash (`htlhash`) of a file without a build id.
    pub file_hash: &'a dyn Fn(&Lib) -> Option<String>,
    /// The service and labels of each process that is written. Processes that have the same are one resource, without
    /// threads. `None`: each process is a resource, whose samples have threads.
    pub services: Option<&'a dyn Fn(ProcessIndex) -> Option<ProcessLabels>>,
}

impl std::fmt::Debug for WriteOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteOptions").finish_non_exhaustive()
    }
}

/// Writes the profile, with a resource for each process.
///
/// # Errors
/// As for [`write_with`].
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    write_with(profile, WriteOptions { paths, file_hash: &|_| None, services: None }, out)
}

/// Writes the profile. A resource contains a profile of the samples' measure (`samples/count` with a period of
/// `cpu/nanoseconds` for CPU time) and, if threads waited, a profile of `off_cpu/nanoseconds`. Each stack has one
/// sum and no times, because receivers refuse a stack that comes twice. O(samples + stacks × depth), in memory of the
/// largest resource.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_with(profile: &Profile, options: WriteOptions<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut writer = OtlpWriter::new(profile, options);
    for (attributes, threads) in resources(profile, options) {
        if let Some(resource) = writer.resource(attributes, &threads) {
            write_message(RESOURCE_TAG, &resource, out)?;
        }
    }
    write_message(DICTIONARY_TAG, &writer.dictionary(), out)
}

/// The attributes of each resource, and its threads.
type ResourceThreads<'a> = (Vec<message::KeyValue>, Vec<&'a Thread>);

fn resources<'a>(profile: &'a Profile, options: WriteOptions<'_>) -> Vec<ResourceThreads<'a>> {
    let mut by_labels: FxHashMap<ProcessLabels, usize> = FxHashMap::default();
    let mut resources: Vec<ResourceThreads<'a>> = Vec::new();
    let mut places = Vec::new();
    for (index, process) in profile.processes().iter().enumerate() {
        let place = match options.services {
            None => {
                let pid = pair(key::PID, id(&process.pid));
                resources.push((vec![pid, pair(key::EXECUTABLE, text(&process.name))], Vec::new()));
                Some(resources.len() - 1)
            }
            Some(services) => services(ProcessIndex::from_index(index)).map(|labels| {
                *by_labels.entry(labels).or_insert_with_key(|labels| {
                    let pairs = labels.labels.iter().map(|(key, value)| pair(key, text(value)));
                    let service = [pair(key::SERVICE, text(&labels.service))];
                    resources.push((service.into_iter().chain(pairs).collect(), Vec::new()));
                    resources.len() - 1
                })
            }),
        };
        places.push(place);
    }
    for thread in profile.threads() {
        if let Some(place) = places[thread.process.index()] {
            resources[place].1.push(thread);
        }
    }
    resources
}

fn pair(key: &str, value: message::AnyValue) -> message::KeyValue {
    message::KeyValue { key: key.as_bytes().to_vec(), value: Some(value), key_index: 0 }
}

fn write_message(tag: u8, message: &impl prost::Message, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![tag];
    message.encode_length_delimited(&mut bytes)?;
    out.write_all(&bytes)
}

struct OtlpWriter<'a> {
    profile: &'a Profile,
    options: WriteOptions<'a>,
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
    fn new(profile: &'a Profile, options: WriteOptions<'a>) -> Self {
        Self {
            profile,
            options,
            tables: Tables::new(profile, options.paths),
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

    /// A resource with its profiles; `None` if they have no samples.
    fn resource(
        &mut self,
        attributes: Vec<message::KeyValue>,
        threads: &[&Thread],
    ) -> Option<message::ResourceProfiles> {
        let profiles: Vec<_> =
            [false, true].into_iter().filter_map(|off_cpu| self.one_kind(threads, off_cpu)).collect();
        if profiles.is_empty() {
            return None;
        }
        let scope = message::Scope { name: b"nyquist".to_vec(), version: env!("CARGO_PKG_VERSION").into() };
        let scopes = vec![message::ScopeProfiles { scope: Some(scope), profiles }];
        Some(message::ResourceProfiles { resource: Some(message::Resource { attributes }), scopes })
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> message::ValueType {
        message::ValueType { kind: self.string(kind), unit: self.string(unit) }
    }

    /// The types of the values and of their period, and the period. Waiting has no period.
    fn types(&mut self, off_cpu: bool) -> (message::ValueType, message::ValueType, i64) {
        let profile = self.profile;
        let (measure, interval) = (&profile.meta().measure, signed(profile.meta().interval));
        let time = unit_name(Unit::Time);
        if off_cpu {
            let kind = self.value_type(OFF_CPU, time);
            (kind, kind, 0)
        } else if measure.is_cpu_time() {
            (self.value_type(SAMPLES, unit_name(Unit::Count)), self.value_type(CPU, time), interval)
        } else {
            let kind = self.value_type(&measure.name, unit_name(measure.unit));
            match pprof::heap_period(profile.meta()) {
                Some(distance) => {
                    let (period, unit) = pprof::HEAP_PERIOD_TYPE;
                    (kind, self.value_type(period, unit), signed(distance))
                }
                None => (kind, kind, interval),
            }
        }
    }

    /// A profile of the samples on the CPU, or of those of waiting; `None` if there are none.
    fn one_kind(&mut self, threads: &[&Thread], off_cpu: bool) -> Option<message::Profile> {
        let meta = self.profile.meta();
        // CPU time is counted in samples, of which each is a period.
        let unit = if !off_cpu && meta.measure.is_cpu_time() { 1 } else { meta.interval };
        let mut sums: FxHashMap<(Vec<i32>, Option<StackId>), i64> = FxHashMap::default();
        for thread in threads {
            let attributes = self.thread_attributes(thread);
            for sample in thread.samples.iter().filter(|it| it.weight > 0 && it.off_cpu == off_cpu) {
                let sum = sums.entry((attributes.clone(), sample.stack)).or_default();
                *sum = sum.saturating_add(signed(sample.weight.saturating_mul(unit)));
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable();
        let samples: Vec<_> = sums
            .into_iter()
            .map(|((attributes, stack), value)| message::Sample {
                stack: stack.map_or(0, |stack| self.stack(stack)),
                attributes,
                values: vec![value],
                times: Vec::new(),
            })
            .collect();
        if samples.is_empty() {
            return None;
        }
        let (sample_type, period_type, period) = self.types(off_cpu);
        Some(message::Profile {
            sample_type: Some(sample_type),
            samples,
            time_unix_nano: meta.start_time.saturating_mul(1000),
            duration_nano: if pprof::has_times(meta) { self.profile.duration() } else { 0 },
            period_type: Some(period_type),
            period,
            attributes: Vec::new(),
        })
    }

    /// The attributes of a thread's samples. With services there are none: each would be a series on the other side.
    fn thread_attributes(&mut self, thread: &Thread) -> Vec<i32> {
        if self.options.services.is_some() {
            return Vec::new();
        }
        vec![self.attribute(key::TID, &thread.tid, id), self.attribute(key::THREAD, &thread.name, text)]
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
            let build_id = lib.code_id.clone().filter(|id| !id.is_empty()).map(|id| (key::BUILD_ID, id));
            let id = build_id.or_else(|| Some((key::FILE_HASH, (self.options.file_hash)(lib)?)));
            written.push(message::Mapping {
                memory_start: mapping.memory_start,
                memory_limit: mapping.memory_limit,
                file_offset: mapping.file_offset,
                filename: mapping.filename as i32,
                attributes: id.map(|(key, id)| self.attribute(key, &id, text)).into_iter().collect(),
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
