//! A viewer that receives one profile after another.

use std::sync::Arc;

use nyquist_object::RelativeAddress;
use nyquist_profile::{Frame, Func, Lib, Meta, Process, Profile, ProfileBuilder, Sample, Thread};
use nyquist_server::{
    AddressInfo, Assembly, AssemblyRequest, Client, LibKey, LookupError, SourceRequest, SymbolSource, Viewer,
};
use nyquist_viewer::{BuiltinViewer, ProfileFeed};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;

/// Provides no symbols.
struct Nothing;

impl SymbolSource for Nothing {
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

/// A thread that spends a second in each of these functions, one after the other.
fn profile(functions: &[&str]) -> Profile {
    let mut builder = ProfileBuilder::new(Meta { interval: SECOND, ..Meta::default() });
    let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "main"));
    let lib = builder.add_lib(Lib { name: "app".into(), ..Lib::default() });
    for (name, second) in functions.iter().zip(1..) {
        let name = builder.intern_string(name);
        let func = builder.intern_func(Func::new(name, Some(lib)));
        let frame = builder.intern_frame(Frame { address: Some(second), ..Frame::label(func) });
        let stack = builder.intern_stack(None, frame);
        builder.add_sample(thread, Sample::new(u64::from(second) * SECOND, Some(stack), 0));
    }
    builder.finish()
}

fn live() -> (BuiltinViewer, ProfileFeed) {
    let meta = Meta { product: "app".to_owned(), ..Meta::default() };
    BuiltinViewer::live(ProfileBuilder::new(meta).finish(), Arc::new(Nothing))
}

fn ask(viewer: &BuiltinViewer, question: &str, query: &str) -> Value {
    let answer = viewer.answer(question, query, &Client::default()).unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

/// The rows of the list, by name.
fn functions(viewer: &BuiltinViewer, query: &str) -> Vec<(u64, String, u64)> {
    let list = ask(viewer, "functions", query);
    let row = |row: &Value| {
        let number = row["handle"].as_str().unwrap().trim_start_matches("f-").parse().unwrap();
        (number, row["function"].as_str().unwrap().to_owned(), row["self"].as_u64().unwrap())
    };
    let mut rows: Vec<_> = list["rows"].as_array().unwrap().iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn answers_use_the_last_profile_and_keep_numbers() {
    let (viewer, feed) = live();
    assert_eq!(ask(&viewer, "info", "")["name"], "app");
    assert_eq!(ask(&viewer, "live", "paused=1"), json!({"version": 0, "state": "running"}));
    feed.show(profile(&["a", "b"]), 2 * SECOND);
    let row = |number, name: &str| (number, name.to_owned(), 1);
    assert_eq!(functions(&viewer, ""), [row(0, "a"), row(1, "b")]);
    feed.show(profile(&["c", "b", "a"]), 3 * SECOND);
    // The same request now has another response.
    assert_eq!(functions(&viewer, ""), [row(0, "a"), row(1, "b"), row(2, "c")]);
    assert_eq!(ask(&viewer, "live", "paused=1")["version"], 2);
    assert_eq!(ask(&viewer, "info", "")["live"], json!({"until_ns": 3 * SECOND}));
    feed.note_saving();
    assert_eq!(ask(&viewer, "live", "paused=1")["state"], "saving");
    feed.end(profile(&["b"]));
    assert_eq!(functions(&viewer, ""), [row(1, "b")]);
    assert_eq!(ask(&viewer, "live", "paused=1"), json!({"version": 3, "state": "ended"}));
}

/// Two threads report the end, in any order.
#[test]
fn what_has_ended_is_not_being_saved() {
    let (viewer, feed) = live();
    feed.end(profile(&["a"]));
    feed.note_saving();
    assert_eq!(ask(&viewer, "live", "paused=1")["state"], "ended");
}

#[test]
fn a_collapsed_library_keeps_its_number() {
    let (viewer, feed) = live();
    let mut numbers = Vec::new();
    for names in [&["a"][..], &["a", "b"]] {
        feed.show(profile(names), SECOND);
        numbers.push(functions(&viewer, "transform=collapse-lib:0")[0].0);
    }
    assert_eq!(numbers[0], numbers[1]);
    let callers = ask(&viewer, "callers", &format!("transform=collapse-lib:0&function={}", numbers[0]));
    assert_eq!(callers["function"]["handle"], format!("f-{}", numbers[0]));
    assert_eq!((&callers["function"]["self"], &callers["function"]["total"]), (&json!(2), &json!(2)));
    let tree = ask(&viewer, "tree", "transform=collapse-lib:0");
    assert_eq!(tree["rows"][0]["path"], numbers[0].to_string());
}

#[test]
fn the_last_seconds_end_where_the_recording_is() {
    let (viewer, feed) = live();
    feed.show(profile(&["a", "b", "c"]), 3 * SECOND + SECOND / 2);
    assert_eq!(ask(&viewer, "functions", "last=1")["weight"], 1);
    // Time advances while nothing runs.
    feed.pass_time(5 * SECOND + SECOND / 2);
    assert_eq!(ask(&viewer, "functions", "last=1")["weight"], 0);
    assert_eq!(ask(&viewer, "functions", "last=3")["weight"], 1);
    assert_eq!(ask(&viewer, "live", "paused=1")["version"], 2);
}

#[test]
fn only_a_page_that_is_not_paused_watches() {
    let (viewer, feed) = live();
    ask(&viewer, "live", "paused=1");
    ask(&viewer, "info", "");
    assert!(!feed.is_watched());
    ask(&viewer, "live", "");
    assert!(feed.is_watched());
}

#[test]
fn what_is_recorded_so_far_can_be_had_as_a_file() {
    let (viewer, feed) = live();
    feed.show(profile(&["a"]), SECOND);
    let answer = viewer.answer("profile.json", "", &Client::default()).unwrap();
    assert_eq!((answer.content_type, answer.file_name), ("application/gzip", Some("profile.json.gz")));
    let read = nyquist_profile::firefox::read(&*answer.body).unwrap();
    assert_eq!(read.func_name(read.frames()[0].func), "a");
}

#[test]
fn another_profile_is_shown_or_compared() {
    let read = |bytes: Vec<u8>| {
        let names = String::from_utf8(bytes).map_err(|_| "this is not a profile".to_owned())?;
        Ok(profile(&names.split(' ').collect::<Vec<_>>()))
    };
    let viewer = BuiltinViewer::new(profile(&["a"]), Arc::new(Nothing)).opening(Box::new(read));
    assert_eq!(functions(&viewer, "").len(), 1);
    let refused = viewer.open(vec![0xff], "").unwrap_err();
    assert_eq!((refused.status, &*refused.message), (400, "this is not a profile"));
    assert!(!viewer.shows_another());
    viewer.open(b"b c".to_vec(), "compare=0").unwrap();
    assert_eq!(functions(&viewer, "").len(), 2);
    assert!(ask(&viewer, "info", "")["before"].is_null() && viewer.shows_another());
    viewer.open(b"b c d".to_vec(), "compare=1").unwrap();
    assert_eq!(functions(&viewer, "").len(), 3);
    assert_eq!(ask(&viewer, "info", "")["before"]["weight"], 2);
}

#[test]
fn a_recording_stays_the_one_that_is_shown() {
    let (viewer, _feed) = live();
    assert_eq!(viewer.open(b"a".to_vec(), "").unwrap_err().status, 400);
}
