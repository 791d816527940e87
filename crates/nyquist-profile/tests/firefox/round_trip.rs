//! A profile that is written and read again is the same.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{
    Frame, Func, Measure, Meta, Process, Profile, ProfileBuilder, Sample, Source, Thread, Unit,
};
use nyquist_test_support::sample_profile::{describe, sample_profile};
use serde_json::{Value, json};

fn write(profile: &Profile, version: FormatVersion, gzip: bool) -> Vec<u8> {
    let mut output = Vec::new();
    firefox::write(profile, WriteOptions { version, gzip }, &mut output).unwrap();
    output
}

#[test]
fn everything_comes_back() {
    let mut profile = sample_profile();
    for (version, gzip) in
        [(FormatVersion::V66, true), (FormatVersion::V66, false), (FormatVersion::V49, true)]
    {
        let read = firefox::read(write(&profile, version, gzip).as_slice()).unwrap();
        assert_eq!(describe(&read), describe(&profile), "version {version}, gzip {gzip}");
        profile = read;
    }
}

#[test]
fn the_tables_of_version_66_come_back_unchanged() {
    let profile = sample_profile();
    let read = firefox::read(write(&profile, FormatVersion::V66, true).as_slice()).unwrap();
    assert_eq!(read.stacks(), profile.stacks());
    assert_eq!(read.frames(), profile.frames());
    assert_eq!(read.funcs(), profile.funcs());
    assert_eq!(read.native_symbols(), profile.native_symbols());
    assert_eq!(read.sources(), profile.sources());
}

#[test]
fn subcategories_begin_with_other_after_reading() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let mut document: Value = serde_json::from_slice(&write(&sample_profile(), version, false)).unwrap();
        let tables = match version {
            FormatVersion::V49 => "/threads/0/frameTable",
            FormatVersion::V66 => "/shared/frameTable",
        };
        let place = |column: &str| format!("{tables}/{column}/0");
        let category = document.pointer(&place("category")).unwrap().as_u64().unwrap() as usize;
        document["meta"]["categories"][category]["subcategories"] = json!(["First", "Second"]);
        for (number, name) in [(0, "First"), (1, "Second")] {
            let column = document.pointer_mut(&format!("{tables}/subcategory")).unwrap();
            for value in column.as_array_mut().unwrap() {
                *value = json!(0);
            }
            column[0] = json!(number);
            let read = firefox::read(document.to_string().as_bytes()).unwrap();
            let names = read.categories().iter().map(|category| &*category.subcategories[0]);
            assert!(names.clone().all(|name| name == "Other"), "{:?}", names.collect::<Vec<_>>());
            let named = |frame: &Frame| {
                let pair = frame.category?;
                let category = read.categories().get(pair.category.index())?;
                category.subcategories.get(usize::from(pair.subcategory)).cloned()
            };
            assert!(read.frames().iter().filter_map(named).any(|found| found == name), "{version} {name}");
            assert_eq!(firefox::check_bytes(&write(&read, version, false)).unwrap(), []);
        }
    }
}

#[test]
fn what_samples_count_comes_back() {
    for (name, unit) in [("inuse_space", Unit::Bytes), ("goroutine", Unit::Count), ("wall", Unit::Time)] {
        let measure = Measure { name: name.into(), unit };
        let meta = Meta { interval: 512, measure, has_exact_times: true, ..Meta::default() };
        let mut builder = ProfileBuilder::new(meta);
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let used = builder.intern_label(None, "used", None);
        builder.add_sample(thread, Sample { weight: 3, ..Sample::new(3 * 512, Some(used), 0) });
        builder.meta_mut().profiling_end = Some(2000);
        let profile = builder.finish();
        for version in [FormatVersion::V49, FormatVersion::V66] {
            let json = write(&profile, version, false);
            assert_eq!(firefox::check_bytes(&json).unwrap(), []);
            let text = String::from_utf8_lossy(&json);
            assert_eq!(
                text.contains(r#""weight":[1536,0],"weightType":"bytes""#),
                unit == Unit::Bytes,
                "{text}"
            );
            let read = firefox::read(json.as_slice()).unwrap();
            assert_eq!(read.meta().measure, profile.meta().measure);
            assert_eq!(read.threads()[0].samples, profile.threads()[0].samples);
        }
    }
}

#[test]
fn what_no_sample_reaches_is_left_out() {
    let mut builder = ProfileBuilder::new(Meta::default());
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    builder.intern_label(None, "unused", None);
    let used = builder.intern_label(None, "used", None);
    builder.add_sample(thread, Sample::new(1, Some(used), 0));
    let profile = builder.finish();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let json = String::from_utf8(write(&profile, version, false)).unwrap();
        assert!(json.contains("\"used\"") && !json.contains("\"unused\""), "{json}");
        assert_eq!(firefox::read(json.as_bytes()).unwrap().stacks().len(), 1);
    }
}

