//! Writes a profile as pprof.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_profile::{Meta, Profile, StackId, ThreadIndex, Unit};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::tables::Tables;
use super::{OFF_CPU, heap, label, message};
use crate::SourcePaths;

/// Writes the profile, compressed. The stacks of each thread are summed up, because pprof has no times.
/// Values are `samples/count`, `off_cpu/nanoseconds` if threads waited, and `cpu/nanoseconds`. A profile of
/// another measure has that value. Labels name the process and the thread. O(samples + stacks of each thread
/// × depth), in memory that does not grow with the number of these stacks.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    // It is compressed with the fast setting, as by pprof's own writers. Compression takes most of the time,
    // and better compression takes several times as long.
    let mut encoder = GzEncoder::new(out, Compression::fast());
    let mut writer = PprofWriter::new(profile, paths);
    writer.write_head();
    writer.flush(&mut encoder)?;
    for index in 0..profile.threads().len() {
        writer.write_thread(ThreadIndex::from_index(index), &mut encoder)?;
    }
    writer.tables.write_mappings();
    writer.flush(&mut encoder)?;
    encoder.finish().map(drop)
}

/// The field of `Profile` that has the samples, with the wire type of bytes.
const SAMPLE_TAG: u8 = 2 << 3 | 2;

/// The number of bytes of samples that are written at once.
const BYTES_AT_ONCE: usize = 1 << 16;

/// The sums of a stack.
#[derive(Clone, Copy, Default)]
struct StackSums {
    samples: i64,
    /// The CPU time, or the other measure of the profile's samples.
    main: i64,
    off_cpu: i64,
}

struct PprofWriter<'a> {
    profile: &'a Profile,
    tables: Tables<'a>,
    has_off_cpu: bool,
    counts_cpu_time: bool,
    /// Which value of a heap profile is shown first, if it is one.
    heap_value: Option<usize>,
}

impl<'a> PprofWriter<'a> {
    fn new(profile: &'a Profile, paths: SourcePaths<'a>) -> Self {
        let has_off_cpu =
            profile.threads().iter().flat_map(|thread| &thread.samples).any(|sample| sample.off_cpu);
        let counts_cpu_time = profile.meta().measure.is_cpu_time();
        let heap_value = heap::shown_value(profile);
        Self { profile, tables: Tables::new(profile, paths), has_off_cpu, counts_cpu_time, heap_value }
    }

    /// Writes the collected data.
    fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        let message = std::mem::take(&mut self.tables.message);
        out.write_all(&message.encode_to_vec())
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> message::ValueType {
        message::ValueType { kind: self.tables.string(kind), unit: self.tables.string(unit) }
    }

    fn write_head(&mut self) {
        let meta = self.profile.meta();
        let main = if let Some(shown) = self.heap_value {
            self.write_heap_types(shown)
        } else if self.counts_cpu_time {
            let samples = self.value_type("samples", "count");
            self.tables.message.sample_type.push(samples);
            self.value_type("cpu", "nanoseconds")
        } else {
            self.value_type(&meta.measure.name, unit_name(meta.measure.unit))
        };
        // Many readers show the last value.
        if self.has_off_cpu && self.heap_value.is_none() {
            let off_cpu = self.value_type(OFF_CPU, "nanoseconds");
            self.tables.message.sample_type.push(off_cpu);
        }
        if self.heap_value.is_none() {
            self.tables.message.sample_type.push(main);
        }
        self.tables.message.period_type = Some(main);
        self.tables.message.period = signed(meta.interval);
        self.tables.message.default_sample_type = main.kind;
        self.tables.message.time_nanos = signed(meta.start_time.saturating_mul(1000));
        if has_times(meta) {
            self.tables.message.duration_nanos = signed(self.profile.duration());
        }
        let arguments = meta.arguments.iter().chain([&meta.product]).find(|text| !text.is_empty());
        if let Some(comment) = arguments {
            let comment = self.tables.string(comment);
            self.tables.message.comment.push(comment);
        }
    }

    /// Writes the types of a heap profile's values, and returns that of the one that is shown.
    fn write_heap_types(&mut self, shown: usize) -> message::ValueType {
        let types = heap::VALUES.map(|(name, measure)| self.value_type(name, unit_name(measure.unit())));
        self.tables.message.sample_type.extend(types);
        types[shown]
    }

    /// The values of each stack of a thread, in the order of their types.
    fn values(&self, thread: ThreadIndex) -> Vec<(Option<StackId>, Vec<i64>)> {
        if self.heap_value.is_some() {
            let sums = heap::sums(self.profile, thread);
            return sums.into_iter().map(|(stack, values)| (stack, values.map(signed).to_vec())).collect();
        }
        let values = |sums: StackSums| {
            let samples = self.counts_cpu_time.then_some(sums.samples);
            let off_cpu = self.has_off_cpu.then_some(sums.off_cpu);
            samples.into_iter().chain(off_cpu).chain([sums.main]).collect()
        };
        self.sums(thread).into_iter().map(|(stack, sums)| (stack, values(sums))).collect()
    }

    fn write_thread(&mut self, thread: ThreadIndex, out: &mut impl Write) -> io::Result<()> {
        let mut sums = self.values(thread);
        sums.sort_unstable_by_key(|&(stack, _)| stack);
        let mut sample = message::Sample { label: self.labels(thread), ..message::Sample::default() };
        let mut bytes = Vec::new();
        for (stack, values) in sums {
            sample.value = values;
            sample.location_id.clear();
            self.tables.push_locations(stack, &mut sample.location_id);
            bytes.push(SAMPLE_TAG);
            sample.encode_length_delimited(&mut bytes)?;
            if bytes.len() >= BYTES_AT_ONCE {
                out.write_all(&bytes)?;
                bytes.clear();
            }
        }
        out.write_all(&bytes)
    }

    fn sums(&self, thread: ThreadIndex) -> FxHashMap<Option<StackId>, StackSums> {
        let mut by_stack: FxHashMap<_, StackSums> = FxHashMap::default();
        for sample in self.profile.thread(thread).samples.iter().filter(|sample| sample.weight > 0) {
            let sums = by_stack.entry(sample.stack).or_default();
            let time = signed(sample.weight.saturating_mul(self.profile.meta().interval));
            if sample.off_cpu {
                sums.off_cpu = sums.off_cpu.saturating_add(time);
            } else {
                sums.samples = sums.samples.saturating_add(signed(sample.weight));
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
                let key = self.tables.string(key);
                match text.parse().ok().filter(|&number: &i64| is_id && number > 0) {
                    Some(number) => message::Label { key, number, text: 0 },
                    None => message::Label { key, text: self.tables.string(text), number: 0 },
                }
            })
            .collect()
    }
}

/// Whether the times of samples mean anything. Bytes and things that were counted without times follow each other.
pub(crate) fn has_times(meta: &Meta) -> bool {
    meta.measure.unit == Unit::Time || !meta.has_exact_times
}

/// A number as pprof's and OpenTelemetry's messages have it. No sum of a real recording comes near the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The name of a unit in pprof.
pub(crate) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    }
}
