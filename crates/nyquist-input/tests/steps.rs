//! The steps from a path to a profile: opening, unpacking, reading, and looking up names.

use bzip2::Compression;
use bzip2::read::BzEncoder;
use nyquist_convert::Progress;
use nyquist_input::{
    Finders, InputError, InputFile, Note, ReadObserver, ReadOptions, UnknownContent, look_up_missing_names,
};
use nyquist_perf::file::{Features, FileWriter, WrittenEvent};
use nyquist_perf::{ByteOrder, EventAttr, RecordId, SampleType};
use nyquist_profile::{Frame, Func, Lib, Meta, Process, Profile, ProfileBuilder, Sample, Thread};
use nyquist_symbols::Finder;
use std::cell::RefCell;
use std::fs;
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keeps notes, and finds no files.
#[derive(Default)]
struct Caller {
    notes: RefCell<Vec<Note>>,
}

impl ReadObserver for Caller {
    fn note(&self, note: Note) {
        self.notes.borrow_mut().push(note);
    }
}

impl Finders for Caller {
    fn finder(&self, _folders: &[PathBuf], _work: Option<&Arc<Progress>>) -> Finder {
        Finder::default()
    }
}

impl Caller {
    fn options(&self) -> ReadOptions<'_> {
        ReadOptions::new(self, self)
    }

    fn read(&self, path: &Path, options: ReadOptions<'_>) -> Result<Profile, InputError> {
        let opened =
            InputFile::open(path).map_err(|source| InputError::Read { path: path.into(), source })?;
        opened.unpack(self)?.read(options)
    }
}

/// A file of this name with these contents, in a folder of its own.
fn file(name: &str, contents: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nyquist-input-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, contents).unwrap();
    path
}

fn remove(path: &Path) {
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    BzEncoder::new(text.as_bytes(), Compression::best()).read_to_end(&mut packed).unwrap();
    packed
}

#[test]
fn a_packed_file_is_unpacked_and_read() {
    let caller = Caller::default();
    let path = file("a.folded.bz2", &packed("main;parse 3\nmain;write 4\n"));
    let profile = caller.read(&path, caller.options()).unwrap();
    let weights: u64 = profile.threads()[0].samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(weights, 7);
    assert!(caller.notes.borrow().is_empty());
    remove(&path);
}

#[test]
fn of_a_cut_file_the_beginning_is_read() {
    let caller = Caller::default();
    let mut numbers = 0_u64;
    // Several blocks, which are compressed badly.
    let lines = (0..60_000).map(|_| {
        numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("main;f{numbers:x} 1\n")
    });
    let packed = packed(&lines.collect::<String>());
    let path = file("cut.folded.bz2", &packed[..packed.len() - 9]);
    let profile = caller.read(&path, caller.options()).unwrap();
    assert!(!profile.threads()[0].samples.is_empty());
    assert!(matches!(&caller.notes.borrow()[..], [Note::Cut { .. }, ..]), "{:?}", caller.notes);
    remove(&path);
}

#[test]
fn an_unknown_format_says_what_it_may_be() {
    let contents: [(&str, &[u8], _); 3] = [
        ("empty", b"", UnknownContent::Nothing),
        ("script", b"#!/bin/sh\n", UnknownContent::Program),
        ("notes.txt", b"some notes\n", UnknownContent::Other),
    ];
    for (name, bytes, expected) in contents {
        let (caller, path) = (Caller::default(), file(name, bytes));
        let error = caller.read(&path, caller.options()).unwrap_err();
        let is_expected = matches!(error, InputError::UnknownFormat { content, .. } if content == expected);
        assert!(is_expected, "{name}: {error:?}");
        remove(&path);
    }
}