#[test]
fn long_recordings_keep_every_nanosecond() {
    let mut builder = ProfileBuilder::new(Meta { has_cpu_deltas: true, ..Meta::default() });
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    // Uneven steps of about a second, for eleven days.
    let times = (0..1_000_000_u64).map(|index| index * 1_000_000_007 + index % 13);
    let times: Vec<_> = times.step_by(7).collect();
    for &time in &times {
        builder.add_sample(thread, Sample::new(time, None, 1));
    }
    let profile = builder.finish();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let read = firefox::read(write(&profile, version, true).as_slice()).unwrap();
        let read: Vec<_> = read.thread(thread).samples.iter().map(|sample| sample.time).collect();
        assert!(read == times, "version {version}");
    }
}

#[test]
fn an_empty_profile_comes_back() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let profile = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() }).finish();
        assert_eq!(firefox::read(write(&profile, version, true).as_slice()).unwrap(), profile);
    }
}

#[test]
fn an_inlined_frame_without_parent_is_a_call() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let mut document: serde_json::Value =
            serde_json::from_slice(&write(&sample_profile(), version, false)).unwrap();
        let tables = if version == FormatVersion::V66 { "/shared" } else { "/threads/0" };
        let address = document.pointer_mut(&format!("{tables}/frameTable/address/0")).unwrap();
        *address = (address.as_u64().unwrap() + 1).into();
        let profile = firefox::read(document.to_string().as_bytes()).unwrap();
        let written = write(&profile, version, false);
        assert_eq!(firefox::check_bytes(&written).unwrap(), [], "version {version}");
        assert_eq!(describe(&firefox::read(written.as_slice()).unwrap()), describe(&profile));
    }
}

#[test]
fn a_marker_value_becomes_what_its_format_says() {
    let check = |format: &str, value: serde_json::Value, expected: serde_json::Value| {
        let mut document: serde_json::Value =
            serde_json::from_slice(&write(&sample_profile(), FormatVersion::V66, false)).unwrap();
        *document.pointer_mut("/meta/markerSchema/0/fields/2/format").unwrap() = format.into();
        *document.pointer_mut("/threads/0/markers/data/0/size").unwrap() = value;
        let profile = firefox::read(document.to_string().as_bytes()).unwrap();
        let written = write(&profile, FormatVersion::V66, false);
        assert_eq!(firefox::check_bytes(&written).unwrap(), [], "{format} {expected}");
        let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written["threads"][0]["markers"]["data"][0]["size"], expected, "{format}");
    };
    check("string", (-5).into(), "-5".into());
    check("string", true.into(), "true".into());
    check("bytes", "4096".into(), 4096.into());
    check("bytes", "many".into(), serde_json::Value::Null);
    check("bytes", true.into(), serde_json::Value::Null);
    check("pid", "77".into(), "77".into());
}

#[test]
fn frames_without_an_address_share_no_func() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let sample: Value = serde_json::from_slice(&write(&sample_profile(), version, false)).unwrap();
        let table = match version {
            FormatVersion::V49 => "/threads/0/frameTable",
            FormatVersion::V66 => "/shared/frameTable",
        };
        let rows = sample.pointer(table).unwrap()["length"].as_u64().unwrap() as usize;
        for (row, address) in (0..rows).flat_map(|row| [-1_i64, 1 << 31].map(|address| (row, address))) {
            let mut document = sample.clone();
            document.pointer_mut(table).unwrap()["address"][row] = address.into();
            let read = firefox::read(document.to_string().as_bytes()).unwrap();
            for written in [FormatVersion::V49, FormatVersion::V66].map(|to| write(&read, to, false)) {
                assert_eq!(firefox::check_bytes(&written).unwrap(), [], "{version} {row} {address}");
            }
        }
    }
}

