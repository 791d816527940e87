//! The structural rules of the Firefox Profiler's format (versions 49 and 66), checked on the raw JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The colours that a category may have.
const COLOURS: &[&str] = &[
    "transparent",
    "purple",
    "green",
    "orange",
    "yellow",
    "lightblue",
    "blue",
    "brown",
    "magenta",
    "red",
    "lightred",
    "darkgrey",
    "grey",
];

/// Checks a profile. Returns a sentence for each broken rule, at most one of each kind.
pub(crate) fn broken(profile: &Value) -> Vec<String> {
    let mut rules = Rules { profile, broken: BTreeSet::new() };
    rules.meta();
    rules.libs();
    if profile["shared"]["stackTable"].is_object() {
        rules.tables(&profile["shared"], "shared");
    } else {
        for thread in list(&profile["threads"]) {
            rules.tables(thread, "thread");
        }
    }
    rules.threads();
    rules.counters();
    rules.broken.into_iter().collect()
}

struct Rules<'a> {
    profile: &'a Value,
    broken: BTreeSet<String>,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn length(table: &Value) -> usize {
    table["length"].as_u64().unwrap_or(0) as usize
}

/// Whether a value is an index below `limit`.
fn below(value: &Value, limit: usize) -> bool {
    value.as_u64().is_some_and(|index| (index as usize) < limit)
}

fn none_or_below(value: &Value, limit: usize) -> bool {
    value.is_null() || value.as_i64() == Some(-1) || below(value, limit)
}

impl<'a> Rules<'a> {
    fn hold(&mut self, holds: bool, rule: impl Into<String>) {
        if !holds {
            self.broken.insert(rule.into());
        }
    }

    /// Checks that every value in a column satisfies the rule.
    fn column(&mut self, table: &Value, name: &str, column: &str, rule: impl Fn(&Value) -> bool) {
        let values = list(&table[column]);
        self.hold(table[column].is_array(), format!("{name}.{column} is missing"));
        if let Some(wrong) = values.iter().find(|value| !rule(value)) {
            self.hold(false, format!("{name}.{column} has the value {wrong}"));
        }
    }

    /// Checks that every column of a table has the length that the table states.
    fn lengths(&mut self, table: &Value, name: &str) {
        self.hold(table["length"].is_u64(), format!("{name} has no length"));
        for (column, values) in table.as_object().into_iter().flatten() {
            if let Some(values) = values.as_array() {
                self.hold(
                    values.len() == length(table),
                    format!("{name}.{column} differs in length from its table"),
                );
            }
        }
    }

    fn meta(&mut self) {
        let meta = &self.profile["meta"];
        for key in
            ["preprocessedProfileVersion", "version", "interval", "startTime", "processType", "stackwalk"]
        {
            self.hold(meta[key].is_number(), format!("meta.{key} is not a number"));
        }
        for key in ["markerSchema", "categories"] {
            self.hold(meta[key].is_array(), format!("meta.{key} is not an array"));
        }
        self.hold(meta["product"].is_string(), "meta.product is not a string");
        self.hold(meta["symbolicated"].is_boolean(), "meta.symbolicated is not a boolean");
        let unit = meta["sampleUnits"]["threadCPUDelta"].as_str().unwrap_or_default();
        self.hold(
            ["ns", "µs", "variable CPU cycles"].contains(&unit),
            format!("threadCPUDelta's unit is {unit:?}"),
        );
        let categories = list(&meta["categories"]);
        for category in categories {
            let colour = category["color"].as_str().unwrap_or_default();
            self.hold(COLOURS.contains(&colour), format!("a category has the colour {colour:?}"));
            self.hold(category["name"].is_string(), "a category has no name");
            self.hold(category["subcategories"][0] == "Other", "a category's first subcategory is not Other");
        }
        let grey = categories.iter().filter(|category| category["color"] == "grey").count();
        self.hold(grey >= 1, "no category is grey");
    }

