//! Tests of traces that this crate and other tools write.

use std::io::Write as _;

use nyquist_profile::{
    CategoryId, Marker, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue, Measure, Meta,
    Process, Profile, ProfileBuilder, Sample, Thread, Unit,
};
use prost::Message as _;

use super::message::{
    Callstack, Clock, ClockSnapshot, Defaults, Frame, InternedData, InternedString, Mapping, Packet,
    PerfSample, ProcessTree, SampleDefaults, StreamingProfile, Timebase, Track, TrackEvent, TreeProcess,
    TreeThread,
};
use super::{message, read, read_value, write};
use crate::error::Note;
use crate::test_profile::{profile, stacks_of};

fn written(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, &crate::as_named, &mut out).unwrap();
    out
}

fn trace(packets: &[Packet]) -> Vec<u8> {
    let mut out = Vec::new();
    for packet in packets {
        out.push(1 << 3 | 2);
        packet.encode_length_delimited(&mut out).unwrap();
    }
    out
}

#[test]
fn samples_that_are_written_are_read_again() {
    let imported = read(&written(&profile())).unwrap();
    let (read, written) = (&imported.profile, profile());
    assert_eq!(imported.notes, []);
    assert_eq!(stacks_of(read), stacks_of(&written));
    assert_eq!(read.meta().interval, written.meta().interval);
    assert!(read.meta().measure.is_cpu_time());
    assert_eq!(read.meta().start_time, written.meta().start_time);
    let names: Vec<_> = read.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
    assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
    assert_eq!((&*read.processes()[0].name, &*read.processes()[0].pid), ("app", "77"));
    let frame = read.frames().iter().find(|frame| read.func_name(frame.func) == "main").unwrap();
    let lib = read.lib(read.func(frame.func).lib.unwrap());
    assert_eq!((frame.address, frame.line), (Some(0x1010), Some(17)));
    assert_eq!((&*lib.path, lib.code_id.as_deref()), ("/usr/lib/app", Some("aabb")));
    let source = read.source(read.frame_source(frame).unwrap());
    assert_eq!(read.string(source.filename), "/src/main.c");
}

/// A thread with one sample of this weight in bytes, and overlapping markers.
fn with_markers(weight: u64) -> Profile {
    let measure = Measure { name: "inuse_space".into(), unit: Unit::Bytes };
    let mut builder = ProfileBuilder::new(Meta { interval: 512, measure, ..Meta::default() });
    let process = builder.add_process(Process { pid: "7".into(), name: "p".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "t"));
    let stack = builder.intern_label(None, "f", None);
    builder.add_sample(thread, Sample { weight, ..Sample::new(5, Some(stack), 0) });
    let field = MarkerField { key: "size".into(), label: None, format: MarkerFormat::Integer };
    let schema = MarkerSchema { name: "s".into(), fields: vec![field], ..MarkerSchema::default() };
    let schema = Some(builder.add_marker_schema(schema));
    let category = CategoryId::from_index(0);
    for (name, timing) in [
        ("a", MarkerTiming::Interval(10, 30)),
        ("b", MarkerTiming::Interval(20, 40)),
        ("c", MarkerTiming::Interval(35, 36)),
        ("d", MarkerTiming::Instant(25)),
    ] {
        let name = builder.intern_string(name);
        let values = vec![MarkerValue::Integer(3)];
        builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: None });
    }
    builder.finish()
}

