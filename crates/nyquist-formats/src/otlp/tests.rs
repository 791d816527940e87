//! Tests of OpenTelemetry profiles that this crate and other tools write.

use nyquist_profile::{Lib, Measure, Meta, Process, ProfileBuilder, Thread, Unit};
use prost::Message as _;

use super::message::{
    AnyValue, AnyValueContent, Attribute, Dictionary, Function, KeyValue, Line, Location, Mapping, Profile,
    ProfilesData, Resource, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use super::{WriteOptions, read, read_labelled, read_value, write, write_with};
use crate::ProcessLabels;
use crate::error::Note;
use crate::test_profile::{assert_same_stacks, profile, stacks_of};

fn written() -> Vec<u8> {
    let mut out = Vec::new();
    write(&profile(), &crate::as_named, &mut out).unwrap();
    out
}

#[test]
fn what_is_written_is_read_again() {
    let imported = read(&written()).unwrap();
    let (read, written) = (&imported.profile, profile());
    assert_eq!(imported.notes, []);
    assert_same_stacks(read, &written);
    let names: Vec<_> = read.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
    assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
    assert_eq!((&*read.processes()[0].name, &*read.processes()[0].pid), ("app", "77"));
}

/// Pyroscope refuses a stack that comes twice, and takes `samples/count` with a period of `cpu/nanoseconds` as CPU
/// time.
#[test]
fn each_stack_of_a_thread_has_one_sum() {
    let file = ProfilesData::decode(&*written()).unwrap();
    let dictionary = file.dictionary.unwrap();
    let name = |index: i32| String::from_utf8(dictionary.strings[index as usize].clone()).unwrap();
    let kind = |kind: Option<ValueType>| kind.map(|kind| (name(kind.kind), name(kind.unit))).unwrap();
    let profiles: Vec<_> =
        file.resource_profiles.iter().flat_map(|it| &it.scopes).flat_map(|it| &it.profiles).collect();
    let types: Vec<_> =
        profiles.iter().map(|it| (kind(it.sample_type).0, kind(it.period_type).0, it.period)).collect();
    let of = |kind: &str, period: &str, length| (kind.to_owned(), period.to_owned(), length);
    assert_eq!(types, [of("samples", "cpu", 1_000_000), of("off_cpu", "off_cpu", 0)]);
    let mut seen = std::collections::BTreeSet::new();
    for sample in &profiles[0].samples {
        assert_eq!((sample.values.len(), &*sample.times), (1, &[][..]));
        assert!(seen.insert((sample.stack, sample.attributes.clone())));
    }
    assert_eq!(profiles[0].samples.iter().map(|sample| sample.values[0]).sum::<i64>(), 7);
}

#[test]
fn services_are_resources_and_files_have_hashes() {
    let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
    let lib = builder.add_lib(Lib { name: "app".into(), path: "/app".into(), ..Lib::default() });
    let name = builder.intern_string("f");
    let func = builder.intern_func(nyquist_profile::Func::new(name, Some(lib)));
    let frame = builder
        .intern_frame(nyquist_profile::Frame { address: Some(16), ..nyquist_profile::Frame::label(func) });
    let stack = builder.intern_stack(None, frame);
    for (pid, count) in [("1", 2), ("2", 3)] {
        let process = builder.add_process(Process { pid: pid.into(), ..Process::default() });
        let thread = builder.add_thread(Thread::new(process, pid, "main"));
        builder.add_sample(
            thread,
            nyquist_profile::Sample { weight: count, ..nyquist_profile::Sample::new(0, Some(stack), 0) },
        );
    }
    let labels =
        |_| Some(ProcessLabels { service: "shop".into(), labels: vec![("host.name".into(), "a".into())] });
    let options = WriteOptions {
        paths: &crate::as_named,
        file_hash: &|lib| (lib.path == "/app").then(|| "1f".repeat(16)),
        services: Some(&labels),
    };
    let mut out = Vec::new();
    write_with(&builder.finish(), options, &mut out).unwrap();
    let file = ProfilesData::decode(&*out).unwrap();
    let [resource] = &*file.resource_profiles else { panic!("{file:?}") };
    let keys: Vec<_> = resource.resource.iter().flat_map(|it| &it.attributes).map(|it| &*it.key).collect();
    assert_eq!(keys, [&b"service.name"[..], b"host.name"]);
    let [sample] = &*resource.scopes[0].profiles[0].samples else { panic!("{resource:?}") };
    assert_eq!((&*sample.values, &*sample.attributes), (&[5][..], &[][..]));
    let dictionary = file.dictionary.unwrap();
    let id = &dictionary.attributes[dictionary.mappings[1].attributes[0] as usize];
    assert_eq!(dictionary.strings[id.key as usize], b"process.executable.build_id.htlhash");
}

#[test]
fn addresses_lines_inlining_and_libs_survive() {
    let read = read(&written()).unwrap().profile;
    let frame = |name: &str| {
        let frame = read.frames().iter().find(|frame| read.func_name(frame.func) == name).unwrap();
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

/// A file from an agent for a whole machine: processes and threads are attributes of samples, samples are
/// counted, and there are also samples of another value.
fn of_an_agent() -> ProfilesData {
    let texts = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "main",
        "alloc",
        "bytes",
        "thread.name",
        "process.pid",
    ];
    let profile = |kind, unit, samples| Profile {
        sample_type: Some(ValueType { kind, unit }),
        samples,
        period_type: Some(ValueType { kind: 3, unit: 4 }),
        period: 50_000_000,
        ..Profile::default()
    };
    let attribute = |key, content| Attribute { key, value: Some(AnyValue { content: Some(content) }) };
    let sample = |values: &[i64], times: &[u64]| Sample {
        stack: 1,
        attributes: vec![1, 2],
        values: values.to_vec(),
        times: times.to_vec(),
    };
    let cpu = vec![sample(&[], &[1_000_000_000, 1_500_000_000]), sample(&[3], &[2_000_000_000])];
    let profiles = vec![profile(1, 2, cpu), profile(6, 7, vec![sample(&[512], &[])])];
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: None,
            scopes: vec![ScopeProfiles { scope: None, profiles }],
        }],
        dictionary: Some(Dictionary {
            strings: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            functions: vec![Function::default(), Function { name: 5, ..Function::default() }],
            locations: vec![
                Location::default(),
                Location { lines: vec![Line { function: 1, number: 3, column: 0 }], ..Location::default() },
            ],
            stacks: vec![Stack::default(), Stack { locations: vec![1] }],
            attributes: vec![
                Attribute::default(),
                attribute(8, AnyValueContent::Text(b"worker".to_vec())),
                attribute(9, AnyValueContent::Integer(12)),
            ],
            ..Dictionary::default()
        }),
    }
}

