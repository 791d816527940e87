//! Tests with a handmade capture.

use nyquist_profile::{Measure, Unit};

use super::{Capture, Code, HEADER, NamedRange, read};
use crate::error::Note;
use crate::import::Importer;
use crate::test_profile::stacks_of;
use nyquist_test_support::sysprof::capture;

#[test]
fn samples_have_names_or_addresses_in_libs() {
    let read = read(&capture()).unwrap();
    let profile = &read.profile;
    assert_eq!(
        stacks_of(profile),
        ["0x2000 1", "0x990000 1", "0xffff8010 1", "main;0x3fff;kernel 1", "main;made 1"].map(str::to_owned)
    );
    assert_eq!(profile.meta().measure, Measure { name: "samples".into(), unit: Unit::Count });
    let threads: Vec<_> = profile.threads().iter().map(|it| (&*it.tid, &*it.name)).collect();
    assert_eq!(threads, [("5", "app"), ("7", "app"), ("6", "app"), ("9", "kworker/0:1")]);
    assert_eq!(profile.libs()[0].path, "/usr/bin/app");
    assert!(!profile.meta().symbolicated && read.notes.is_empty());
}

#[test]
fn a_capture_that_is_cut_off_says_so() {
    let whole = capture();
    for end in HEADER..whole.len() {
        if let Ok(read) = read(&whole[..end]) {
            assert!(read.notes.is_empty() || matches!(read.notes[..], [Note::Cut { .. }]));
        }
    }
    let end = whole.len() - 1;
    assert!(matches!(read(&whole[..end]).unwrap().notes[..], [Note::Cut { .. }]));
    assert!(read(&whole[..HEADER]).unwrap_err().to_string().contains("without samples"));
}

/// Each range's name would be the rest of the file.
#[test]
fn names_together_are_no_longer_than_the_file() {
    const LEN: u32 = 1000;
    let capture = Capture { symbols: vec![b'a'; LEN as usize], ..Capture::default() };
    let range = |at: u32| NamedRange { pid: 1, start: at.into(), last: at.into(), name: at };
    let ranges = (0..LEN).map(range).collect();
    let mut importer = Importer::new("x", "y");
    let mut code = Code::new(&capture, ranges);
    let mut lengths = || -> Vec<usize> {
        let names: Vec<_> = (0..LEN).map(|at| code.name(&mut importer, 1, at.into())).collect();
        let profile = importer.builder().profile();
        names.into_iter().map(|name| name.map_or(0, |name| profile.string(name).len())).collect()
    };
    let first = lengths();
    assert_eq!(first.iter().sum::<usize>(), LEN as usize);
    assert_eq!(lengths(), first, "a name stays the same");
    assert_eq!(code.name(&mut importer, 1, LEN.into()), None);
}

/// As for names that differ: this would take hours.
#[test]
fn a_long_name_at_many_addresses_costs_once() {
    const COUNT: u32 = 100_000;
    let capture = Capture { symbols: vec![b'a'; 1 << 20], ..Capture::default() };
    let ranges = vec![NamedRange { pid: 1, start: 0, last: COUNT.into(), name: 0 }];
    let mut importer = Importer::new("x", "y");
    let mut code = Code::new(&capture, ranges);
    let name = code.name(&mut importer, 1, 0);
    assert!(name.is_some());
    assert!((0..COUNT).all(|address| code.name(&mut importer, 1, address.into()) == name));
}
