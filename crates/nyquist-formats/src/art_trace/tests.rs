//! Tests with traces that are made by the description of their layouts.

use super::read_value;
use crate::error::Note;
use crate::test_profile::stacks_of;
use crate::{Format, detect};
use nyquist_test_support::art_trace::{dual, header, records, sections, streamed};

#[test]
fn methods_have_the_time_of_either_clock() {
    let wall = [
        "app.Main.main 300",
        "app.Main.main;app.Main.work 50",
        "app.Main.main;app.Main.work;java.lang.String.concat 650",
    ];
    let cpu = [
        "app.Main.main 21",
        "app.Main.main;app.Main.work 5",
        "app.Main.main;app.Main.work;java.lang.String.concat 5",
    ];
    for bytes in [dual(), streamed()] {
        assert_eq!(detect(&bytes, "x"), Some(Format::ArtTrace));
        let read = read_value(&bytes, None).unwrap();
        let profile = &read.profile;
        let in_us = |lines: Vec<String>| -> Vec<String> {
            let scale = profile.meta().interval / 1000;
            let scaled = |line: String| {
                let (stack, weight) = line.rsplit_once(' ').unwrap();
                format!("{stack} {}", weight.parse::<u64>().unwrap() * scale)
            };
            lines.into_iter().map(scaled).collect()
        };
        assert_eq!(in_us(stacks_of(profile)), wall);
        assert!(!profile.meta().measure.is_cpu_time());
        let left_out = Note::LeftOut { count: 1, what: "ends of methods that began before the trace".into() };
        assert_eq!(read.notes, [left_out]);
        let names: Vec<_> = profile.threads().iter().map(|thread| &*thread.name).collect();
        assert_eq!((names, &*profile.processes()[0].pid), (vec!["main", "pool 1"], "7"));
        let of_cpu = read_value(&bytes, Some("CPU time")).unwrap().profile;
        assert_eq!(
            (stacks_of(&of_cpu), of_cpu.meta().measure.is_cpu_time()),
            (cpu.map(str::to_owned).to_vec(), true)
        );
    }
}

#[test]
fn one_clock_is_what_the_trace_says() {
    let of =
        |clock: &str, (cpu, wall)| [sections(clock).into_bytes(), header(2, 0), records(cpu, wall)].concat();
    let measure = |bytes: &[u8]| read_value(bytes, None).unwrap().profile.meta().measure.is_cpu_time();
    assert!(measure(&of("thread-cpu", (true, false))) && !measure(&of("wall", (false, true))));
}

#[test]
fn a_trace_that_is_cut_off_says_so() {
    for bytes in [dual(), streamed()] {
        let cut = Note::Cut { place: "its last record".into() };
        let read = read_value(&bytes[..bytes.len() - 3], None).unwrap();
        assert!(read.notes.contains(&cut));
        assert!((0..bytes.len()).all(|end| read_value(&bytes[..end], None).is_ok() || end < bytes.len()));
    }
    assert!(read_value(&header(9, 14), None).unwrap_err().to_string().contains("version 9"));
    assert!(read_value(b"*version\n3\n*end\n", None).is_err());
}

/// The end of a method that was not entered needs no search in those that were. With one, this would take hours.
#[test]
fn ends_of_unknown_methods_cost_no_search() {
    const COUNT: u32 = 100_000;
    let entered = |at: u32| [&7_u16.to_le_bytes()[..], &0x10_u32.to_le_bytes(), &at.to_le_bytes()].concat();
    let left = |at: u32| [&7_u16.to_le_bytes()[..], &0x15_u32.to_le_bytes(), &at.to_le_bytes()].concat();
    let records = (0..COUNT).map(entered).chain((COUNT..2 * COUNT).map(left)).flatten();
    let bytes = [sections("wall").into_bytes(), header(2, 0), records.collect()].concat();
    let read = read_value(&bytes, None).unwrap();
    assert_eq!(read.profile.stacks().len(), COUNT as usize);
    assert!(matches!(read.notes[..], [Note::LeftOut { count, .. }] if count == u64::from(COUNT)));
}