#[test]
fn what_cannot_be_opened_is_the_systems_error() {
    let check = |path: &Path, expected| {
        assert_eq!(InputFile::open(path).map(|_| ()).unwrap_err().kind(), expected, "{path:?}");
    };
    check(&std::env::temp_dir().join("no-such-file"), std::io::ErrorKind::NotFound);
    check(&std::env::temp_dir(), std::io::ErrorKind::IsADirectory);
    assert!(matches!(InputFile::check_name(Path::new("a.tar.bz2")), Err(InputError::Archive { .. })));
    assert!(InputFile::check_name(Path::new("perf.data")).is_ok());
}

/// `perf report` shows the same events, those without samples as empty.
#[test]
fn the_first_event_with_samples_is_read() {
    let sample_type =
        SampleType::IDENTIFIER.with(SampleType::IP).with(SampleType::TID).with(SampleType::TIME);
    let event = |kind: u32, number, name: &str| {
        let attr = EventAttr { kind, sample_period: 1, sample_type, ..EventAttr::default() };
        WrittenEvent { attr, name: name.into(), ids: vec![(number, None)] }
    };
    let events = [event(9, 1, "cs_etm/autofdo/k"), event(10, 2, "instructions")];
    let format = events[1].attr.record_format(ByteOrder::Little);
    let id = RecordId { task: Some((7, 7)), time: Some(5), id: Some(2), ..RecordId::default() };
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events.to_vec()).unwrap();
    for _ in 0..24 {
        writer.write_records(&format.encode_sample(2, (0x10, 1), &[], &id)).unwrap();
    }
    let path = file("empty.data", &writer.finish(&Features::default()).unwrap().into_inner());
    let caller = Caller::default();
    let profile = caller.read(&path, caller.options()).unwrap();
    assert_eq!((profile.threads()[0].samples.len(), &*profile.meta().measure.name), (24, "instructions"));
    let is_noted = |note: &Note| matches!(note, Note::EventInstead { shown, .. } if shown == "instructions");
    assert!(caller.notes.borrow().iter().any(is_noted), "{:?}", caller.notes);
    remove(&path);
}

/// A saved profile with one function that has an address in a lib.
fn unnamed_profile() -> Profile {
    let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    let lib = Lib { name: "libgone.so".into(), path: "/nonexistent/libgone.so".into(), ..Lib::default() };
    let lib = builder.add_lib(lib);
    let name = builder.intern_string("0x1230");
    let func = builder.intern_func(Func::new(name, Some(lib)));
    let frame = builder.intern_frame(Frame { address: Some(0x1230), ..Frame::label(func) });
    let stack = builder.intern_stack(None, frame);
    builder.add_sample(thread, Sample { weight: 1, ..Sample::new(0, Some(stack), 0) });
    builder.finish()
}

#[test]
fn an_event_that_is_not_there_is_an_error() {
    let mut document = Vec::new();
    let options = nyquist_profile::firefox::WriteOptions::default();
    nyquist_profile::firefox::write(&unnamed_profile(), options, &mut document).unwrap();
    let (caller, path) = (Caller::default(), file("p.json", &document));
    let options = ReadOptions { events: vec!["faults".into()], ..caller.options() };
    let error = caller.read(&path, options).unwrap_err();
    assert!(matches!(error, InputError::NoSuchEvent { known, .. } if known.is_empty()));
    assert!(caller.read(&path, caller.options()).is_ok());
    remove(&path);
}

#[test]
fn libs_without_files_are_reported() {
    let reported_libs = |change: fn(&mut ReadOptions<'_>)| {
        let caller = Caller::default();
        let mut options = caller.options();
        change(&mut options);
        look_up_missing_names(Path::new("-"), unnamed_profile(), &options);
        let notes = caller.notes.into_inner();
        let libs = notes.into_iter().map(|note| match note {
            Note::NoFilesOf { libs } => libs,
            other => panic!("{other:?}"),
        });
        libs.flatten().collect::<Vec<_>>()
    };
    assert_eq!(reported_libs(|_| ()), ["libgone.so"]);
    assert!(reported_libs(|options| options.no_symbols = true).is_empty());
}