    fn libs(&mut self) {
        let mut keys = BTreeSet::new();
        for lib in list(&self.profile["libs"]) {
            for key in ["arch", "name", "path", "debugName", "debugPath", "breakpadId"] {
                self.hold(lib[key].is_string(), format!("a lib's {key} is not a string"));
            }
            self.hold(
                lib["codeId"].is_string() || lib["codeId"].is_null(),
                "a lib's codeId is of another type",
            );
            let (name, id) =
                (lib["debugName"].as_str().unwrap_or(""), lib["breakpadId"].as_str().unwrap_or(""));
            self.hold(!name.contains('/') && !name.is_empty(), format!("a lib's debugName is {name:?}"));
            let hexadecimal = id.len() >= 33 && id.chars().all(|digit| digit.is_ascii_hexdigit());
            // A lib with an empty id is allowed, because the front end never asks for libs without an id.
            self.hold(
                hexadecimal || (id.is_empty() && lib["codeId"].is_null()),
                format!("a lib's breakpadId is {id:?}"),
            );
            self.hold(keys.insert((name, id)), format!("two libs have the key {name}/{id}"));
        }
    }

    fn tables(&mut self, owner: &'a Value, name: &str) {
        for table in ["stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"] {
            self.hold(owner[table].is_object(), format!("{name}.{table} is missing"));
            self.lengths(&owner[table], table);
        }
        self.stack_table(&owner["stackTable"], length(&owner["frameTable"]));
        self.frame_table(owner);
        self.func_table(owner);
        let (strings, libs) = (list(&owner["stringArray"]), list(&self.profile["libs"]).len());
        self.hold(strings.iter().all(Value::is_string), "stringArray holds something else");
        let unique: BTreeSet<&str> = strings.iter().filter_map(Value::as_str).collect();
        self.hold(unique.len() == strings.len(), "stringArray holds a string twice");
        let resources = &owner["resourceTable"];
        self.column(resources, "resourceTable", "lib", |lib| none_or_below(lib, libs));
        self.column(resources, "resourceTable", "name", |string| below(string, strings.len()));
        let natives = &owner["nativeSymbols"];
        self.column(natives, "nativeSymbols", "libIndex", |lib| below(lib, libs));
        self.column(natives, "nativeSymbols", "name", |string| below(string, strings.len()));
        self.column(natives, "nativeSymbols", "address", |address| {
            address.as_i64().is_some_and(|at| at >= 0)
        });
        self.column(natives, "nativeSymbols", "functionSize", |size| size.is_null() || size.is_u64());
        self.inlined_frames(owner);
    }

    fn stack_table(&mut self, table: &Value, frames: usize) {
        self.column(table, "stackTable", "frame", |frame| below(frame, frames));
        if table["prefixOffset"].is_array() {
            let leads_out = list(&table["prefixOffset"])
                .iter()
                .enumerate()
                .any(|(index, offset)| offset.as_u64().is_none_or(|offset| offset as usize > index));
            self.hold(!leads_out, "a stackTable.prefixOffset leads before the table");
        } else {
            let late = list(&table["prefix"])
                .iter()
                .enumerate()
                .any(|(index, prefix)| !prefix.is_null() && !below(prefix, index));
            self.hold(
                !late && table["prefix"].is_array(),
                "a stackTable.prefix does not come before its stack",
            );
        }
    }

