//! Tests of the viewer's responses about other measures than CPU time: events, markers, and what is no time.

use std::sync::Arc;

use nyquist_object::RelativeAddress;
use nyquist_profile::{
    CategoryColor, Marker, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue, Meta, Process,
    Profile, ProfileBuilder, Sample, Thread, Unit, well_known,
};
use nyquist_server::{
    AddressInfo, Assembly, AssemblyRequest, Client, LibKey, LookupError, SourceRequest, SymbolSource, Viewer,
};
use nyquist_viewer::BuiltinViewer;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

struct NoSymbols;

impl SymbolSource for NoSymbols {
    fn symbolicate(&self, _: &LibKey, _: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        None
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        Err(LookupError::UnknownLib(request.lib.clone()))
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        Err(LookupError::UnknownLib(request.lib.clone()))
    }
}

/// A thread that runs 2 ms in `f`, waits 3 ms in `g`, has 5 faults in `h`, and locks in `g` for 4 ms.
fn profile() -> Profile {
    let meta =
        Meta { interval: MS, profiling_start: Some(0), profiling_end: Some(10 * MS), ..Meta::default() };
    let mut builder = ProfileBuilder::new(meta);
    let category = builder.add_category("User", CategoryColor::Yellow);
    let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "main"));
    let [f, g, h] = ["f", "g", "h"].map(|name| Some(builder.intern_label(None, name, Some(category))));
    builder.add_sample(thread, Sample { weight: 2, ..Sample::new(2 * MS, f, 0) });
    builder.add_sample(thread, Sample { weight: 3, off_cpu: true, ..Sample::new(5 * MS, g, 0) });
    let schema = builder.add_marker_schema(MarkerSchema {
        name: well_known::event_schema("faults"),
        display: Vec::new(),
        fields: vec![MarkerField {
            key: well_known::EVENT_COUNT.into(),
            label: None,
            format: MarkerFormat::Integer,
        }],
        tooltip_label: None,
        table_label: None,
        chart_label: None,
        description: None,
        is_stack_based: false,
    });
    let (fault, lock) = (builder.intern_string("fault"), builder.intern_string("lock"));
    let marker =
        |name, timing, stack| Marker { name, timing, category, schema: None, values: Vec::new(), stack };
    let faulted = marker(fault, MarkerTiming::Instant(7 * MS), h);
    builder.add_marker(
        thread,
        Marker { schema: Some(schema), values: vec![MarkerValue::Integer(5)], ..faulted },
    );
    builder.add_marker(thread, marker(lock, MarkerTiming::Interval(4 * MS, 8 * MS), g));
    builder.finish()
}

fn viewer() -> BuiltinViewer {
    BuiltinViewer::new(profile(), Arc::new(NoSymbols))
}

fn ask(viewer: &BuiltinViewer, question: &str, query: &str) -> Value {
    let answer = viewer.answer(question, query, &Client::default());
    let answer = answer.unwrap_or_else(|denied| panic!("{question}?{query}: {denied:?}"));
    serde_json::from_slice(&answer.body).unwrap()
}

/// The functions with their self weights.
fn functions(viewer: &BuiltinViewer, query: &str) -> Vec<(String, u64)> {
    let answer = ask(viewer, "functions", query);
    let row = |row: &Value| (row["function"].as_str().unwrap().to_owned(), row["self"].as_u64().unwrap());
    answer["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn an_event_is_counted_in_place_of_time() {
    let viewer = viewer();
    let info = ask(&viewer, "info", "");
    assert_eq!(info["recorded"], json!({"samples": "CPU time", "events": ["faults"]}));
    assert_eq!((&info["has_waits"], &info["axis_is_amount"]), (&json!(true), &json!(false)));
    assert_eq!(functions(&viewer, ""), [("f".to_owned(), 2)]);
    assert_eq!(functions(&viewer, "event=faults"), [("h".to_owned(), 5)]);
    let info = ask(&viewer, "info", "event=faults");
    assert_eq!(info["measure"], json!({"name": "faults", "unit": "count"}));
    // What can be shown is that of the recording.
    assert_eq!((&info["recorded"]["samples"], &info["has_waits"]), (&json!("CPU time"), &json!(true)));
    let timeline = ask(&viewer, "timeline", "event=faults&parts=10");
    assert_eq!(timeline["tracks"][0]["categories"][0]["ns"], json!([0, 0, 0, 0, 0, 0, 5, 0, 0, 0]));
    let chart = ask(&viewer, "chart", "event=faults&thread=0&width=100");
    assert_eq!(chart["boxes"][0], json!([0, 7 * MS - 200_000, 7 * MS, 2]), "{chart}");
    assert_eq!(functions(&viewer, "state=waiting"), [("g".to_owned(), 3)]);
    let refused = viewer.answer("info", "event=other", &Client::default()).unwrap_err();
    assert_eq!((refused.status, &*refused.message), (400, "the event \"other\" was not recorded"));
}

#[test]
fn markers_are_counted_in_place_of_time() {
    let viewer = viewer();
    let markers = ask(&viewer, "markers", "kind=lock");
    let stack = markers["rows"][0][5].as_u64().unwrap();
    let answer = ask(&viewer, "stack", &format!("stack={stack}"));
    assert_eq!((&answer["depth"], &answer["frames"]), (&json!(1), &json!([1])));
    assert_eq!(answer["functions"]["1"]["name"], "g");
    let chart = ask(&viewer, "markers/chart", "kind=lock");
    assert_eq!(chart["rows"][0]["bars"], json!([[0, 4 * MS, 8 * MS, 1, "", stack]]));
    let info = ask(&viewer, "info", "event=marker:lock");
    let counted = info["summary"]["weight"].as_u64().unwrap() * info["interval_ns"].as_u64().unwrap();
    assert_eq!((counted, &info["measure"]["unit"]), (4 * MS, &json!("ns")));
    assert_eq!(functions(&viewer, "event=marker:lock")[0].0, "g");
    assert_eq!(viewer.answer("stack", "stack=99", &Client::default()).unwrap_err().status, 400);
}

#[test]
fn runs_are_compared_by_time_with_their_files() {
    let viewer = BuiltinViewer::comparing(profile(), profile(), Arc::new(NoSymbols))
        .named(Some("after.json".into()), Some("before.json".into()));
    let info = ask(&viewer, "info", "");
    assert_eq!((&info["file"], &info["before"]["file"]), (&json!("after.json"), &json!("before.json")));
    let graph = ask(&viewer, "diff/flamegraph", "");
    assert_eq!((&graph["weight"], &graph["before_weight"]), (&json!(2), &json!(2.0)));
    let compared = ask(&viewer, "diff/flamegraph", "event=faults");
    assert_eq!((&compared["before_weight"], &compared["boxes"][0][5]), (&json!(5.0), &json!(1.0)));
}

#[test]
fn an_axis_may_count_what_samples_do() {
    let meta = Meta { interval: 1, has_exact_times: true, ..Meta::default() };
    let mut builder = ProfileBuilder::new(meta);
    builder.meta_mut().measure.unit = Unit::Count;
    let process = builder.add_process(Process::default());
    builder.add_thread(Thread::new(process, "7", "main"));
    let viewer = BuiltinViewer::new(builder.finish(), Arc::new(NoSymbols));
    assert_eq!(ask(&viewer, "info", "")["axis_is_amount"], true);
}
