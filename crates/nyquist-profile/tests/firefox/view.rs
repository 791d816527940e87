//! What the front end draws of a profile when it opens it: idle time, and which threads it shows.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{
    CategoryColor, Marker, MarkerDisplay, MarkerSchema, MarkerTiming, Meta, Process, Profile, ProfileBuilder,
    Sample, Thread,
};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// A thread that runs, sleeps for 300 ms and runs again; one with markers alone; and one that did nothing.
fn sleeper() -> Profile {
    let meta = Meta { interval: MS, has_cpu_deltas: true, ..Meta::default() };
    let mut builder = ProfileBuilder::new(meta);
    let category = builder.add_category("Other", CategoryColor::Grey);
    let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
    let busy = builder.add_thread(Thread { is_main: true, ..Thread::new(process, "7", "busy") });
    let stack = Some(builder.intern_label(None, "work", Some(category)));
    for time in [MS, 2 * MS, 302 * MS] {
        builder.add_sample(busy, Sample::new(time, stack, MS));
    }
    let marked = builder.add_thread(Thread::new(process, "7:tasks", "async tasks"));
    let schema = builder.add_marker_schema(MarkerSchema {
        name: "span".into(),
        display: vec![MarkerDisplay::TimelineOverview],
        ..MarkerSchema::default()
    });
    let name = builder.intern_string("span");
    let timing = MarkerTiming::Interval(0, MS);
    let marker = Marker { name, timing, category, schema: Some(schema), values: Vec::new(), stack: None };
    builder.add_marker(marked, marker);
    builder.add_thread(Thread::new(process, "8", "idle"));
    builder.finish()
}

fn written(profile: &Profile, version: FormatVersion) -> Value {
    let mut bytes = Vec::new();
    firefox::write(profile, WriteOptions { version, gzip: false }, &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_sleep_is_drawn_empty() {
    let document = written(&sleeper(), FormatVersion::V66);
    let samples = &document["threads"][0]["samples"];
    let stack = &samples["stack"][0];
    assert!(stack.is_number());
    assert_eq!(samples["stack"], json!([stack, stack, null, null, stack]));
    assert_eq!(samples["timeDeltas"], json!([1, 1, 1, 298, 1]));
    assert_eq!(samples["threadCPUDelta"], json!([1_000_000, 1_000_000, 0, 0, 1_000_000]));
    assert_eq!(samples["weight"], json!([1, 1, 0, 0, 1]));
    assert_eq!(samples["length"], 5);
}

#[test]
fn idle_rows_are_no_samples_when_read() {
    let profile = sleeper();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = written(&profile, version);
        let read = firefox::read(document.to_string().as_bytes()).unwrap();
        assert_eq!(read.threads()[0].samples, profile.threads()[0].samples, "{version:?}");
    }
}

#[test]
fn threads_with_markers_are_shown() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = written(&sleeper(), version);
        assert_eq!(document["meta"]["initialVisibleThreads"], json!([0, 1]), "{version:?}");
        assert_eq!(document["meta"]["initialSelectedThreads"], json!([0]), "{version:?}");
        assert_eq!(document["threads"][1]["showMarkersInTimeline"], true, "{version:?}");
        assert_eq!(document["threads"][0].get("showMarkersInTimeline"), None, "{version:?}");
    }
}