#[test]
fn counted_samples_of_a_cpu_clock_are_cpu_time() {
    let imported = read(&of_an_agent().encode_to_vec()).unwrap();
    let profile = &imported.profile;
    assert!(profile.meta().measure.is_cpu_time());
    assert_eq!((profile.meta().interval, stacks_of(profile)), (50_000_000, vec!["main 5".into()]));
    assert_eq!((&*profile.threads()[0].name, &*profile.processes()[0].pid), ("worker", "12"));
    let times: Vec<_> = profile.threads()[0].samples.iter().map(|it| (it.time, it.weight)).collect();
    assert_eq!(times, [(0, 1), (500_000_000, 1), (1_000_000_000, 3)]);
    let what = "samples of other values: import --event NAME reads them";
    assert_eq!(imported.notes, [Note::LeftOut { count: 1, what: what.into() }]);
}

#[test]
fn other_values_are_read_by_their_names() {
    let bytes = of_an_agent().encode_to_vec();
    let alloc = read_value(&bytes, Some("alloc")).unwrap().profile;
    assert_eq!(alloc.meta().measure, Measure { name: "alloc".into(), unit: Unit::Bytes });
    assert_eq!((alloc.meta().interval, stacks_of(&alloc)), (512, vec!["main 1".into()]));
    let samples = read_value(&bytes, Some("samples")).unwrap().profile;
    assert_eq!(samples.meta().measure, Measure { name: "samples".into(), unit: Unit::Count });
    assert_eq!(stacks_of(&samples), ["main 5"]);
    let error = read_value(&bytes, Some("x")).unwrap_err().to_string();
    assert!(error.contains("no profile of `x`, but of alloc, samples"), "{error}");
}

