//! A profile without names, as a recorder on another system saves it: it has one sample for each address in
//! one lib.

use serde_json::{Value, json};

/// The profile with samples at `addresses`, which count from the start of `lib`, an entry in `libs`.
pub(crate) fn of(addresses: &[u64], lib: &Value) -> Value {
    let count = addresses.len();
    let all = |value: Value| vec![value; count];
    let numbers: Vec<usize> = (0..count).collect();
    let strings: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    let name = lib["name"].as_str().unwrap_or_default();
    let strings: Vec<String> = strings.into_iter().chain([name.to_owned()]).collect();
    json!({
        "meta": {
            "version": 24, "preprocessedProfileVersion": 46, "interval": 1, "startTime": 0, "processType": 0,
            "product": name, "stackwalk": 1, "symbolicated": false, "debug": false, "markerSchema": [],
            "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
        },
        "libs": [lib],
        "pages": [],
        "threads": [{
            "processType": "default", "processName": name, "name": "main", "isMainThread": true,
            "processStartupTime": 0, "processShutdownTime": null, "registerTime": 0, "unregisterTime": null,
            "pausedRanges": [], "pid": "1", "tid": "1", "stringArray": strings,
            "samples": { "length": count, "stack": numbers, "time": numbers, "weight": null, "weightType": "samples" },
            "markers": { "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [] },
            "stackTable": {
                "length": count, "frame": numbers, "prefix": all(Value::Null), "category": all(json!(0)),
                "subcategory": all(json!(0)),
            },
            "frameTable": {
                "length": count, "address": addresses, "category": all(json!(0)), "subcategory": all(json!(0)),
                "func": numbers, "nativeSymbol": all(Value::Null), "innerWindowID": all(Value::Null),
                "implementation": all(Value::Null), "line": all(Value::Null), "column": all(Value::Null),
                "inlineDepth": all(json!(0)),
            },
            "funcTable": {
                "length": count, "name": numbers, "isJS": all(json!(false)), "relevantForJS": all(json!(false)),
                "resource": all(json!(0)), "fileName": all(Value::Null), "lineNumber": all(Value::Null),
                "columnNumber": all(Value::Null),
            },
            "resourceTable": { "length": 1, "lib": [0], "name": [count], "host": [null], "type": [1] },
            "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        }],
    })
}