#[test]
fn a_line_in_another_file_comes_back() {
    let mut builder = ProfileBuilder::new(Meta::default());
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    let [own, included] = ["/own.c", "/included.inc"].map(|path| {
        let filename = builder.intern_string(path);
        builder.intern_source(Source { filename })
    });
    let name = builder.intern_string("function");
    let func = builder.intern_func(Func { source: Some(own), line: Some(4), ..Func::new(name, None) });
    for (time, source) in [(1, Some(included)), (2, None)] {
        let frame = Frame { source, line: Some(5), column: Some(2), ..Frame::label(func) };
        let frame = builder.intern_frame(frame);
        let stack = builder.intern_stack(None, frame);
        builder.add_sample(thread, Sample::new(time, Some(stack), 1));
    }
    let profile = builder.finish();
    let check = |version, expected: &[(&str, Option<u32>, Option<u32>)]| {
        let written = write(&profile, version, false);
        assert_eq!(firefox::check_bytes(&written).unwrap(), [], "version {version}");
        let read = firefox::read(written.as_slice()).unwrap();
        let place = |frame: &Frame| {
            let source = read.source(read.frame_source(frame).unwrap());
            (read.string(source.filename), frame.line, frame.column)
        };
        assert_eq!(read.frames().iter().map(place).collect::<Vec<_>>(), expected, "version {version}");
        let names: Vec<_> = read.funcs().iter().map(|func| read.string(func.name)).collect();
        let funcs = if version == FormatVersion::V49 { 2 } else { 1 };
        assert_eq!(names, vec!["function"; funcs], "version {version}");
        let lines: Vec<_> = read.funcs().iter().filter_map(|func| func.line).collect();
        assert_eq!(lines, [4], "version {version}: it begins in one file alone");
    };
    let own = ("/own.c", Some(5), Some(2));
    let both = [("/included.inc", Some(5), Some(2)), own];
    check(FormatVersion::V66, &both);
    // In it a line refers to the function's file, so the function occurs once per file.
    check(FormatVersion::V49, &both);
}

/// A profile that was read must be written by the format's rules, even if the read file violated them.
fn check_mended(document: &[u8]) -> Profile {
    let profile = firefox::read(document).unwrap();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        assert_eq!(firefox::check_bytes(&write(&profile, version, false)).unwrap(), [], "{version:?}");
    }
    profile
}

#[test]
fn libs_that_nobody_can_ask_for_are_mended() {
    let with_lib = |lib: &str| {
        let document =
            format!(r#"{{"meta":{{"preprocessedProfileVersion":49,"":{{}}}},"libs":[{lib}],"threads":[]}}"#);
        check_mended(document.as_bytes()).libs()[0].clone()
    };
    assert_eq!(with_lib(r#"{"breakpadId":"e"}"#).breakpad_id, "");
    assert_eq!(with_lib(r#"{"debugName":"/opt/a.so"}"#).debug_name, "a.so");
}

#[test]
fn a_symbol_of_another_lib_is_left_out() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let mut document: Value = serde_json::from_slice(&write(&sample_profile(), version, false)).unwrap();
        let tables = if version == FormatVersion::V66 { "/shared" } else { "/threads/0" };
        let place = format!("{tables}/nativeSymbols/libIndex/0");
        let lib = document.pointer_mut(&place).unwrap();
        *lib = json!(1 - lib.as_u64().unwrap());
        check_mended(document.to_string().as_bytes());
    }
}

#[test]
fn numbers_keep_their_last_digit() {
    let numbers = (1..200).map(|n| f64::from(n).sqrt() * 1e5).chain([0.1 + 0.2, 5e-324, f64::MAX]);
    let mut document: Value =
        serde_json::from_slice(&write(&sample_profile(), FormatVersion::V66, false)).unwrap();
    for number in numbers {
        *document.pointer_mut("/counters/0/samples/count/1").unwrap() = json!(number);
        let profile = firefox::read(document.to_string().as_bytes()).unwrap();
        assert_eq!(profile.counters()[0].samples[1].delta.to_bits(), number.to_bits(), "{number}");
    }
}
