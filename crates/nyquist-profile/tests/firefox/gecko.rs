//! Firefox's own profiles, written according to `src/types/gecko-profile.ts` of the Firefox Profiler.

use nyquist_profile::{FuncKind, MarkerTiming, MarkerValue, Profile, firefox};
use serde_json::{Value, json};

/// A parent process with a native function, a JavaScript function and a label on its stack, and a content
/// process that began 2 s later.
fn document() -> Value {
    json!({
        "meta": {
            "version": 30, "interval": 1.0, "startTime": 1_000_000.0, "product": "Firefox",
            "categories": [
                {"name": "Other", "color": "grey", "subcategories": ["Other"]},
                {"name": "JavaScript", "color": "yellow", "subcategories": ["Other", "JIT"]},
            ],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
            "markerSchema": [{
                "name": "Text", "display": ["marker-chart"],
                "fields": [
                    {"key": "name", "label": "Details", "format": "string"},
                    {"key": "cause", "label": "Cause", "format": "unique-string"},
                    {"key": "bytes", "label": "Size", "format": "bytes"},
                ],
            }],
        },
        "libs": [
            {"start": 0x7000, "end": 0x9000, "offset": 0, "name": "libxul.so", "path": "/opt/libxul.so",
             "debugName": "libxul.so", "debugPath": "/opt/libxul.so", "breakpadId": "ABCD0", "codeId": null, "arch": ""},
        ],
        "threads": [thread("GeckoMain", 1)],
        "processes": [{
            "meta": {"version": 30, "interval": 1.0, "startTime": 1_002_000.0},
            "libs": [],
            "threads": [thread("DOM Worker", 2)],
            "processes": [],
        }],
    })
}

fn thread(name: &str, pid: u32) -> Value {
    json!({
        "name": name, "processName": "Parent Process", "pid": pid, "tid": pid * 10,
        "registerTime": 0.0, "unregisterTime": null,
        "samples": {
            "schema": {"stack": 0, "time": 1, "eventDelay": 2, "threadCPUDelta": 3},
            "data": [[2, 10.0, 0.0, 5], [0, 11.5, 0.0, 900], [null, 12.0]],
        },
        "markers": {
            "schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3, "category": 4, "data": 5},
            "data": [[3, 10.5, 12.5, 1, 1, {"type": "Text", "name": "x", "cause": 3, "bytes": 4096}]],
        },
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[null, 0], [0, 1], [1, 2]]},
        "frameTable": {
            "schema": {"location": 0, "relevantForJS": 1, "innerWindowID": 2, "implementation": 3, "line": 4, "column": 5, "category": 6, "subcategory": 7},
            "data": [[0, false], [1, false, 0, null, null, null, 0, 0], [2, true, 0, null, 44, 7, 1, 1]],
        },
        "stringTable": ["(root)", "0x7010", "run (https://example.org/app.js:40:3)", "Load"],
    })
}

/// The members in the given order; members that are not listed come last.
fn read_in_order(document: &Value, order: &[&str]) -> Result<Profile, firefox::ReadError> {
    let mut rest = document.as_object().unwrap().clone();
    let mut members: Vec<_> =
        order.iter().filter_map(|&key| Some((key.to_owned(), rest.remove(key)?))).collect();
    members.extend(rest);
    let members: Vec<_> = members.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
    firefox::read(format!("{{{}}}", members.join(",")).as_bytes())
}

/// In the order of Firefox at shutdown. If its add-on requests a profile, `meta` is first.
fn read(document: &Value) -> Result<Profile, firefox::ReadError> {
    read_in_order(document, &["libs", "meta"])
}

#[test]
fn members_may_come_in_both_orders_of_firefox() {
    for order in [["meta", "libs"], ["libs", "meta"]] {
        let profile = read_in_order(&document(), &order).unwrap();
        assert_eq!((profile.threads().len(), profile.libs()[0].name.as_str()), (2, "libxul.so"), "{order:?}");
    }
    let error = read_in_order(&document(), &["threads", "meta"]).unwrap_err().to_string();
    assert!(error.contains("has its threads before its `meta`"), "{error}");
}

#[test]
fn markers_have_their_kinds_and_fields() {
    let profile = read(&document()).unwrap();
    let marker = &profile.threads()[0].markers[0];
    assert_eq!(profile.marker_schema(marker.schema.unwrap()).name, "Text");
    let text = |value: &MarkerValue| match value {
        MarkerValue::String(string) => profile.string(*string).to_owned(),
        other => format!("{other:?}"),
    };
    let values: Vec<_> = marker.values.iter().map(text).collect();
    assert_eq!(values, ["x", "Load", "Integer(4096)"]);
}