#[test]
fn markers_are_slices_of_their_thread() {
    let read = read(&written(&with_markers(2))).unwrap().profile;
    let measure = Measure { name: "inuse_space".into(), unit: Unit::Bytes };
    assert_eq!((read.meta().interval, &read.meta().measure), (512, &measure));
    assert_eq!(stacks_of(&read), ["f 2"]);
    let [thread] = read.threads() else { panic!("one thread") };
    let markers: Vec<_> = thread.markers.iter().map(|it| (read.string(it.name), it.timing)).collect();
    // The first sample is at 5.
    let expected = [
        ("a", MarkerTiming::Interval(5, 25)),
        ("b", MarkerTiming::Interval(15, 35)),
        ("d", MarkerTiming::Instant(20)),
        ("c", MarkerTiming::Interval(30, 31)),
    ];
    assert_eq!(markers, expected);
    let MarkerValue::String(args) = thread.markers[0].values[1] else { panic!("arguments") };
    assert_eq!(read.string(args), r#"{"size":3}"#);
}

#[test]
fn a_large_weight_becomes_few_samples() {
    let file = written(&with_markers(1_000_000));
    assert!(file.len() < 2000, "{} bytes", file.len());
    let read = read(&file).unwrap().profile;
    let total: u64 = read.threads()[0].samples.iter().map(|it| it.weight).sum();
    assert_eq!(total * read.meta().interval, 512_000_000);
}

fn string(id: u64, text: &str) -> InternedString {
    InternedString { id, text: text.as_bytes().to_vec() }
}

/// Names and stacks of a sequence: stack 1 is `main`, and stack 2 the function that it calls.
fn interned(callee: &str) -> InternedData {
    let frame = |id, function_name, mapping| Frame {
        id,
        function_name,
        mapping,
        address: Some(0x10 * id),
        ..Frame::default()
    };
    InternedData {
        function_names: vec![string(1, "main"), string(2, callee)],
        mapping_paths: vec![string(1, "usr"), string(2, "bin"), string(3, "app")],
        build_ids: vec![string(1, "\u{1}\u{2}")],
        mappings: vec![Mapping { id: 1, build_id: 1, path: vec![1, 2, 3], ..Mapping::default() }],
        frames: vec![frame(1, 1, 1), frame(2, 2, 1)],
        callstacks: vec![Callstack { id: 1, frames: vec![1] }, Callstack { id: 2, frames: vec![1, 2] }],
        ..InternedData::default()
    }
}

fn sample(time: u64, callstack: u64) -> Packet {
    let sample = PerfSample { pid: 5, tid: 6, callstack, ..PerfSample::default() };
    Packet { timestamp: Some(time), sequence: 9, sample: Some(sample), ..Packet::default() }
}

/// A trace like that of the system's own tracer: 100 samples a second of CPU time. The sequence defines its
/// names again.
fn of_the_system() -> Vec<Packet> {
    let timebase = Timebase { frequency: 100, counter: 1, ..Timebase::default() };
    let defaults =
        Defaults { sample: Some(SampleDefaults { timebase: Some(timebase) }), ..Defaults::default() };
    let begin = |callee| Packet {
        sequence: 9,
        sequence_flags: 1,
        interned: Some(interned(callee)),
        defaults: Some(defaults.clone()),
        ..Packet::default()
    };
    let tree = ProcessTree {
        processes: vec![TreeProcess { pid: 5, command: vec![b"/usr/bin/app".to_vec()] }],
        threads: vec![TreeThread { tid: 6, name: b"worker".to_vec(), pid: 5 }],
    };
    let lost = PerfSample { lost: 3, ..PerfSample::default() };
    vec![
        begin("first"),
        sample(1_000_000_000, 1),
        sample(1_010_000_000, 2),
        begin("second"),
        sample(1_020_000_000, 2),
        Packet { sequence: 9, sample: Some(lost), ..Packet::default() },
        // Names may come last, and from another sequence.
        Packet { sequence: 1, process_tree: Some(tree), ..Packet::default() },
    ]
}

fn check_the_systems(bytes: &[u8]) {
    let profile = read(bytes).unwrap().profile;
    assert_eq!(stacks_of(&profile), ["main 1", "main;first 1", "main;second 1"]);
    assert!(profile.meta().measure.is_cpu_time());
    assert_eq!((profile.meta().interval, profile.meta().lost_samples), (10_000_000, 3));
    let [thread] = profile.threads() else { panic!("one thread") };
    let process = profile.process(thread.process);
    assert_eq!((&*thread.name, &*process.name, &*process.pid), ("worker", "app", "5"));
    let [lib] = profile.libs() else { panic!("one lib") };
    assert_eq!((&*lib.path, lib.code_id.as_deref()), ("usr/bin/app", Some("0102")));
}

#[test]
fn a_sequence_may_give_its_names_anew() {
    check_the_systems(&trace(&of_the_system()));
}

#[test]
fn addresses_without_names_are_left_to_the_files() {
    let mut packets = of_the_system();
    assert!(read(&trace(&packets)).unwrap().profile.meta().symbolicated);
    packets[0].interned.as_mut().unwrap().function_names.clear();
    let profile = read(&trace(&packets)).unwrap().profile;
    assert!(!profile.meta().symbolicated);
    assert_eq!(stacks_of(&profile), ["0x10 1", "0x10;0x20 1", "main;second 1"]);
}

#[test]
fn compressed_packets_are_read() {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&trace(&of_the_system())).unwrap();
    let compressed = Packet { compressed: encoder.finish().unwrap(), ..Packet::default() };
    check_the_systems(&trace(&[compressed]));
}

