//! Tests with a handmade capture.

use nyquist_profile::{Measure, Unit};

use super::{HEADER, read};
use crate::error::Note;
use crate::test_profile::stacks_of;
use made::capture;

#[path = "../../tests/made_files/sysprof.rs"]
#[expect(unreachable_pub, reason = "seeds of the fuzzer are made by it, too")]
pub(crate) mod made;

#[test]
fn samples_have_names_or_addresses_in_libs() {
    let read = read(&capture()).unwrap();
    let profile = &read.profile;
    assert_eq!(
        stacks_of(profile),
        ["0x2000 1", "0x990000 1", "main;0x3fff;kernel 1", "main;made 1"].map(str::to_owned)
    );
    assert_eq!(profile.meta().measure, Measure { name: "samples".into(), unit: Unit::Count });
    let threads: Vec<_> = profile.threads().iter().map(|it| (&*it.tid, &*it.name)).collect();
    assert_eq!(threads, [("5", "app"), ("7", "app"), ("6", "6")]);
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
