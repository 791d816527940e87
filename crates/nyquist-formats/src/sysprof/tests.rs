//! Tests with a handmade capture.

use nyquist_profile::{Measure, Unit};
use rustc_hash::FxHashMap;

use super::{Capture, Code, HEADER, NamedRange, read};
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

/// Each range's name would be the rest of the file.
#[test]
fn names_together_are_no_longer_than_the_file() {
    const LEN: u32 = 1000;
    let capture = Capture { symbols: vec![b'a'; LEN as usize], ..Capture::default() };
    let range = |at: u32| NamedRange { pid: 1, start: at.into(), end: u64::from(at) + 1, name: at };
    let ranges = (0..LEN).map(range).collect();
    let (frames, libs) = (FxHashMap::default(), FxHashMap::default());
    let mut code =
        Code { capture: &capture, ranges, names: FxHashMap::default(), left: LEN as usize, frames, libs };
    let lengths = |code: &mut Code<'_, '_>| -> Vec<usize> {
        (0..LEN).map(|at| code.name(1, at.into()).unwrap().len()).collect()
    };
    let first = lengths(&mut code);
    assert_eq!(first.iter().sum::<usize>(), LEN as usize);
    assert_eq!(lengths(&mut code), first, "a name stays the same");
    assert_eq!(code.name(1, LEN.into()), None);
}