/// Slices of a thread and of its process, from a program that uses Perfetto's library. Its clock has µs
/// relative to the previous packet.
fn of_a_program() -> Vec<Packet> {
    let clock = |id, time, is_incremental, unit_ns| Clock { id, time, is_incremental, unit_ns };
    let clocks = vec![clock(6, 1_000_000, false, 0), clock(64, 0, true, 1000)];
    let event = |delta, track, kind, name| {
        let event = TrackEvent { track, kind, name_id: name, ..TrackEvent::default() };
        Packet { timestamp: Some(delta), clock: 64, sequence: 2, event: Some(event), ..Packet::default() }
    };
    let thread = message::Thread { pid: 8, tid: 9, name: b"io".to_vec(), ..message::Thread::default() };
    let process = message::Process { pid: 8, name: b"program".to_vec(), ..message::Process::default() };
    let names = vec![string(1, "outer"), string(2, "inner"), string(3, "request")];
    vec![
        Packet {
            sequence: 2,
            sequence_flags: 1,
            interned: Some(InternedData { event_names: names, ..InternedData::default() }),
            clocks: Some(ClockSnapshot { clocks, primary: 6 }),
            ..Packet::default()
        },
        Packet {
            sequence: 2,
            track: Some(Track { id: 70, thread: Some(thread), ..Track::default() }),
            ..Packet::default()
        },
        Packet {
            sequence: 2,
            track: Some(Track { id: 71, process: Some(process), ..Track::default() }),
            ..Packet::default()
        },
        event(10, Some(70), 1, 1),
        event(5, Some(70), 1, 2),
        event(0, Some(71), 1, 3),
        event(10, Some(70), 2, 0),
        event(20, Some(70), 2, 0),
        event(5, Some(71), 2, 0),
    ]
}

#[test]
fn slices_are_samples_where_there_are_no_others() {
    let profile = read(&trace(&of_a_program())).unwrap().profile;
    assert_eq!(profile.meta().interval, 5000);
    assert_eq!(stacks_of(&profile), ["outer 5", "outer;inner 2"]);
    let thread = profile.threads().iter().find(|it| it.tid == "9").unwrap();
    assert_eq!((&*thread.name, &*profile.process(thread.process).name), ("io", "program"));
    let main = profile.threads().iter().find(|it| it.tid == "8").unwrap();
    assert_eq!(profile.string(main.markers[0].name), "request");
    assert_eq!(main.markers[0].timing, MarkerTiming::Interval(5000, 40_000));
}