#[test]
fn scripts_addresses_and_labels_are_distinct() {
    let profile = read(&document()).unwrap();
    let main = &profile.threads()[0];
    let frames: Vec<_> = profile.stack_frames(main.samples.first().unwrap().stack.unwrap()).collect();
    let names: Vec<_> = frames.iter().map(|frame| profile.func_name(frame.func)).collect();
    assert_eq!(names, ["run", "0x10", "(root)"]);
    let kinds: Vec<_> = frames.iter().map(|frame| profile.func(frame.func).kind).collect();
    assert_eq!(kinds, [FuncKind::JavaScript, FuncKind::Native, FuncKind::Native]);
    let script = profile.func(frames[0].func);
    assert_eq!(profile.string(profile.source(script.source.unwrap()).filename), "https://example.org/app.js");
    assert_eq!((script.line, frames[0].line, frames[0].column), (Some(40), Some(44), Some(7)));
    let category = frames[0].category.unwrap();
    assert_eq!((&*profile.category(category.category).name, category.subcategory), ("JavaScript", 1));
    assert_eq!(
        (frames[1].address, profile.lib(profile.func(frames[1].func).lib.unwrap()).name.as_str()),
        (Some(0x10), "libxul.so")
    );
    assert_eq!(frames[2].address, None);
    // A symbol server is queried for the addresses' names.
    assert!(!profile.meta().symbolicated);
}

#[test]
fn times_count_from_the_first_process() {
    let profile = read(&document()).unwrap();
    let times =
        |thread: usize| -> Vec<u64> { profile.threads()[thread].samples.iter().map(|it| it.time).collect() };
    assert_eq!(times(0), [10_000_000, 11_500_000, 12_000_000]);
    assert_eq!(times(1), [2_010_000_000, 2_011_500_000, 2_012_000_000]);
    assert_eq!(profile.threads()[0].samples.get(1).unwrap().cpu_delta, 900_000);
    assert_eq!(profile.threads()[0].samples.get(2).unwrap().stack, None);
    assert_eq!(profile.processes().len(), 2);
    let marker = &profile.threads()[1].markers[0];
    assert_eq!(profile.string(marker.name), "Load");
    assert_eq!(marker.timing, MarkerTiming::Interval(2_010_500_000, 2_012_500_000));
}

#[test]
fn samples_stand_for_the_cpu_time_that_was_used() {
    let mut document = document();
    // In µs, with intervals of 1 ms; the reference of the first one is unknown.
    let used = [700, 300, 300, 300, 0, 2600, 0];
    let rows: Vec<_> = used.iter().enumerate().map(|(row, used)| json!([0, row as f64, 0.0, used])).collect();
    document["threads"][0]["samples"]["data"] = json!(rows);
    let profile = read(&document).unwrap();
    let samples = profile.threads()[0].samples.iter();
    let weights: Vec<_> = samples.map(|sample| (sample.weight, sample.off_cpu)).collect();
    let (ran, waited) = (|weight| (weight, false), (1, true));
    assert_eq!(weights, [ran(1), waited, ran(1), waited, waited, ran(3), waited]);
}

#[test]
fn indexes_beyond_the_tables_are_refused() {
    for (place, value) in [
        ("/threads/0/samples/data/0/0", json!(99)),
        ("/threads/0/stackTable/data/1/0", json!(1)),
        ("/threads/0/stackTable/data/1/1", json!(99)),
        ("/threads/0/frameTable/data/1/0", json!(99)),
        ("/threads/0/frameTable/data/1/6", json!(99)),
        ("/threads/0/markers/data/0/0", json!(99)),
        ("/threads/0/markers/data/0/4", json!(99)),
    ] {
        let mut document = document();
        *document.pointer_mut(place).unwrap() = value;
        let error = read(&document).unwrap_err().to_string();
        assert!(error.contains("is not a row of the table"), "{place}: {error}");
    }
}

#[test]
fn odd_documents_do_no_harm() {
    let mut nested = json!({"processes": []});
    for _ in 0..30 {
        nested = json!({"meta": {"startTime": -5.0}, "threads": [{}], "processes": [nested]});
    }
    let mut odd = document();
    odd["processes"] = json!([nested]);
    odd["libs"][0]["end"] = json!(0);
    read(&odd).unwrap();
    let mut late = document();
    late["threads"] = json!(7);
    assert!(read(&late).is_err());
}
