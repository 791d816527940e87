//! A profile with much of everything: threads, samples, counters, and letters in a name.

use std::fmt::Write as _;

use serde_json::{Value, json};

pub(crate) const THREADS: usize = 2000;
pub(crate) const COUNTERS: usize = 100;

/// The samples of the busiest thread: an hour, one each ms.
const SAMPLES: usize = 3_600_000;

/// The depth of the busiest thread's stacks.
const DEPTH: usize = 30;

/// The function that calls the one of the [`long_name`].
pub(crate) const CALLER: &str = "main";

/// A name of 4,000 characters.
pub(crate) fn long_name() -> String {
    let mut name = "begin_of_the_name<".to_owned();
    while name.len() < 3999 {
        name.push_str("Parameter, ");
    }
    name.truncate(3999);
    name + ">"
}

/// The name of a thread.
pub(crate) fn thread_name(number: usize) -> String {
    format!("worker-{number:04}")
}

/// The text of the file, in the Firefox Profiler's format.
pub(crate) fn text() -> String {
    let mut threads = vec![thread(0, DEPTH)];
    threads.extend((1..THREADS).map(|number| thread(number, 4)));
    let counters: Vec<Value> = (0..COUNTERS).map(counter).collect();
    let profile = json!({
        "meta": {
            "version": 24, "preprocessedProfileVersion": 46, "interval": 1, "startTime": 0, "processType": 0,
            "product": "large", "stackwalk": 1, "symbolicated": true, "debug": false, "markerSchema": [],
            "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
        },
        "libs": [], "pages": [], "threads": threads, "counters": counters,
    });
    let (mut stacks, mut times) = (String::new(), String::new());
    for at in 0..SAMPLES {
        let comma = if at == 0 { "" } else { "," };
        let stack = 2 + at / 7 % (DEPTH - 2);
        let _ = write!(stacks, "{comma}{stack}");
        let _ = write!(times, "{comma}{at}");
    }
    // As values, these lists would take much memory.
    let text = profile.to_string();
    text.replacen("\"STACKS\"", &format!("[{stacks}]"), 1).replacen("\"TIMES\"", &format!("[{times}]"), 1)
}

/// A thread whose functions call each other. Its second function has the long name.
fn thread(number: usize, depth: usize) -> Value {
    let rows: Vec<usize> = (0..depth).collect();
    let all = |value: Value| vec![value; depth];
    let prefixes: Vec<Value> =
        rows.iter().map(|&row| row.checked_sub(1).map_or(Value::Null, |caller| json!(caller))).collect();
    let mut strings: Vec<String> = rows.iter().map(|row| format!("step_{row}")).collect();
    (strings[0], strings[1]) = (CALLER.to_owned(), long_name());
    let samples = if number == 0 {
        json!({ "length": SAMPLES, "stack": "STACKS", "time": "TIMES", "weight": null, "weightType": "samples" })
    } else {
        let times: Vec<usize> = (0..4).map(|at| number * 1000 + at * 1_600_000 / 3).collect();
        json!({ "length": 4, "stack": [1, 2, 3, 2], "time": times, "weight": null, "weightType": "samples" })
    };
    json!({
        "processType": "default", "processName": "large", "name": thread_name(number), "isMainThread": number == 0,
        "processStartupTime": 0, "processShutdownTime": null, "registerTime": 0, "unregisterTime": null,
        "pausedRanges": [], "pid": "1", "tid": (number + 1).to_string(), "stringArray": strings, "samples": samples,
        "markers": { "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [] },
        "stackTable": {
            "length": depth, "frame": rows, "prefix": prefixes, "category": all(json!(0)), "subcategory": all(json!(0)),
        },
        "frameTable": {
            "length": depth, "address": all(json!(-1)), "category": all(json!(0)), "subcategory": all(json!(0)),
            "func": rows, "nativeSymbol": all(Value::Null), "innerWindowID": all(Value::Null),
            "implementation": all(Value::Null), "line": all(Value::Null), "column": all(Value::Null),
            "inlineDepth": all(json!(0)),
        },
        "funcTable": {
            "length": depth, "name": rows, "isJS": all(json!(false)), "relevantForJS": all(json!(false)),
            "resource": all(json!(-1)), "fileName": all(Value::Null), "lineNumber": all(Value::Null),
            "columnNumber": all(Value::Null),
        },
        "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
        "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
    })
}

/// A counter with a figure each second.
fn counter(number: usize) -> Value {
    let times: Vec<usize> = (0..3600).map(|second| second * 1000).collect();
    let counts: Vec<usize> = (0..3600).map(|second| (second * (number + 1)) % 97).collect();
    json!({
        "name": format!("counter {number}"), "category": "Memory", "description": "An amount", "pid": "1",
        "mainThreadIndex": 0, "samples": { "length": 3600, "time": times, "count": counts },
    })
}
