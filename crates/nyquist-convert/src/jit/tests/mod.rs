//! Tests of profiles with code that was generated at run time.

pub(crate) mod test_dump;

use crate::converter::Converter;
use crate::event::{Event, EventKind, Pid, Sample, Tid, Timestamp, UserStack};
use crate::jit::tests::test_dump::TestDump;
use crate::options::Options;
use crate::selection::process_filter::ProcessFilter;
use crate::shape::Shape;
use crate::{Progress, Symbols, symbolicate};
use nyquist_object::Avma;
use nyquist_profile::{MarkerTiming, MarkerValue, Meta, Profile, firefox};
use nyquist_symbols::{Finder, KernelSymbols};
use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::{fs, io};

fn options() -> Options {
    Options::new(Timestamp(0), Meta { interval: 1_000_000, ..Meta::default() })
}

fn converter() -> Converter {
    Converter::new(options())
}

/// A converter that marks the functions that compilers have made, of these processes.
fn marking(filter: ProcessFilter) -> Converter {
    let shape = Shape { jit_markers: true, ..Shape::default() };
    Converter::new(Options { shape, filter, ..options() })
}

fn event(time: u64, kind: EventKind) -> Event {
    Event { time: Timestamp(time), cpu: Some(0), kind }
}

fn sample(pid: u32, address: u64) -> EventKind {
    EventKind::Sample(Sample::in_user_code(Pid(pid), UserStack::Walked(vec![Avma(address)])))
}

/// The function, its category and its file of each sample, by time.
fn names(converter: Converter) -> Vec<String> {
    let profile = named(converter);
    profile.threads()[0].samples.iter().map(|sample| describe(&profile, sample.stack)).collect()
}

fn named(converter: Converter) -> Profile {
    let finished = converter.finish();
    let finder = Finder::default();
    let symbols = Symbols {
        finder: &finder,
        kernel: |_| KernelSymbols::parse(io::empty(), io::empty(), &[]),
        threads: NonZeroUsize::MIN,
    };
    symbolicate(finished.profile, finished.libs.sources(), symbols, &Progress::default()).profile
}

fn describe(profile: &Profile, stack: Option<nyquist_profile::StackId>) -> String {
    let frame = profile.frame(profile.stack(stack.unwrap()).frame);
    let func = profile.func(frame.func);
    let category = &profile.category(frame.category.unwrap().category).name;
    let file = func.source.map_or("", |source| profile.string(profile.source(source).filename));
    format!("{} {category} {file}:{}", profile.string(func.name), frame.line.unwrap_or_default())
}

#[test]
fn a_sample_waits_until_its_code_is_noted() {
    let own = std::process::id();
    let dump = TestDump::new(0);
    let mut converter = converter();
    converter.push(event(1, EventKind::Map(dump.mapping(Pid(own)))));
    converter.push(event(100, sample(own, 0x7000_0004)));
    converter.push(event(300, sample(own, 0x7000_0004)));
    converter.advance(Timestamp(400));
    assert_eq!(converter.snapshot().threads()[0].samples.len(), 0, "nothing is written yet");
    dump.load(50, 0x7000_0000, 16, 1, "JS:~first /x.js:1:2");
    dump.lines(199, 0x7000_0000, &[(0x7000_0000, 7, "/x.js")]);
    dump.load(200, 0x7000_0000, 16, 2, "JS:*second /x.js:5:2");
    converter.advance(Timestamp(401));
    assert_eq!(converter.snapshot().threads()[0].samples.len(), 1, "up to the last record");
    assert_eq!(
        names(converter),
        ["first JavaScript (interpreter) /x.js:0", "second JavaScript (optimized) /x.js:7"]
    );
}

