//! The samples of one service and kind as files of pprof that Pyroscope accepts: no labels, and not too many stacks.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_profile::{ProcessIndex, Profile, StackId};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::tables::Tables;
use super::{OFF_CPU, has_times, heap, message, signed, unit_name};
use crate::SourcePaths;

/// The most samples of a file. Pyroscope's own limit is the default.
pub const MAX_SAMPLES: usize = 16_000;

/// The most bytes of a file before compression, by which Pyroscope's limits of 4 MiB and 2 MB a second are kept.
const MAX_BYTES: usize = 2_000_000;

/// Writes the samples of these processes that were on the CPU, or those that waited. Each stack has one sum. There are
/// several files if there are too many stacks, and none without a sample.
///
/// # Errors
/// If memory cannot be written.
pub fn write_service(
    profile: &Profile,
    paths: SourcePaths<'_>,
    processes: &dyn Fn(ProcessIndex) -> bool,
    off_cpu: bool,
) -> io::Result<Vec<Vec<u8>>> {
    let mut sums: FxHashMap<Option<StackId>, u64> = FxHashMap::default();
    for thread in profile.threads().iter().filter(|thread| processes(thread.process)) {
        for sample in thread.samples.iter().filter(|it| it.weight > 0 && it.off_cpu == off_cpu) {
            let sum = sums.entry(sample.stack).or_default();
            *sum = sum.saturating_add(sample.weight);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable();
    let mut files = Vec::new();
    let mut parts: Vec<&[Summed]> = sums.chunks(MAX_SAMPLES).rev().collect();
    while let Some(part) = parts.pop() {
        let bytes = encode(profile, paths, part, off_cpu);
        if bytes.len() > MAX_BYTES && part.len() > 1 {
            let (first, second) = part.split_at(part.len() / 2);
            parts.extend([second, first]);
            continue;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes)?;
        files.push(encoder.finish()?);
    }
    Ok(files)
}

/// The name of a measure in a series and in the types of its files. Pyroscope divides a type at its colons, and a name
/// of Prometheus has letters, digits and `_`.
fn series_name(measure: &str) -> String {
    measure.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect()
}

/// The name of a profile's series. Pyroscope knows the values of a heap profile by the name that Go's have.
pub fn series_of_measure(profile: &Profile) -> String {
    let meta = profile.meta();
    match heap::period(meta) {
        Some(_) => "memory".to_owned(),
        None if meta.measure.is_cpu_time() => "process_cpu".to_owned(),
        None => series_name(&meta.measure.name),
    }
}

/// A stack with its weight.
type Summed = (Option<StackId>, u64);

fn encode(profile: &Profile, paths: SourcePaths<'_>, sums: &[Summed], off_cpu: bool) -> Vec<u8> {
    let meta = profile.meta();
    let mut tables = Tables::new(profile, paths);
    let (kind, unit) = match off_cpu {
        true => (OFF_CPU, "nanoseconds"),
        false if meta.measure.is_cpu_time() => ("cpu", "nanoseconds"),
        false => (&*meta.measure.name, unit_name(meta.measure.unit)),
    };
    let counts_samples = kind == "cpu";
    let value_type = |tables: &mut Tables<'_>, kind: &str, unit: &str| message::ValueType {
        kind: tables.string(&series_name(kind)),
        unit: tables.string(unit),
    };
    if counts_samples {
        let samples = value_type(&mut tables, "samples", "count");
        tables.message.sample_type.push(samples);
    }
    let main = value_type(&mut tables, kind, unit);
    tables.message.sample_type.push(main);
    let (period_type, period) = match heap::period(meta).filter(|_| !off_cpu) {
        Some(distance) => {
            let (kind, unit) = heap::PERIOD_TYPE;
            (value_type(&mut tables, kind, unit), distance)
        }
        None => (main, meta.interval),
    };
    tables.message.period_type = Some(period_type);
    tables.message.period = signed(period);
    tables.message.time_nanos = signed(meta.start_time.saturating_mul(1000));
    tables.message.duration_nanos = if has_times(meta) { signed(profile.duration()) } else { 0 };
    for &(stack, weight) in sums {
        let mut sample = message::Sample::default();
        sample.value.extend(counts_samples.then(|| signed(weight)));
        sample.value.push(signed(weight.saturating_mul(meta.interval)));
        tables.push_locations(stack, &mut sample.location_id);
        tables.message.sample.push(sample);
    }
    tables.write_mappings();
    tables.message.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::read;
    use crate::test_profile::{profile, stacks_of};

    #[test]
    fn a_service_has_the_stacks_of_its_processes() {
        let files = write_service(&profile(), &crate::as_named, &|_| true, false).unwrap();
        let [file] = &*files else { panic!("{} files", files.len()) };
        assert_eq!(stacks_of(&read(file).unwrap().profile), stacks_of(&profile()));
        let waits = write_service(&profile(), &crate::as_named, &|_| true, true).unwrap();
        assert_eq!(waits.len(), 1);
        assert!(write_service(&profile(), &crate::as_named, &|_| false, false).unwrap().is_empty());
    }

    #[test]
    fn values_of_allocations_have_the_types_of_go() {
        use nyquist_profile::{Measure, Meta, Sample, Thread, Unit};
        let meta = |name: &str, unit| Meta {
            interval: 1,
            measure: Measure { name: name.to_owned(), unit },
            sample_distance: Some(512),
            ..Meta::default()
        };
        for (name, unit, series, types) in [
            ("inuse_space", Unit::Bytes, "memory", ["inuse_space", "bytes", "space", "bytes"]),
            ("alloc_objects", Unit::Count, "memory", ["alloc_objects", "count", "space", "bytes"]),
            ("inuse_space", Unit::Count, "inuse_space", ["inuse_space", "count", "inuse_space", "count"]),
        ] {
            let mut builder = nyquist_profile::ProfileBuilder::new(meta(name, unit));
            let process = builder.add_process(nyquist_profile::Process::default());
            let thread = builder.add_thread(Thread::new(process, "1", "main"));
            builder.add_sample(thread, Sample { weight: 70, ..Sample::new(1, None, 0) });
            let profile = builder.finish();
            let mut files = write_service(&profile, &crate::as_named, &|_| true, false).unwrap();
            let mut bytes = Vec::new();
            let file = files.remove(0);
            io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&file[..]), &mut bytes).unwrap();
            let file = message::Profile::decode(&bytes[..]).unwrap();
            let text = |index: i64| std::str::from_utf8(&file.string_table[index as usize]).unwrap();
            let (kind, period) = (&file.sample_type[0], file.period_type.as_ref().unwrap());
            assert_eq!([kind.kind, kind.unit, period.kind, period.unit].map(text), types);
            assert_eq!((series_of_measure(&profile), file.sample[0].value[0]), (series.to_owned(), 70));
            assert_eq!(file.period, if series == "memory" { 512 } else { 1 });
        }
    }

    #[test]
    fn too_many_stacks_are_several_files() {
        let mut builder = nyquist_profile::ProfileBuilder::new(nyquist_profile::Meta {
            interval: 1,
            ..nyquist_profile::Meta::default()
        });
        let process = builder.add_process(nyquist_profile::Process::default());
        let thread = builder.add_thread(nyquist_profile::Thread::new(process, "1", "main"));
        for number in 0..=MAX_SAMPLES {
            let stack = builder.intern_label(None, &format!("f{number}"), None);
            builder.add_sample(thread, nyquist_profile::Sample::new(number as u64, Some(stack), 0));
        }
        let files = write_service(&builder.finish(), &crate::as_named, &|_| true, false).unwrap();
        let stacks: Vec<_> = files.iter().map(|file| stacks_of(&read(file).unwrap().profile).len()).collect();
        assert_eq!(stacks, [MAX_SAMPLES, 1]);
    }
}
