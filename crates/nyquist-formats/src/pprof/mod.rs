//! pprof's format: a gzip-compressed protobuf message, `profile.proto`.

mod heap;
mod label_filter;
pub(crate) mod message;
mod prune;
mod push;
mod read;
mod service;
mod tables;
mod values;
mod write;

pub use heap::VALUES as HEAP_VALUES;
pub(crate) use heap::{PERIOD_TYPE as HEAP_PERIOD_TYPE, period as heap_period};
pub use push::PushSeries;
pub use read::{read, read_labelled, read_value};
pub use service::{MAX_SAMPLES, series_of_measure, write_service};
pub(crate) use tables::Tables;
pub(crate) use values::{factor_of, plausible_period};
pub use write::write;
pub(crate) use write::{has_times, signed, unit_name};

/// Labels of samples that distinguish processes and threads.
mod label {
    pub(super) const PROCESS: &str = "process";
    pub(super) const PID: &str = "pid";
    pub(super) const THREAD: &str = "thread";
    pub(super) const TID: &str = "tid";
}

/// The type of the value for time of waiting.
const OFF_CPU: &str = "off_cpu";

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::test_profile::{assert_same_stacks, profile, stacks_of};
    use nyquist_profile::{
        Frame, Func, Lib, Measure, Meta, Process, ProfileBuilder, Sample, Source, Thread, Unit,
    };

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        write(&profile(), &crate::as_named, &mut out).unwrap();
        out
    }

    #[test]
    fn a_heap_profile_has_four_values() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let schema = Some(builder.add_marker_schema(nyquist_profile::allocation_schema()));
        let stack = Some(builder.intern_label(None, "f", None));
        let (name, category) =
            (builder.intern_string("allocations"), nyquist_profile::CategoryId::from_index(0));
        for values in [[5.0, 6.0, 7.0, 1.0, 2.0, 3.0, 4.0, 1.0], [10.0; 8]] {
            let values = values.into_iter().map(nyquist_profile::MarkerValue::Number).collect();
            let timing = nyquist_profile::MarkerTiming::Instant(1);
            builder.add_marker(
                thread,
                nyquist_profile::Marker { name, timing, category, schema, values, stack },
            );
        }
        let live = builder.finish().with_event_as_samples("live").unwrap();
        let mut out = Vec::new();
        write(&live, &crate::as_named, &mut out).unwrap();
        let of = |name| {
            let profile = super::read_value(&out, name).unwrap().profile;
            let weights = profile.threads().iter().flat_map(|thread| &thread.samples).map(|it| it.weight);
            weights.sum::<u64>() * profile.meta().interval
        };
        assert_eq!(of(None), 15);
        let values = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
        assert_eq!(values.map(|name| of(Some(name))), [14, 17, 12, 15]);
        assert_eq!(["total", "live-blocks"].map(|name| of(Some(name))), [17, 12]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let imported = read(&written()).unwrap();
        let (read, written) = (&imported.profile, profile());
        assert_eq!(imported.notes, []);
        assert_same_stacks(read, &written);
        // Samples have no times, but the length of the recording is stated.
        assert_eq!(read.meta().profiling_end, written.meta().profiling_end);
        let names: Vec<_> = read.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
        assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
        assert_eq!(read.processes()[0].name, "app");
    }

    #[test]
    fn a_recording_begins_with_its_first_sample() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let stack = builder.intern_label(None, "f", None);
        for time in [324_000_000_000, 324_037_000_000] {
            builder.add_sample(thread, Sample::new(time, Some(stack), 0));
        }
        builder.meta_mut().profiling_end = Some(324_038_000_000);
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        assert_eq!(read(&out).unwrap().profile.meta().profiling_end, Some(38_000_000));
    }

    /// A profile of Go's heap: `main` calls `work`, which calls the allocator.
    fn heap() -> Vec<u8> {
        use super::message::{Function, Line, Location, Profile, Sample, ValueType};
        use prost::Message;
        let texts = [
            "",
            "inuse_objects",
            "count",
            "inuse_space",
            "bytes",
            "main",
            "work",
            "runtime.mallocgc",
            r"runtime\..*",
        ];
        let location = |id| {
            let line = vec![Line { function_id: id, number: 3, column: 0 }];
            Location { id, line, ..Location::default() }
        };
        let sample = |locations: &[u64], value: [i64; 2]| Sample {
            location_id: locations.to_vec(),
            value: value.to_vec(),
            ..Sample::default()
        };
        let file = Profile {
            sample_type: vec![ValueType { kind: 1, unit: 2 }, ValueType { kind: 3, unit: 4 }],
            sample: vec![sample(&[3, 2, 1], [2, 512]), sample(&[2, 1], [1, 1024])],
            location: (1..4).map(location).collect(),
            function: (1..4).map(|id| Function { id, name: id as i64 + 4, ..Function::default() }).collect(),
            string_table: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            drop_frames: 8,
            period_type: Some(ValueType { kind: 3, unit: 4 }),
            period: 524_288,
            ..Profile::default()
        };
        file.encode_to_vec()
    }

    #[test]
    fn a_heap_profile_counts_bytes_without_allocator() {
        let space = read(&heap()).unwrap();
        assert_eq!(space.notes, []);
        assert_eq!(stacks_of(&space.profile), ["main;work 3"]);
        let meta = space.profile.meta();
        let measure = Measure { name: "inuse_space".into(), unit: Unit::Bytes };
        assert_eq!((meta.interval, &meta.measure), (512, &measure));
        let objects = super::read_value(&heap(), Some("inuse_objects")).unwrap().profile;
        assert_eq!(
            (objects.meta().measure.unit, stacks_of(&objects)),
            (Unit::Count, vec!["main;work 3".into()])
        );
        assert!(super::read_value(&heap(), Some("cpu")).is_err());
        // Writing it gives the same profile again.
        let mut out = Vec::new();
        write(&space.profile, &crate::as_named, &mut out).unwrap();
        let again = read(&out).unwrap().profile;
        assert_eq!((&again.meta().measure, again.meta().interval), (&measure, 1536));
        assert_eq!(stacks_of(&again), ["main;work 1"]);
    }

    #[test]
    fn who_calls_an_allocator_is_the_site() {
        let read_as = |name: &str| {
            let measure = Measure { name: name.into(), unit: Unit::Bytes };
            let mut builder = ProfileBuilder::new(Meta { interval: 1, measure, ..Meta::default() });
            let process = builder.add_process(Process::default());
            let thread = builder.add_thread(Thread::new(process, "1", "main"));
            let caller = builder.intern_label(None, "f", None);
            let stack = builder.intern_label(Some(caller), "operator new(unsigned long)", None);
            builder.add_sample(thread, Sample { weight: 64, ..Sample::new(0, Some(stack), 0) });
            let mut out = Vec::new();
            write(&builder.finish(), &crate::as_named, &mut out).unwrap();
            stacks_of(&read(&out).unwrap().profile)
        };
        assert_eq!(read_as("inuse_space"), ["f 1"]);
        assert_eq!(read_as("copied"), ["f;operator new(unsigned long) 1"]);
    }

    #[test]
    fn the_first_mapping_is_the_main_programs() {
        use prost::Message;
        let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
        let lib = |name: &str| Lib {
            name: name.into(),
            path: format!("/{name}"),
            debug_name: name.into(),
            ..Lib::default()
        };
        builder.add_lib(lib("libc.so.6"));
        builder.add_lib(lib("app"));
        let process = builder.add_process(Process { name: "app".into(), ..Process::default() });
        builder.add_thread(Thread::new(process, "1", "main"));
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        let plain = crate::gzip::decompress(&out).unwrap().0;
        let file = super::message::Profile::decode(plain.as_slice()).unwrap();
        let names = file.mapping.iter().map(|mapping| &file.string_table[mapping.filename as usize]);
        assert_eq!(names.collect::<Vec<_>>(), [b"/app".as_slice(), b"/libc.so.6".as_slice()]);
    }

    #[test]
    fn addresses_lines_inlining_and_libs_survive() {
        let read = read(&written()).unwrap().profile;
        let frame = |name: &str| {
            let found = read.frames().iter().find(|frame| read.func_name(frame.func) == name);
            let frame = found.unwrap();
            let lib = read.func(frame.func).lib.map(|lib| read.lib(lib));
            let lib = lib.map(|lib| (lib.path.clone(), lib.code_id.clone().unwrap_or_default()));
            (frame.address, frame.inline_depth, frame.line, lib)
        };
        let app = Some(("/usr/lib/app".to_owned(), "aabb".to_owned()));
        let libc = Some(("/usr/lib/libc.so.6".to_owned(), "ccdd".to_owned()));
        assert_eq!(frame("main"), (Some(0x1010), 0, Some(17), app.clone()));
        assert_eq!(frame("inlined; x"), (Some(0x1010), 1, Some(3), app));
        assert_eq!(frame("write"), (Some(0x20_0004), 0, None, libc));
        assert_eq!(frame("worker"), (None, 0, None, None));
    }

    #[test]
    fn a_line_in_another_file_keeps_both_files() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let [own, included] = ["/own.c", "/included.inc"].map(|path| {
            let filename = builder.intern_string(path);
            builder.intern_source(Source { filename })
        });
        let name = builder.intern_string("function");
        let func = builder.intern_func(Func { source: Some(own), line: Some(4), ..Func::new(name, None) });
        for (time, source) in [(0, Some(included)), (1_000_000, None)] {
            let frame = builder.intern_frame(Frame { source, line: Some(5), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight: 1, ..Sample::new(time, Some(stack), 0) });
        }
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        let read = read(&out).unwrap().profile;
        let mut places: Vec<_> = (read.frames().iter().filter(|frame| frame.line.is_some()))
            .map(|frame| {
                let source = read.source(read.frame_source(frame).unwrap());
                let begins = read.func(frame.func).line;
                (read.func_name(frame.func), read.string(source.filename), begins, frame.line)
            })
            .collect();
        places.sort_unstable();
        // The function's start line is only stated for its own file.
        let expected =
            [("function", "/included.inc", None, Some(5)), ("function", "/own.c", Some(4), Some(5))];
        assert_eq!(places, expected);
    }

    #[test]
    fn files_have_the_paths_that_are_given() {
        let mut out = Vec::new();
        let paths = |file: &str| file.strip_prefix("/src/").map(|rest| format!("/elsewhere/{rest}"));
        write(&profile(), &paths, &mut out).unwrap();
        let read = read(&out).unwrap().profile;
        let files = read.sources().iter().map(|source| read.string(source.filename));
        assert!(files.clone().count() > 0 && files.clone().all(|file| file.starts_with("/elsewhere/")));
    }

    #[test]
    fn a_cut_file_gives_what_comes_before() {
        let written = written();
        let plain = crate::gzip::decompress(&written).unwrap().0;
        let mut notes = 0;
        for length in 0..plain.len() {
            if let Ok(imported) = read(&plain[..length]) {
                notes += imported.notes.len();
            }
        }
        assert!(notes > 0);
        assert!(read(b"").is_err());
        assert!(read(b"no protobuf").is_err());
    }

    /// `go tool pprof -raw` shows the last value without an option, unless another one is the default.
    #[test]
    fn cpu_time_is_the_last_value() {
        use prost::Message as _;
        let bytes = crate::gzip::decompress(&written()).unwrap().0;
        let file = super::message::Profile::decode(&*bytes).unwrap();
        let text = |index: i64| String::from_utf8(file.string_table[index as usize].clone()).unwrap();
        let types: Vec<_> = file.sample_type.iter().map(|it| text(it.kind)).collect();
        assert_eq!(types, ["samples", "off_cpu", "cpu"]);
        assert_eq!(text(file.default_sample_type), "cpu");
        assert!(file.duration_nanos > 0);
    }

    #[test]
    fn counts_take_no_time() {
        use prost::Message as _;
        let counted = crate::folded::read(&b"main;a 700\nmain;b 3\n"[..]).unwrap().profile;
        let mut out = Vec::new();
        write(&counted, &crate::as_named, &mut out).unwrap();
        let bytes = crate::gzip::decompress(&out).unwrap().0;
        assert_eq!(super::message::Profile::decode(&*bytes).unwrap().duration_nanos, 0);
    }

    /// `go tool pprof -top` shows one row for these.
    #[test]
    fn mappings_of_one_file_are_one_lib() {
        use super::message::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
        use prost::Message as _;
        let location = |id| Location {
            id,
            mapping_id: id,
            address: id * 0x1000 + 0x10,
            line: vec![Line { function_id: 1, ..Line::default() }],
        };
        let mapping = |id, build_id| Mapping {
            id,
            memory_start: id * 0x1000,
            memory_limit: id * 0x1000 + 0x1000,
            filename: 3,
            build_id,
            ..Mapping::default()
        };
        let sample = |id| Sample { location_id: vec![id], value: vec![id as i64], ..Sample::default() };
        let file = Profile {
            sample_type: vec![ValueType { kind: 1, unit: 2 }],
            string_table: ["", "samples", "count", "/app", "f", "aabb"]
                .map(|text| text.as_bytes().to_vec())
                .into(),
            mapping: vec![mapping(1, 0), mapping(2, 5)],
            function: vec![Function { id: 1, name: 4, ..Function::default() }],
            location: vec![location(1), location(2)],
            sample: vec![sample(1), sample(2)],
            ..Profile::default()
        };
        let profile = read(&file.encode_to_vec()).unwrap().profile;
        assert_eq!((profile.libs().len(), profile.funcs().len()), (1, 1));
        assert_eq!(profile.libs()[0].code_id.as_deref(), Some("aabb"));
    }
}
