//! Tests with generated recordings in the format of the JDK.

use nyquist_profile::{Measure, Profile, Unit};

use super::{read, read_value};
use crate::error::Note;
use crate::test_profile::{stacks_of, waits_of};
use nyquist_test_support::jfr_recording::{EXECUTION, SETTING, WALL, Writer, chunk, events};

fn counts(name: &str, unit: Unit) -> Measure {
    Measure { name: name.into(), unit }
}

fn names_of_threads(profile: &Profile) -> Vec<(&str, &str, &str)> {
    let process = |thread: &nyquist_profile::Thread| profile.process(thread.process);
    profile.threads().iter().map(|it| (&*process(it).name, &*it.tid, &*it.name)).collect()
}

#[test]
fn samples_have_stacks_threads_and_times() {
    for is_compressed in [true, false] {
        let imported = read(&chunk(is_compressed, events)).unwrap();
        let profile = &imported.profile;
        assert_eq!(stacks_of(profile), ["(truncated);Main.main 1", "Main.main;org.Work.spin 1"]);
        assert_eq!(profile.meta().measure, counts("jdk.ExecutionSample", Unit::Count));
        assert_eq!(names_of_threads(profile), [("app.jar", "70", "main"), ("app.jar", "71", "GC")]);
        assert_eq!(profile.processes()[0].pid, "77");
        assert_eq!(profile.meta().arguments.as_deref(), Some("/opt/app.jar --fast"));
        let times: Vec<_> = profile.threads()[0].samples.iter().map(|sample| sample.time).collect();
        assert_eq!(times, [0, 2_000_000]);
        assert_eq!(profile.meta().start_time, 1_000_001_000, "µs since 1970");
        let line = |name| {
            profile.frames().iter().find(|it| profile.func_name(it.func) == name).and_then(|it| it.line)
        };
        assert_eq!((line("org.Work.spin"), line("Main.main")), (Some(7), Some(3)));
        let left_out =
            "events jdk.ObjectAllocationSample: import --event jdk.ObjectAllocationSample reads them";
        assert_eq!(imported.notes, [Note::LeftOut { count: 1, what: left_out.into() }]);
    }
}

/// The JVM leaves out the constant of a thread that ends at that moment. `jfr summary` counts its events.
#[test]
fn samples_of_a_thread_without_a_constant_count() {
    let file = chunk(true, |out| {
        events(out);
        for thread in [999, 998] {
            out.event(EXECUTION, |out| {
                out.long(4500).long(thread).long(1).long(1);
            });
        }
    });
    let imported = read(&file).unwrap();
    let profile = &imported.profile;
    assert_eq!(stacks_of(profile), ["(truncated);Main.main 1", "Main.main;org.Work.spin 3"]);
    assert_eq!(names_of_threads(profile)[2..], [("app.jar", "0", "(unknown thread)")]);
    assert_eq!(imported.notes.len(), 1, "only the allocations: {:?}", imported.notes);
}

#[test]
fn other_values_are_read_by_their_names() {
    let file = chunk(true, events);
    let bytes = read_value(&file, Some("ObjectAllocationSample")).unwrap().profile;
    assert_eq!(bytes.meta().measure, counts("jdk.ObjectAllocationSample", Unit::Bytes));
    let total = |profile: &Profile| {
        let weights = profile.threads().iter().flat_map(|it| &it.samples).map(|it| it.weight);
        weights.sum::<u64>() * profile.meta().interval
    };
    assert_eq!(total(&bytes), 4096);
    let waits = read_value(&file, Some("park")).unwrap().profile;
    assert_eq!(waits.meta().measure, counts("jdk.ThreadPark", Unit::Time));
    assert_eq!((total(&waits), waits.meta().has_exact_times), (250_000, true));
    let error = read_value(&file, Some("cpu-cycles")).unwrap_err().to_string();
    assert!(error.contains("no events `cpu-cycles`"), "{error}");
}

#[test]
fn waits_are_markers_with_stacks() {
    let profile = read(&chunk(true, events)).unwrap().profile;
    let [marker] = profile.threads()[1].markers.as_slice() else { panic!("one marker") };
    assert_eq!(profile.string(marker.name), "jdk.ThreadPark");
    assert_eq!(marker.timing, nyquist_profile::MarkerTiming::Interval(4_000_000, 4_250_000));
    let nyquist_profile::MarkerValue::String(class) = marker.values[0] else { panic!("a class") };
    assert_eq!(profile.string(class), "org.Work");
    assert!(marker.stack.is_some());
}

#[test]
fn async_profilers_intervals_are_known() {
    let setting = |out: &mut Writer, name: &str, value: &str| {
        out.event(SETTING, |out| {
            out.long(500).text(name).text(value);
        });
    };
    let file = chunk(true, |out| {
        setting(out, "event", "cpu");
        setting(out, "interval", "5000000");
        setting(out, "wall", "20000000");
        out.event(EXECUTION, |out| {
            out.long(1500).long(1).long(1).long(1);
        });
        out.event(EXECUTION, |out| {
            out.long(2500).long(2).long(2).long(2);
        });
        out.event(WALL, |out| {
            out.long(1500).long(2).long(2).int(3);
        });
    });
    let cpu = read(&file).unwrap().profile;
    assert!(cpu.meta().measure.is_cpu_time());
    assert_eq!((cpu.meta().interval, stacks_of(&cpu)), (5_000_000, vec!["Main.main;org.Work.spin 1".into()]));
    // A sample of the wall clock among those of the CPU, as older versions have them. jfr-parser counts it as wall
    // time.
    assert_eq!(waits_of(&cpu), ["(truncated);Main.main 4"]);
    let wall = read_value(&file, Some("wall")).unwrap().profile;
    assert_eq!(wall.meta().measure, counts("wall time", Unit::Time));
    assert_eq!(
        (wall.meta().interval, stacks_of(&wall)),
        (20_000_000, vec!["(truncated);Main.main 3".into()])
    );
}

#[test]
fn chunks_follow_each_other() {
    let one = chunk(true, events);
    let two = [one.clone(), one.clone()].concat();
    let imported = read(&two).unwrap();
    assert_eq!(stacks_of(&imported.profile), ["(truncated);Main.main 2", "Main.main;org.Work.spin 2"]);
    assert_eq!(imported.profile.threads().len(), 2);
    // The part before a truncation is kept.
    let cut = read(&two[..one.len() + 100]).unwrap();
    assert_eq!(stacks_of(&cut.profile), stacks_of(&read(&one).unwrap().profile));
    assert!(matches!(cut.notes[0], Note::Cut { .. }), "{:?}", cut.notes);
}

#[test]
fn damage_does_no_harm() {
    for is_compressed in [true, false] {
        let file = chunk(is_compressed, events);
        for length in 0..file.len() {
            let _ = read(&file[..length]);
        }
        for place in 0..file.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = file.clone();
                damaged[place] = byte;
                let _ = read_value(&damaged, Some("cpu"));
            }
        }
    }
    assert!(read(b"FLR\0").is_err());
}