    fn frame_table(&mut self, owner: &Value) {
        let (table, name) = (&owner["frameTable"], "frameTable");
        let categories = list(&self.profile["meta"]["categories"]);
        let (funcs, natives) = (length(&owner["funcTable"]), length(&owner["nativeSymbols"]));
        self.column(table, name, "func", |func| below(func, funcs));
        self.column(table, name, "nativeSymbol", |native| none_or_below(native, natives));
        self.column(table, name, "category", |category| {
            category.is_null() || below(category, categories.len().min(256))
        });
        self.column(table, name, "inlineDepth", |depth| below(depth, 256));
        let in_range =
            |address: &Value| address.as_i64().is_some_and(|at| (-1..=i64::from(i32::MAX)).contains(&at));
        self.column(table, name, "address", in_range);
        self.column(table, name, "line", |line| line.is_null() || line.as_u64().is_some_and(|line| line > 0));
        self.column(table, name, "column", |column| column.is_null() || column.is_u64());
        for (category, subcategory) in list(&table["category"]).iter().zip(list(&table["subcategory"])) {
            let category = &categories.get(category.as_u64().unwrap_or(0) as usize);
            let count = category.map_or(0, |category| list(&category["subcategories"]).len());
            self.hold(
                subcategory.is_null() || below(subcategory, count),
                "a frame's subcategory is not its category's",
            );
        }
        self.func_kinds(table);
    }

    /// Either all frames of a func are in a lib, or none is, because symbolication would rename both.
    fn func_kinds(&mut self, frames: &Value) {
        let mut in_lib: BTreeMap<u64, bool> = BTreeMap::new();
        for (func, address) in list(&frames["func"]).iter().zip(list(&frames["address"])) {
            let (Some(func), Some(address)) = (func.as_u64(), address.as_i64()) else { continue };
            let same = *in_lib.entry(func).or_insert(address >= 0) == (address >= 0);
            self.hold(same, "a func is shared by frames with and without an address");
        }
    }

    fn func_table(&mut self, owner: &Value) {
        let (table, name) = (&owner["funcTable"], "funcTable");
        let strings = list(&owner["stringArray"]).len();
        let resources = length(&owner["resourceTable"]);
        self.column(table, name, "name", |string| below(string, strings));
        self.column(table, name, "resource", |resource| none_or_below(resource, resources));
        self.column(table, name, "isJS", Value::is_boolean);
        self.column(table, name, "relevantForJS", Value::is_boolean);
        if owner["sources"].is_object() {
            let sources = &owner["sources"];
            self.lengths(sources, "sources");
            self.column(table, name, "source", |source| none_or_below(source, length(sources)));
            self.column(sources, "sources", "filename", |string| below(string, strings));
            self.column(sources, "sources", "startLine", |line| line.as_u64().is_some_and(|line| line >= 1));
            self.column(sources, "sources", "startColumn", |column| {
                column.as_u64().is_some_and(|column| column >= 1)
            });
        } else {
            self.column(table, name, "fileName", |string| string.is_null() || below(string, strings));
        }
    }

    /// An inlined frame lies directly on the frame that it is inlined into. It has the same address, and its
    /// depth is one more.
    fn inlined_frames(&mut self, owner: &Value) {
        let (stacks, frames) = (&owner["stackTable"], &owner["frameTable"]);
        for (index, frame) in list(&stacks["frame"]).iter().enumerate() {
            let frame = frame.as_u64().unwrap_or(0) as usize;
            let depth = frames["inlineDepth"][frame].as_u64().unwrap_or(0);
            if depth == 0 {
                continue;
            }
            let prefix = match stacks["prefixOffset"][index].as_u64() {
                Some(offset) => index.checked_sub(offset as usize).filter(|prefix| *prefix < index),
                None => stacks["prefix"][index].as_u64().map(|prefix| prefix as usize),
            };
            let Some(prefix) = prefix else {
                self.hold(false, "an inlined frame is a root");
                continue;
            };
            let holder = stacks["frame"][prefix].as_u64().unwrap_or(0) as usize;
            let same = |column: &str| frames[column][frame] == frames[column][holder];
            self.hold(same("address"), "an inlined frame has another address than its holder");
            self.hold(same("nativeSymbol"), "an inlined frame has another native symbol than its holder");
            let above = frames["inlineDepth"][holder].as_u64().unwrap_or(0);
            self.hold(above + 1 == depth, "an inlined frame's depth does not follow its holder's");
        }
    }

