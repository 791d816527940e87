//! Tests of tables that this crate writes, and of damaged ones.

use nyquist_profile::ProcessIndex;

use super::{TableReader, TableWriter, WriteOptions, read, read_labelled, write};
use crate::ProcessLabels;
use crate::test_profile::{counted, profile, stacks_of, waits_of};

const SECOND: u64 = 1_000_000_000;

fn labels(_: ProcessIndex) -> ProcessLabels {
    let labels = vec![("unit".to_owned(), "app.service".to_owned())];
    ProcessLabels { service: "shop".into(), labels }
}

fn written(profile: &nyquist_profile::Profile, slice: Option<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, WriteOptions { paths: &crate::as_named, slice, labels: &labels }, &mut out).unwrap();
    out
}

#[test]
fn what_is_written_is_read_again() {
    for slice in [None, Some(SECOND), Some(3_000_000)] {
        let imported = read(&written(&profile(), slice)).unwrap();
        let (read, expected) = (imported.profile, profile());
        assert_eq!(imported.notes, []);
        assert_eq!(waits_of(&read), waits_of(&expected));
        assert_eq!(read.meta().start_time / 1_000_000, expected.meta().start_time / 1_000_000);
        let names: Vec<_> = read.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
        assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
        assert_eq!(
            (stacks_of(&read), read.meta().interval),
            (stacks_of(&expected), expected.meta().interval)
        );
        assert_eq!((&*read.processes()[0].name, &*read.meta().product), ("app", "app"));
    }
}

/// A file ends with the row group that reaches its size. Together the files have all rows.
#[test]
fn a_large_table_is_several_files() {
    let mut builder = nyquist_profile::ProfileBuilder::new(nyquist_profile::Meta {
        interval: 1,
        ..nyquist_profile::Meta::default()
    });
    let process = builder.add_process(nyquist_profile::Process::default());
    let thread = builder.add_thread(nyquist_profile::Thread::new(process, "1", "main"));
    let stack = Some(builder.intern_label(None, "f", None));
    for time in 0..250_000 {
        builder.add_sample(thread, nyquist_profile::Sample::new(time * 1000 + 1, stack, 0));
    }
    let profile = builder.finish();
    let options = WriteOptions { paths: &crate::as_named, slice: Some(1000), labels: &labels };
    let mut writer = TableWriter::new(&profile, options);
    let mut weights = Vec::new();
    while !writer.is_complete() {
        let mut file = Vec::new();
        writer.write_file(1, &mut file).unwrap();
        let read = read(&file).unwrap().profile;
        weights.push(read.threads()[0].samples.iter().map(|sample| sample.weight).sum::<u64>());
    }
    assert_eq!(weights, [100_000, 100_000, 50_000]);
}

#[test]
fn frames_keep_lines_files_modules_and_build_ids() {
    let read = read(&written(&profile(), None)).unwrap().profile;
    let frame = |name: &str| {
        let frame = read.frames().iter().find(|frame| read.func_name(frame.func) == name).unwrap();
        let lib = read.func(frame.func).lib.map(|lib| read.lib(lib));
        let file =
            read.frame_source(frame).map(|source| read.string(read.source(source).filename).to_owned());
        (frame.line, file, lib.map(|lib| (lib.path.clone(), lib.code_id.clone().unwrap_or_default())))
    };
    let app = Some(("/usr/lib/app".to_owned(), "aabb".to_owned()));
    assert_eq!(frame("main"), (Some(17), Some("/src/main.c".into()), app));
    assert_eq!(frame("worker"), (None, None, None));
}

#[test]
fn other_values_and_times_within_the_profile() {
    let bytes = written(&counted(), Some(SECOND));
    let faults = read_labelled(&bytes, Some("page-faults"), &[]).unwrap().profile;
    assert_eq!(stacks_of(&faults), stacks_of(&counted()));
    assert_eq!(faults.meta().measure, counted().meta().measure);
    let error = read_labelled(&bytes, Some("cpu"), &[]).unwrap_err().to_string();
    assert!(error.contains("page-faults"), "{error}");
}

#[test]
fn rows_are_selected_by_labels() {
    let bytes = written(&profile(), None);
    let read = |labels: &[&str]| {
        let labels: Vec<_> = labels.iter().map(|&label| label.to_owned()).collect();
        read_labelled(&bytes, None, &labels).map(|imported| stacks_of(&imported.profile).len())
    };
    assert_eq!(read(&["service=shop", "unit=app.service"]).unwrap(), stacks_of(&profile()).len());
    assert_eq!((read(&["tid=79"]).unwrap(), read(&["service=other"]).unwrap()), (1, 0));
    let error = read(&["pod=x"]).unwrap_err().to_string();
    assert!(
        error.contains("no label `pod`") && error.contains("service") && error.contains("unit"),
        "{error}"
    );
}

/// As `nyquist export` writes them: the dictionary of the labels is empty.
#[test]
fn a_table_without_labels_is_read() {
    let labels = |_| ProcessLabels { service: "app".into(), labels: Vec::new() };
    let mut out = Vec::new();
    let options = WriteOptions { paths: &crate::as_named, slice: Some(SECOND), labels: &labels };
    write(&profile(), options, &mut out).unwrap();
    assert_eq!(stacks_of(&read(&out).unwrap().profile), stacks_of(&profile()));
}

#[test]
fn several_files_are_one_profile() {
    let mut reader = TableReader::new();
    for _ in 0..3 {
        reader.add(written(&profile(), None)).unwrap();
    }
    let sum = reader.read(None, &[]).unwrap().profile;
    let weight = |profile: &nyquist_profile::Profile| -> u64 {
        profile.threads().iter().flat_map(|thread| &thread.samples).map(|sample| sample.weight).sum()
    };
    assert_eq!((weight(&sum), sum.threads().len()), (3 * weight(&profile()), 2));
}

#[test]
fn an_empty_profile_is_a_table_without_rows() {
    let empty = nyquist_profile::ProfileBuilder::new(nyquist_profile::Meta::default()).finish();
    let error = read(&written(&empty, None)).unwrap_err().to_string();
    assert!(error.contains("no rows"), "{error}");
}

#[test]
fn damaged_files_are_errors() {
    let bytes = written(&profile(), None);
    for length in (0..bytes.len()).step_by(7) {
        assert!(read(&bytes[..length]).is_err(), "{length}");
    }
    let mut read_anyway = 0;
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= [0x01, 0x80, 0xff][place % 3];
        read_anyway += u32::from(read(&damaged).is_ok());
    }
    assert!(read_anyway > 0);
}