#[test]
fn script_functions_are_written_as_javascript() {
    let own = std::process::id();
    let dump = TestDump::new(0);
    dump.load(1, 0x7000_0000, 16, 1, "JS:~script /x.js:1:2");
    dump.load(2, 0x7000_0100, 16, 2, "Builtin:ArrayMap");
    let mut converter = converter();
    converter.push(event(3, EventKind::Map(dump.mapping(Pid(own)))));
    converter.push(event(100, sample(own, 0x7000_0004)));
    converter.push(event(101, sample(own, 0x7000_0104)));
    let mut written = Vec::new();
    let options = firefox::WriteOptions { gzip: false, ..firefox::WriteOptions::default() };
    firefox::write(&named(converter), options, &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    for part in [r#""isJS":[true,false]"#, r#""usesOnlyOneStackType":false"#] {
        assert!(written.contains(part), "{part}: {written}");
    }
}

#[test]
fn a_jitdump_removed_from_its_folder_is_read_on() {
    let own = std::process::id();
    let dump = TestDump::new(0);
    dump.load(1, 0x7000_0000, 16, 1, "JS:~first /x.js:1:2");
    let mut converter = Converter::new(Options { unlink_jitdumps: true, ..options() });
    converter.push(event(2, EventKind::Map(dump.mapping(Pid(own)))));
    assert!(!dump.is_there());
    converter.push(event(100, sample(own, 0x7000_0004)));
    assert_eq!(names(converter), ["first JavaScript (interpreter) /x.js:0"]);
}

#[test]
fn jitdump_functions_are_markers_when_made() {
    let own = std::process::id();
    let check = |clock, expected: &[(u64, &str)]| {
        let dump = TestDump::new(clock);
        let mut converter = marking(ProcessFilter::All);
        converter.push(event(2, EventKind::Map(dump.mapping(Pid(own)))));
        dump.load(5, 0x7000_0000, 16, 1, "JS:~first /x.js:1:2");
        converter.advance(Timestamp(6));
        dump.load(9, 0x7000_0100, 16, 2, "second");
        let profile = converter.finish().profile;
        let markers = profile.threads().iter().flat_map(|thread| &thread.markers);
        let found = markers.map(|marker| {
            let (MarkerTiming::Instant(time), [MarkerValue::String(name)]) = (marker.timing, &*marker.values)
            else {
                panic!("{marker:?}")
            };
            assert_eq!(profile.string(marker.name), "JitFunctionAdd");
            (time, profile.string(*name))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    };
    check(0, &[(5, "JS:~first /x.js:1:2"), (9, "second")]);
    // Times of another clock have no meaning.
    check(1, &[]);
}

#[test]
fn functions_read_before_their_exec_are_markers() {
    let own = std::process::id();
    let dump = TestDump::new(0);
    dump.load(5, 0x7000_0000, 16, 1, "first");
    let mut converter = marking(ProcessFilter::FromExec(Pid(own)));
    let name = EventKind::Name { pid: Pid(own), tid: Tid(own), name: "app".to_owned(), exec: true };
    converter.push(event(2, name));
    converter.push(event(3, EventKind::Map(dump.mapping(Pid(own)))));
    converter.advance(Timestamp(1));
    let profile = converter.finish().profile;
    assert_eq!(profile.threads().iter().map(|thread| thread.markers.len()).sum::<usize>(), 1);
}

#[test]
fn a_perf_map_names_what_no_file_holds() {
    // The test does not use its own process, because other tests have samples of it at the same time.
    let mut program = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = program.id();
    let path = format!("/tmp/perf-{pid}.map");
    fs::write(&path, "7f0012340000 100 py::work:/srv/app.py\n").unwrap();
    let mut converter = converter();
    for (time, address) in [(1, 0x7f00_1234_0010), (2, 0x7f00_1234_0100), (3, 0x1000)] {
        converter.push(event(time, sample(pid, address)));
    }
    let names = names(converter);
    fs::remove_file(path).unwrap();
    // The process ends when its input ends.
    program.wait().unwrap();
    assert_eq!(names, ["work Python /srv/app.py:0", "0x7f0012340100 User :0", "0x1000 User :0"]);
}