    fn threads(&mut self) {
        let mut mains: BTreeMap<String, usize> = BTreeMap::new();
        for thread in list(&self.profile["threads"]) {
            for key in ["processType", "name", "pid"] {
                self.hold(thread[key].is_string(), format!("a thread's {key} is not a string"));
            }
            for key in ["processStartupTime", "registerTime"] {
                self.hold(thread[key].is_number(), format!("a thread's {key} is not a number"));
            }
            for key in ["processShutdownTime", "unregisterTime"] {
                self.hold(
                    thread[key].is_number() || thread[key].is_null(),
                    format!("a thread's {key} is not a time"),
                );
            }
            self.hold(thread["pausedRanges"].is_array(), "a thread's pausedRanges is not an array");
            self.hold(!thread["tid"].is_null(), "a thread has no tid");
            *mains.entry(thread["pid"].to_string()).or_default() +=
                usize::from(thread["isMainThread"] == true);
            self.samples(thread);
            self.markers(thread);
        }
        self.hold(mains.values().all(|count| *count == 1), "a process has not exactly one main thread");
    }

    fn samples(&mut self, thread: &Value) {
        let samples = &thread["samples"];
        let shared = &self.profile["shared"]["stackTable"];
        let stacks = if shared.is_object() { length(shared) } else { length(&thread["stackTable"]) };
        self.lengths(samples, "samples");
        self.column(samples, "samples", "stack", |stack| stack.is_null() || below(stack, stacks));
        let kind = samples["weightType"].as_str().unwrap_or_default();
        self.hold(["samples", "tracing-ms", "bytes"].contains(&kind), format!("a weightType is {kind:?}"));
        if samples["timeDeltas"].is_array() {
            self.column(samples, "samples", "timeDeltas", |delta| {
                delta.as_f64().is_some_and(|delta| delta >= 0.0)
            });
        } else {
            self.column(samples, "samples", "time", Value::is_number);
            let backwards = list(&samples["time"]).windows(2).any(|two| two[0].as_f64() > two[1].as_f64());
            self.hold(!backwards, "a thread's time goes backwards");
        }
        let delta = |delta: &Value| delta.is_null() || delta.as_f64().is_some_and(|delta| delta >= 0.0);
        self.column(samples, "samples", "threadCPUDelta", delta);
    }

    fn markers(&mut self, thread: &'a Value) {
        let markers = &thread["markers"];
        self.lengths(markers, "markers");
        let shared = list(&self.profile["shared"]["stringArray"]);
        let strings = shared.len().max(list(&thread["stringArray"]).len());
        self.column(markers, "markers", "name", |string| below(string, strings));
        self.column(markers, "markers", "phase", |phase| below(phase, 4));
        let schemas = list(&self.profile["meta"]["markerSchema"]);
        for data in list(&markers["data"]).iter().filter(|data| !data.is_null()) {
            let known = schemas.iter().any(|schema| schema["name"] == data["type"]);
            self.hold(known, format!("a marker of type {} has no schema", data["type"]));
        }
    }

