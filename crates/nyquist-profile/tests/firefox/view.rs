//! The front end's first view of a profile: idle time, and the visible threads.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{
    CategoryColor, Marker, MarkerDisplay, MarkerSchema, MarkerTiming, Meta, Process, Profile, ProfileBuilder,
    Sample, Thread,
};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// A thread that runs, sleeps for 300 ms and runs again; one with only markers; and one without any data.
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

/// A thread that runs and waits in `poll`, and waits in a function without a category.
fn waiter() -> Profile {
    let meta = Meta { interval: MS, has_cpu_deltas: true, ..Meta::default() };
    let mut builder = ProfileBuilder::new(meta);
    let user = builder.add_category("User", CategoryColor::Yellow);
    let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
    let thread = builder.add_thread(Thread { is_main: true, ..Thread::new(process, "7", "app") });
    let main = builder.intern_label(None, "main", Some(user));
    let [poll, plain] = [("poll", Some(user)), ("plain", None)]
        .map(|(name, own)| builder.intern_label(Some(main), name, own));
    let waits = |time, stack| Sample { weight: 100, off_cpu: true, ..Sample::new(time, Some(stack), 0) };
    builder.add_sample(thread, Sample::new(MS, Some(poll), MS));
    builder.add_sample(thread, waits(101 * MS, poll));
    builder.add_sample(thread, waits(201 * MS, plain));
    builder.add_sample(thread, Sample::new(202 * MS, Some(main), MS));
    builder.finish()
}

#[test]
fn waiting_has_the_front_ends_idle_category() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = written(&waiter(), version);
        assert_eq!(firefox::check(&document), [], "{version:?}");
        let thread = &document["threads"][0];
        let tables = if version == FormatVersion::V49 { thread } else { &document["shared"] };
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let category = |stack: &Value| {
            let frame = number(&tables["stackTable"]["frame"][number(stack)]);
            let category = &tables["frameTable"]["category"][frame];
            category
                .as_u64()
                .map_or("none", |at| document["meta"]["categories"][at as usize]["name"].as_str().unwrap())
        };
        let samples = &thread["samples"];
        let waits = &samples["nyquistOffCpuWeight"];
        let of_samples: Vec<_> = (0..number(&samples["length"]))
            .map(|row| {
                (number(&samples["weight"][row]), number(&waits[row]), category(&samples["stack"][row]))
            })
            .collect();
        let sampled: Vec<_> = of_samples.iter().filter(|row| (row.0, row.1) != (0, 0)).copied().collect();
        let expected = [(1, 0, "User"), (0, 100, "Idle"), (0, 100, "Idle"), (1, 0, "User")];
        assert_eq!(sampled, expected, "{version:?}");
        // The rows that draw the waits from start to end are idle, too.
        let drawn = of_samples.iter().filter(|row| (row.0, row.1) == (0, 0));
        assert!(drawn.clone().count() > 0 && drawn.clone().all(|row| row.2 == "Idle"), "{of_samples:?}");
        let idle = document["meta"]["categories"].as_array().unwrap().last().unwrap();
        assert_eq!(
            *idle,
            json!({
                "name": "Idle", "color": "transparent", "subcategories": ["Other", "Other", "User"]
            })
        );
    }
}

/// The front end removes a function's colour when two rows of its stack disagree, also if no sample uses
/// one of them.
#[test]
fn where_a_thread_only_waited_all_rows_are_idle() {
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = written(&waiter(), version);
        let tables =
            if version == FormatVersion::V49 { &document["threads"][0] } else { &document["shared"] };
        let column = |table: &str, column: &str| tables[table][column].as_array().unwrap().clone();
        let idle = document["meta"]["categories"].as_array().unwrap().len() - 1;
        let (frames, categories) = (column("stackTable", "frame"), column("frameTable", "category"));
        let of_stacks = frames.iter().map(|frame| categories[frame.as_u64().unwrap() as usize].as_u64());
        // main and poll, where it ran; then poll and the function without a category, where it waited.
        let is_idle: Vec<_> = of_stacks.map(|category| category == Some(idle as u64)).collect();
        assert_eq!(is_idle, [false, false, true, true], "{version:?}");
    }
}

#[test]
fn the_idle_category_is_none_when_read() {
    let profile = waiter();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let read = firefox::read(written(&profile, version).to_string().as_bytes()).unwrap();
        assert_eq!(read.categories(), profile.categories(), "{version:?}");
        assert_eq!(read.frames(), profile.frames(), "{version:?}");
        assert_eq!(read.threads()[0].samples, profile.threads()[0].samples, "{version:?}");
        // Without waits, this category does not exist.
        let document = written(&sleeper(), version);
        assert_eq!(document["meta"]["nyquist"].get("idleCategory"), None, "{version:?}");
        let mut claims_none = document;
        claims_none["meta"]["nyquist"]["idleCategory"] = json!(u64::MAX);
        assert!(firefox::read(claims_none.to_string().as_bytes()).is_ok());
    }
}

#[test]
fn threads_of_one_name_are_distinguished_by_id() {
    let mut builder = ProfileBuilder::new(Meta::default());
    let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
    builder.add_thread(Thread { is_main: true, ..Thread::new(process, "7", "worker") });
    let names = [("8", "worker"), ("9", "worker"), ("10", "logger"), ("11", ""), ("12", "")];
    for (tid, name) in names {
        builder.add_thread(Thread::new(process, tid, name));
    }
    let other = builder.add_process(Process { pid: "20".into(), ..Process::default() });
    builder.add_thread(Thread::new(other, "21", "logger"));
    let profile = builder.finish();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = written(&profile, version);
        let rows = document["threads"].as_array().unwrap().iter().map(|thread| &thread["name"]);
        let expected = ["worker", "worker 8", "worker 9", "logger", "11", "12", "logger"];
        assert_eq!(rows.collect::<Vec<_>>(), expected, "{version:?}");
        let read = firefox::read(document.to_string().as_bytes()).unwrap();
        let names =
            |profile: &Profile| profile.threads().iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&read), names(&profile), "{version:?}");
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