#[test]
fn samples_are_chosen_by_their_labels() {
    let mut file = of_an_agent();
    let dictionary = file.dictionary.as_mut().unwrap();
    dictionary.strings.extend(["sampled", "route"].map(|text| text.as_bytes().to_vec()));
    let attribute = |key, content| Attribute { key, value: Some(AnyValue { content: Some(content) }) };
    dictionary.attributes.extend([
        attribute(10, AnyValueContent::Truth(true)),
        attribute(11, AnyValueContent::Text(b"/a".to_vec())),
        attribute(11, AnyValueContent::Text(b"/b".to_vec())),
    ]);
    let resource = &mut file.resource_profiles[0];
    let service = KeyValue {
        key: b"service.name".to_vec(),
        value: Some(AnyValue { content: Some(AnyValueContent::Text(b"shop".to_vec())) }),
        key_index: 0,
    };
    resource.resource = Some(Resource { attributes: vec![service] });
    let profile = &mut resource.scopes[0].profiles[0];
    profile.attributes = vec![3];
    profile.samples[0].attributes.push(4);
    profile.samples[1].attributes.push(5);
    let bytes = file.encode_to_vec();
    let read = |labels: &[&str]| {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        read_labelled(&bytes, None, &labels)
    };
    for (labels, expected) in [
        (&["route=/a"][..], &["main 2"][..]),
        (&["route=/b", "route=/c"], &["main 3"]),
        (&["route=/a", "route=/b"], &["main 5"]),
        (&["route"], &["main 5"]),
        (&["route=/a", "sampled=true", "service.name=shop", "process.pid=12"], &["main 2"]),
        (&["route=/a", "sampled=false"], &[]),
        (&["service.name=other"], &[]),
    ] {
        assert_eq!(stacks_of(&read(labels).unwrap().profile), expected, "{labels:?}");
    }
    let error = read(&["host"]).unwrap_err().to_string();
    assert!(error.ends_with("but only thread.name, process.pid, sampled, route, service.name"), "{error}");
}

#[test]
fn threads_that_are_written_are_labels() {
    let of = |label: &str| read_labelled(&written(), None, &[label.to_owned()]).unwrap().profile;
    let threads = |profile: &nyquist_profile::Profile| -> Vec<String> {
        profile.threads().iter().map(|thread| thread.name.clone()).collect()
    };
    assert_eq!(threads(&of("thread.name=pool 1")), ["pool 1"]);
    assert_eq!(threads(&of("thread.id=77")), ["app"]);
    assert_eq!(threads(&of("process.pid=77")), ["app", "pool 1"]);
}

#[test]
fn addresses_without_names_are_left_to_the_files() {
    let mut file = of_an_agent();
    assert!(read(&file.encode_to_vec()).unwrap().profile.meta().symbolicated);
    let dictionary = file.dictionary.as_mut().unwrap();
    dictionary.strings.push(b"/bin/app".to_vec());
    dictionary.mappings = vec![Mapping::default(), Mapping { filename: 10, ..Mapping::default() }];
    dictionary.locations[1] = Location { mapping: 1, address: 0x1234, ..Location::default() };
    let profile = read(&file.encode_to_vec()).unwrap().profile;
    assert!(!profile.meta().symbolicated);
    assert_eq!((stacks_of(&profile), &*profile.libs()[0].path), (vec!["0x1234 5".into()], "/bin/app"));
}

#[test]
fn a_cut_file_does_no_harm() {
    let bytes = written();
    for length in 0..bytes.len() {
        let _ = read(&bytes[..length]);
    }
    assert!(read(b"").is_err() && read(b"no protobuf").is_err());
}

/// The published definitions for Python fail on each of these (`DecodeError`).
#[test]
fn a_cut_file_says_so() {
    let whole = written();
    let is_noticed = |end: usize| match read(&whole[..end]) {
        Ok(imported) => imported.notes.contains(&Note::Cut { place: "its end".into() }),
        Err(error) => error.to_string().contains("it is cut off"),
    };
    let unnoticed: Vec<_> = (1..whole.len()).filter(|&end| !is_noticed(end)).collect();
    // A cut between two members of the document leaves a whole document.
    assert!(unnoticed.len() < 4, "{unnoticed:?} of {}", whole.len());
}