    fn counters(&mut self) {
        let threads = list(&self.profile["threads"]).len();
        for counter in list(&self.profile["counters"]) {
            self.lengths(&counter["samples"], "counter.samples");
            self.hold(below(&counter["mainThreadIndex"], threads), "a counter's thread is beyond the table");
            for key in ["name", "category", "description", "pid"] {
                self.hold(counter[key].is_string(), format!("a counter's {key} is not a string"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::broken;
    use serde_json::{Value, json};

    /// A small profile that breaks no rule.
    fn sound() -> Value {
        json!({
            "meta": {"preprocessedProfileVersion": 66, "version": 24, "interval": 1.0, "startTime": 0.0, "processType": 0,
                "stackwalk": 1, "markerSchema": [], "product": "p", "symbolicated": true,
                "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
                "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}]},
            "libs": [{"arch": "x86_64", "name": "a", "path": "/a", "debugName": "a", "debugPath": "/a",
                "breakpadId": "000000000000000000000000000000001", "codeId": null}],
            "shared": {
                "stringArray": ["main", "f"],
                "stackTable": {"frame": [0, 1], "prefixOffset": [0, 1], "length": 2},
                "frameTable": {"address": [16, 16], "inlineDepth": [0, 1], "category": [0, 0], "subcategory": [0, 0],
                    "func": [0, 1], "nativeSymbol": [0, 0], "line": [null, 3], "column": [null, null], "length": 2},
                "funcTable": {"name": [0, 1], "isJS": [false, false], "relevantForJS": [false, false],
                    "resource": [0, 0], "source": [null, null], "length": 2},
                "resourceTable": {"lib": [0], "name": [0], "host": [null], "type": [1], "length": 1},
                "nativeSymbols": {"libIndex": [0], "address": [16], "name": [0], "functionSize": [null], "length": 1},
                "sources": {"filename": [], "startLine": [], "startColumn": [], "length": 0},
            },
            "threads": [{"processType": "default", "name": "t", "pid": "1", "tid": "1", "isMainThread": true,
                "processStartupTime": 0.0, "processShutdownTime": null, "registerTime": 0.0, "unregisterTime": null,
                "pausedRanges": [],
                "samples": {"stack": [1, null], "timeDeltas": [0.0, 1.0], "weight": null, "weightType": "samples",
                    "threadCPUDelta": [null, 5], "length": 2},
                "markers": {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
                    "length": 0}}],
        })
    }

    #[test]
    fn a_sound_profile_breaks_nothing() {
        assert_eq!(broken(&sound()), Vec::<String>::new());
    }

    /// Replaces one value, and checks that a rule reports it.
    fn check(pointer: &str, value: &Value) {
        let mut profile = sound();
        *profile.pointer_mut(pointer).expect("the pointer leads somewhere") = value.clone();
        assert!(!broken(&profile).is_empty(), "{pointer} = {value} is not noticed");
    }

    #[test]
    fn each_broken_rule_is_noticed() {
        check("/shared/stackTable/frame/1", &json!(2));
        check("/shared/stackTable/prefixOffset/0", &json!(1));
        check("/shared/stackTable/prefixOffset/1", &json!(0));
        check("/shared/stackTable/length", &json!(3));
        check("/shared/frameTable/func/0", &json!(2));
        check("/shared/frameTable/category/0", &json!(1));
        check("/shared/frameTable/subcategory/0", &json!(1));
        check("/shared/frameTable/address/0", &json!(2_147_483_648_i64));
        check("/shared/frameTable/address/1", &json!(17));
        check("/shared/frameTable/inlineDepth/1", &json!(2));
        check("/shared/frameTable/nativeSymbol/1", &json!(1));
        check("/shared/frameTable/line/1", &json!(0));
        check("/shared/funcTable/name/0", &json!(2));
        check("/shared/funcTable/resource/0", &json!(1));
        check("/shared/funcTable/source/0", &json!(0));
        check("/shared/resourceTable/lib/0", &json!(1));
        check("/shared/nativeSymbols/libIndex/0", &json!(1));
        check("/shared/stringArray/1", &json!("main"));
        check("/libs/0/debugName", &json!("a/b"));
        check("/libs/0/breakpadId", &json!("12"));
        check("/meta/categories/0/color", &json!("pink"));
        check("/meta/categories/0/subcategories/0", &json!("Else"));
        check("/meta/sampleUnits", &json!(null));
        check("/threads/0/pid", &json!(1));
        check("/threads/0/isMainThread", &json!(false));
        check("/threads/0/samples/stack/0", &json!(2));
        check("/threads/0/samples/timeDeltas/1", &json!(-1.0));
        check("/threads/0/samples/weightType", &json!("other"));
        check("/threads/0/samples/threadCPUDelta/1", &json!(-5));
    }
}