#[test]
fn the_requested_value_is_read() {
    let mut packets = of_the_system();
    packets.extend(of_a_program());
    let thread = message::Thread { pid: 5, tid: 7, reference_us: 100, ..message::Thread::default() };
    let streaming = StreamingProfile { callstacks: vec![1, 2], deltas_us: vec![10, 20] };
    packets.push(Packet {
        sequence: 3,
        sequence_flags: 1,
        interned: Some(interned("streamed")),
        ..Packet::default()
    });
    packets.push(Packet { sequence: 3, thread: Some(thread), ..Packet::default() });
    packets.push(Packet { sequence: 3, streaming: Some(streaming), ..Packet::default() });
    let file = trace(&packets);
    let imported = read_value(&file, Some("streaming")).unwrap();
    assert_eq!(stacks_of(&imported.profile), ["main 1", "main;streamed 1"]);
    assert_eq!(imported.profile.meta().measure, Measure { name: "streaming".into(), unit: Unit::Count });
    let what = "stacks: import --event samples reads them";
    assert_eq!(imported.notes, [Note::LeftOut { count: 3, what: what.into() }]);
    let slices = read_value(&file, Some("slices")).unwrap().profile;
    assert_eq!(stacks_of(&slices), ["outer 5", "outer;inner 2"]);
    let error = read_value(&trace(&of_a_program()), Some("samples")).unwrap_err().to_string();
    assert!(error.contains("no `samples`, but slices"), "{error}");
}

#[test]
fn damage_does_no_harm() {
    let file = written(&profile());
    for length in 0..file.len() {
        let _ = read(&file[..length]);
    }
    for file in [file, trace(&of_the_system()), trace(&of_a_program())] {
        for place in 0..file.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = file.clone();
                damaged[place] = byte;
                let _ = read(&damaged);
            }
        }
    }
    assert!(read(b"").is_err() && read(b"no protobuf").is_err());
}

/// Samples by two counters: CPU time, and cache misses that were read with it. Names of threads and counters are
/// interned, in the sample, or defaults of the sequence.
#[test]
fn stack_samples_have_weights_of_counters() {
    use super::stack_sample_message::{
        CounterDescriptor, CounterUnit, InlineCallstack, InlineFrame, StackSample, StackSampleDefaults,
        TaskContext,
    };
    let clock = CounterDescriptor {
        id: 4,
        name: b"cpu-clock".to_vec(),
        unit: Some(CounterUnit::Known(1)),
        multiplier: Some(1000),
    };
    let misses = CounterDescriptor { id: 5, name: b"cache-misses".to_vec(), ..CounterDescriptor::default() };
    let interned = InternedData {
        tasks: vec![TaskContext { id: 3, pid: 5, tid: 6 }],
        counters: vec![clock.clone(), misses.clone()],
        ..interned("work")
    };
    let packet = |time, stack_sample| Packet {
        timestamp: Some(time),
        sequence: 9,
        stack_sample: Some(stack_sample),
        ..Packet::default()
    };
    let first = StackSample {
        task_id: 3,
        callstack_id: 2,
        primary_id: 4,
        primary_weight: Some(2000),
        follower_ids: vec![5],
        follower_weights: vec![7],
        ..StackSample::default()
    };
    let frame = InlineFrame { function: b"main".to_vec(), file: b"a.c".to_vec(), line: 4 };
    let callstack = Some(InlineCallstack { frames: vec![frame] });
    let second = StackSample {
        task: Some(TaskContext { id: 0, pid: 5, tid: 7 }),
        callstack,
        ..StackSample::default()
    };
    let defaults = Defaults {
        stack_sample: Some(StackSampleDefaults { primary: Some(misses), ..StackSampleDefaults::default() }),
        ..Defaults::default()
    };
    let trace = trace(&[
        Packet { sequence: 9, interned: Some(interned), ..Packet::default() },
        packet(1_000_000, first),
        Packet { sequence: 9, defaults: Some(defaults), ..Packet::default() },
        packet(2_000_000, second),
    ]);
    assert_eq!(crate::detect(&trace, "x"), Some(crate::Format::Perfetto));
    let read = read(&trace).unwrap().profile;
    assert!(read.meta().measure.is_cpu_time());
    assert_eq!((stacks_of(&read), read.meta().interval), (vec!["main;work 1".to_owned()], 2_000_000));
    let misses = read_value(&trace, Some("cache-misses")).unwrap().profile;
    assert_eq!(stacks_of(&misses), ["main 1", "main;work 7"]);
    assert_eq!(misses.meta().measure, Measure { name: "cache-misses".into(), unit: Unit::Count });
    let threads: Vec<_> = misses.threads().iter().map(|it| &*it.tid).collect();
    assert_eq!(threads, ["6", "7"]);
}
