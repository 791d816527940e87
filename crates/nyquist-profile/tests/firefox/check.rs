//! The checker accepts all written profiles, and finds every violation.

use nyquist_profile::firefox::{self, FormatVersion, Violation, WriteOptions};
use nyquist_profile::{Meta, Process, Profile, ProfileBuilder, Sample, Thread};
use serde_json::{Value, json};

use nyquist_test_support::sample_profile::sample_profile;

fn document(profile: &Profile, version: FormatVersion) -> Value {
    let mut output = Vec::new();
    firefox::write(profile, WriteOptions { version, gzip: false }, &mut output).unwrap();
    serde_json::from_slice(&output).unwrap()
}

/// Sets `value` at a path of a good profile, and expects a violation whose text begins with `expected`.
/// Without a value the member is removed.
fn check(version: FormatVersion, place: &str, value: impl Into<Option<Value>>, expected: &str) {
    let mut profile = document(&sample_profile(), version);
    let (parent, name) = place.rsplit_once('/').unwrap();
    let parent = profile.pointer_mut(parent).unwrap_or_else(|| panic!("{place} is not there"));
    match (value.into(), parent) {
        (Some(value), Value::Array(array)) => array[name.parse::<usize>().unwrap()] = value,
        (None, Value::Array(array)) => drop(array.remove(name.parse().unwrap())),
        (Some(value), object) => object[name] = value,
        (None, object) => drop(object.as_object_mut().unwrap().remove(name).unwrap()),
    }
    let violations: Vec<_> = firefox::check(&profile).iter().map(Violation::to_string).collect();
    assert!(
        violations.iter().any(|violation| violation.starts_with(expected)),
        "{version} {place}: expected {expected}, found {violations:#?}"
    );
}

fn check_both(place: &str, value: impl Into<Option<Value>>, expected: &str) {
    let value = value.into();
    check(FormatVersion::V49, place, value.clone(), expected);
    check(FormatVersion::V66, place, value, expected);
}

/// A path in the tables: `shared` in version 66, the first thread in version 49.
fn check_tables(place: &str, value: impl Into<Option<Value>>, expected: &str) {
    let value = value.into();
    check(
        FormatVersion::V49,
        &format!("/threads/0{place}"),
        value.clone(),
        &format!("threads[0].{expected}"),
    );
    check(FormatVersion::V66, &format!("/shared{place}"), value, &format!("shared.{expected}"));
}

fn v49(place: &str, value: impl Into<Option<Value>>, expected: &str) {
    check(FormatVersion::V49, place, value, expected);
}

fn v66(place: &str, value: impl Into<Option<Value>>, expected: &str) {
    check(FormatVersion::V66, place, value, expected);
}

#[test]
fn what_is_written_keeps_every_rule() {
    let mut unsymbolicated = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
    let process = unsymbolicated.add_process(Process::default());
    let thread = unsymbolicated.add_thread(Thread::new(process, "1", ""));
    unsymbolicated.add_sample(thread, Sample::new(5, None, 0));
    for profile in [sample_profile(), unsymbolicated.finish()] {
        for version in [FormatVersion::V49, FormatVersion::V66] {
            assert_eq!(firefox::check(&document(&profile, version)), []);
        }
    }
}

#[test]
fn a_file_may_be_compressed() {
    let mut output = Vec::new();
    firefox::write(&sample_profile(), WriteOptions::default(), &mut output).unwrap();
    assert_eq!(firefox::check_bytes(&output).unwrap(), []);
    assert!(firefox::check_bytes(&output[..output.len() / 2]).is_err());
    assert!(firefox::check_bytes(b"{").is_err());
}

#[test]
fn meta_says_what_the_front_end_asks() {
    check_both("/meta/preprocessedProfileVersion", json!(50), "meta.preprocessedProfileVersion: is neither");
    for member in ["version", "interval", "startTime", "processType", "product", "stackwalk", "symbolicated"]
    {
        check_both(&format!("/meta/{member}"), None, &format!("meta.{member}: is missing"));
    }
    check_both("/meta/interval", json!(0), "meta.interval: is 0");
    check_both("/meta/sampleUnits", None, "meta.sampleUnits");
    check_both("/meta/sampleUnits/threadCPUDelta", json!("s"), "meta.sampleUnits");
    check_both("/meta/categories", None, "meta.categories: is not an array");
    check_both("/meta/markerSchema", None, "meta.markerSchema: is not an array");
}

#[test]
fn without_libs_symbolication_is_not_supported() {
    let mut profile = document(&ProfileBuilder::new(Meta::default()).finish(), FormatVersion::V66);
    assert_eq!(profile["meta"]["symbolicationNotSupported"], true);
    profile["meta"].as_object_mut().unwrap().remove("symbolicationNotSupported");
    assert_eq!(firefox::check(&profile).len(), 1);
}

#[test]
fn categories_have_colours_grey_and_other_first() {
    check_both("/meta/categories/0/color", json!("red"), "meta.categories: has no grey");
    check_both("/meta/categories/1/color", json!("pink"), "meta.categories[1].color: is \"pink\"");
    check_both("/meta/categories/1/subcategories", json!([]), "meta.categories[1].subcategories");
    check_both(
        "/meta/categories/1/subcategories",
        json!(["JIT", "Other"]),
        "meta.categories[1].subcategories",
    );
    check_both("/meta/categories/1/name", json!(1), "meta.categories[1].name");
}

#[test]
fn libs_have_distinct_keys() {
    for member in ["arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"] {
        check_both(&format!("/libs/0/{member}"), None, &format!("libs[0].{member}: is missing"));
    }
    check_both("/libs/1/debugName", json!("app"), "libs[1]: has the debugName and breakpadId of libs[0]");
    check_both("/libs/0/debugName", json!("a/b"), "libs[0].debugName: has a slash");
    check_both("/libs/0/breakpadId", json!("0123"), "libs[0].breakpadId: is \"0123\"");
    check_both("/libs/0/breakpadId", json!("x".repeat(33)), "libs[0].breakpadId");
    check_both("/libs", None, "libs: is not an array");
}

#[test]
fn marker_schemas_have_names_places_and_fields() {
    check_both("/meta/markerSchema/0/name", json!("Network"), "meta.markerSchema[0].name: is \"Network\"");
    check_both("/meta/markerSchema/0/display/0", json!("wall"), "meta.markerSchema[0].display");
    v66("/meta/markerSchema/0/fields/0/format", json!("weird"), "meta.markerSchema[0].fields[0]: has no key");
    v66("/meta/markerSchema/0/fields/0/key", None, "meta.markerSchema[0].fields[0]: has no key");
    v66("/meta/markerSchema/0/fields", None, "meta.markerSchema[0].fields: is not an array");
    v49("/meta/markerSchema/0/data/0/format", None, "meta.markerSchema[0].data[0]: has no key");
    v49("/meta/markerSchema/0/data", None, "meta.markerSchema[0].data: is not an array");
    let mut profile = document(&sample_profile(), FormatVersion::V66);
    let schemas = profile["meta"]["markerSchema"].as_array_mut().unwrap();
    schemas.push(schemas[0].clone());
    assert_eq!(
        firefox::check(&profile)[0].to_string(),
        "meta.markerSchema[1]: has the name of another schema"
    );
}

#[test]
fn each_version_has_its_layout() {
    v66("/shared", None, "shared: is missing");
    v49("/shared", json!({}), "shared: does not exist");
    v66("/threads/0/stackTable", json!({}), "threads[0]: has a table that version 66 shares");
    v49("/threads/0/stackTable", None, "threads[0].stackTable.length: is missing");
}

#[test]
fn columns_are_there_and_as_long_as_their_tables() {
    let columns = [
        ("stackTable", "frame"),
        ("frameTable", "address"),
        ("frameTable", "inlineDepth"),
        ("frameTable", "category"),
        ("frameTable", "subcategory"),
        ("frameTable", "func"),
        ("frameTable", "nativeSymbol"),
        ("frameTable", "innerWindowID"),
        ("frameTable", "line"),
        ("frameTable", "column"),
        ("funcTable", "name"),
        ("funcTable", "isJS"),
        ("funcTable", "relevantForJS"),
        ("funcTable", "resource"),
        ("funcTable", "lineNumber"),
        ("funcTable", "columnNumber"),
        ("resourceTable", "lib"),
        ("resourceTable", "name"),
        ("resourceTable", "host"),
        ("resourceTable", "type"),
        ("nativeSymbols", "libIndex"),
        ("nativeSymbols", "address"),
        ("nativeSymbols", "name"),
        ("nativeSymbols", "functionSize"),
    ];
    for (table, column) in columns {
        check_tables(&format!("/{table}/{column}"), None, &format!("{table}.{column}: is not a column"));
        check_tables(&format!("/{table}/{column}/0"), None, &format!("{table}.{column}: has "));
    }
    for (table, column) in [
        ("stackTable", "prefixOffset"),
        ("frameTable", "originalLocation"),
        ("funcTable", "source"),
        ("funcTable", "originalLocation"),
        ("sources", "id"),
        ("sources", "filename"),
        ("sources", "startLine"),
        ("sources", "startColumn"),
        ("sources", "sourceMapURL"),
        ("sources", "content"),
        ("sourceLocationTable", "source"),
        ("sourceLocationTable", "line"),
        ("sourceLocationTable", "column"),
    ] {
        v66(&format!("/shared/{table}/{column}"), None, &format!("shared.{table}.{column}: is not a column"));
    }
    for (table, column) in [
        ("stackTable", "prefix"),
        ("stackTable", "category"),
        ("stackTable", "subcategory"),
        ("frameTable", "implementation"),
        ("funcTable", "fileName"),
    ] {
        v49(
            &format!("/threads/0/{table}/{column}"),
            None,
            &format!("threads[0].{table}.{column}: is not a column"),
        );
    }
    check_tables("/stringArray", None, "stringArray: is not an array");
    check_tables("/stringArray/0", json!(1), "stringArray: has a value that is not a string");
}

#[test]
fn indexes_are_rows_of_their_targets() {
    for (table, column) in [
        ("stackTable", "frame"),
        ("frameTable", "func"),
        ("frameTable", "nativeSymbol"),
        ("frameTable", "category"),
        ("frameTable", "subcategory"),
        ("funcTable", "name"),
        ("funcTable", "resource"),
        ("resourceTable", "lib"),
        ("resourceTable", "name"),
        ("nativeSymbols", "libIndex"),
        ("nativeSymbols", "name"),
    ] {
        check_tables(&format!("/{table}/{column}/0"), json!(99), &format!("{table}.{column}[0]: is 99"));
        check_tables(&format!("/{table}/{column}/0"), json!(0.5), &format!("{table}.{column}[0]: is 0.5"));
    }
    v66("/shared/funcTable/source/0", json!(99), "shared.funcTable.source[0]: is 99");
    v66("/shared/sources/filename/0", json!(99), "shared.sources.filename[0]: is 99");
    v66("/shared/sources/startLine/0", json!(0), "shared.sources.startLine[0]: is 0");
    v49("/threads/0/funcTable/fileName/0", json!(99), "threads[0].funcTable.fileName[0]: is 99");
    check_both("/threads/0/samples/stack/0", json!(99), "threads[0].samples.stack[0]: is 99");
    check_tables("/resourceTable/lib/0", json!(null), "resourceTable[0]: is a library without a lib");
}

#[test]
fn numbers_fit_the_front_ends_arrays() {
    check_tables("/frameTable/address/0", json!(1_u32 << 31), "frameTable.address[0]: is 2147483648");
    check_tables("/frameTable/address/0", json!(-2), "frameTable.address[0]: is -2");
    check_tables("/frameTable/inlineDepth/0", json!(256), "frameTable.inlineDepth[0]: is 256");
    check_tables("/frameTable/line/0", json!(-1), "frameTable.line[0]: is -1");
    check_tables("/frameTable/column/0", json!("1"), "frameTable.column[0]: is \"1\"");
    check_tables("/nativeSymbols/address/0", json!(-1), "nativeSymbols.address[0]: is -1");
    check_tables("/nativeSymbols/functionSize/0", json!(1.5), "nativeSymbols.functionSize[0]: is 1.5");
    check_tables("/funcTable/isJS/0", json!(0), "funcTable.isJS[0]: is 0");
}

#[test]
fn parents_come_first() {
    v66("/shared/stackTable/prefixOffset/1", json!(2), "shared.stackTable.prefixOffset[1]: is 2");
    v66("/shared/stackTable/prefixOffset/1", json!(-1), "shared.stackTable.prefixOffset[1]: is -1");
    v49("/threads/0/stackTable/prefix/1", json!(1), "threads[0].stackTable.prefix[1]: is 1");
    v49("/threads/0/stackTable/category/1", json!(null), "threads[0].stackTable.category[1]: is null");
}

#[test]
fn a_subcategory_is_there_where_a_category_is() {
    check_tables("/frameTable/subcategory/0", json!(null), "frameTable.subcategory[0]: is null");
}

#[test]
fn frames_of_libs_and_of_none_share_no_func() {
    v66("/shared/frameTable/address/0", json!(-1), "shared.frameTable[5]: shares its func");
    check_tables(
        "/funcTable/resource/0",
        json!(-1),
        "frameTable[0]: has an address, but its func has no lib",
    );
    check_tables("/frameTable/nativeSymbol/2", json!(0), "frameTable[2]: has a nativeSymbol of another lib");
}

#[test]
fn inlined_frames_are_children_of_their_inliner() {
    let problem = "stackTable[1]: is an inlined frame that its parent does not inline";
    check_tables("/frameTable/inlineDepth/1", json!(2), problem);
    check_tables("/frameTable/address/1", json!(5), problem);
    check_tables("/frameTable/nativeSymbol/1", json!(null), problem);
    check_tables("/frameTable/inlineDepth/0", json!(1), "stackTable[0]: is an inlined frame");
}

#[test]
fn threads_say_whose_and_when() {
    for member in [
        "processType",
        "processStartupTime",
        "processShutdownTime",
        "registerTime",
        "unregisterTime",
        "pausedRanges",
        "name",
        "isMainThread",
        "pid",
        "tid",
    ] {
        check_both(&format!("/threads/0/{member}"), None, &format!("threads[0].{member}: is missing"));
    }
    check_both("/threads/0/pid", json!(77), "threads[0].pid: is 77");
    check_both("/threads/0/unregisterTime", json!(-1), "threads[0]: ends before it begins");
    check_both("/threads/1/isMainThread", json!(true), "threads: has 2 main threads of the process 77");
    check_both("/threads/2/isMainThread", json!(false), "threads: has 0 main threads of the process 78");
}

#[test]
fn samples_lie_before_the_end() {
    check_both(
        "/meta/profilingEndTime",
        json!(1),
        "threads[0].samples: has a sample that is not before meta.profilingEndTime",
    );
}

#[test]
fn times_never_go_backwards() {
    v66("/threads/0/samples/timeDeltas/1", json!(-0.5), "threads[0].samples.timeDeltas[1]: is -0.5");
    v66("/threads/0/samples/timeDeltas", None, "threads[0].samples.time: is not a column");
    v49("/threads/0/samples/time/1", json!(0.5), "threads[0].samples.time[1]: is 0.5");
    v49("/threads/0/samples/time/0", json!(null), "threads[0].samples.time[0]: is null");
    v66("/counters/0/samples/timeDeltas/1", json!(-1), "counters[0].samples.timeDeltas[1]: is -1");
}

#[test]
fn weights_and_cpu_deltas_are_numbers() {
    check_both("/threads/0/samples/weightType", json!("bytes"), "threads[0].samples.weightType");
    check_both("/threads/0/samples/weight/0", json!("1"), "threads[0].samples.weight[0]");
    check_both(
        "/threads/0/samples/threadCPUDelta/1",
        json!(-1),
        "threads[0].samples.threadCPUDelta[1]: is -1",
    );
    check_both("/threads/0/samples/threadCPUDelta/0", None, "threads[0].samples.threadCPUDelta: has 2 rows");
    check_both("/threads/0/samples/length", json!(4), "threads[0].samples.stack: has 3 rows");
}

#[test]
fn version_49_has_integers_and_no_nulls() {
    v49("/threads/0/samples/weight", json!(null), "threads[0].samples.weight: is not a column");
    v49("/threads/0/samples/weight/0", json!(1.5), "threads[0].samples.weight[0]: is 1.5");
    v49("/threads/0/samples/threadCPUDelta/0", json!(null), "threads[0].samples.threadCPUDelta[0]: is null");
    v49("/threads/0/samples/threadCPUDelta/0", json!(0.5), "threads[0].samples.threadCPUDelta[0]: is 0.5");
}

#[test]
fn markers_fit_their_phases_and_schemas() {
    let check = |place: &str, value: Value, expected: &str| {
        check_both(&format!("/threads/0/markers{place}"), value, &format!("threads[0].markers{expected}"));
    };
    check("/phase/0", json!(4), ".phase[0]: is 4");
    check("/startTime/0", json!(null), "[0]: has times that do not fit its phase");
    check("/endTime/0", json!(0), "[0]: has times that do not fit its phase");
    check("/startTime/2", json!(null), "[2]: has times that do not fit its phase");
    check("/endTime/3", json!(null), "[3]: has times that do not fit its phase");
    check("/category/0", json!(99), ".category[0]: is 99");
    check("/name/0", json!(99), ".name[0]: is 99");
    check("/data/0/type", json!("Unknown"), ".data[0]");
    check("/data/0/cause/stack", json!(99), ".data[0]");
    check("/data/0/kind", json!("GET"), ".data[0]");
    check("/data/0/kind", json!(99), ".data[0]");
    check("/data/0/url", json!(1), ".data[0]");
    check("/data/0/size", json!("1"), ".data[0]");
}

#[test]
fn counters_belong_to_a_main_thread_with_a_graph() {
    for member in ["name", "category", "description", "pid", "mainThreadIndex"] {
        check_both(&format!("/counters/0/{member}"), None, &format!("counters[0].{member}: is missing"));
    }
    check_both(
        "/counters/0/mainThreadIndex",
        json!(0),
        "counters[0].mainThreadIndex: is not the main thread of its pid",
    );
    check_both(
        "/counters/0/mainThreadIndex",
        json!(9),
        "counters[0].mainThreadIndex: is not the main thread of its pid",
    );
    check_both("/counters/0/samples/count/0", json!(null), "counters[0].samples.count[0]: is null");
    check_both("/counters/0/samples/number/0", json!(null), "counters[0].samples.number[0]: is null");
    for member in ["graphType", "unit", "color", "markerSchemaLocation", "sortWeight", "label", "tooltipRows"]
    {
        v66(
            &format!("/counters/0/display/{member}"),
            None,
            &format!("counters[0].display.{member}: is missing"),
        );
    }
    v66("/counters/0/display/color", json!("brown"), "counters[0].display.color: is \"brown\"");
    v66("/counters/0/display/graphType", json!("bar"), "counters[0].display.graphType: is \"bar\"");
    v66("/counters/0/display", None, "counters[0].display.graphType: is missing");
}

#[test]
fn no_document_makes_the_checker_panic() {
    let profile = document(&sample_profile(), FormatVersion::V66);
    let hostile = [json!(null), json!([]), json!({}), json!(-1), json!(1e300), json!("x"), json!([[]])];
    for place in places(&profile) {
        for value in &hostile {
            let mut profile = profile.clone();
            *profile.pointer_mut(&place).unwrap() = value.clone();
            firefox::check(&profile);
        }
    }
}

/// The paths of all members of a document, and of the first elements of its arrays.
pub(crate) fn places(document: &Value) -> Vec<String> {
    let mut places = vec![String::new()];
    let mut next = 0;
    while let Some(place) = places.get(next).cloned() {
        match document.pointer(&place).unwrap() {
            Value::Object(object) => places.extend(object.keys().map(|key| format!("{place}/{key}"))),
            Value::Array(array) => {
                places.extend((0..array.len().min(2)).map(|index| format!("{place}/{index}")));
            }
            _ => {}
        }
        next += 1;
    }
    places
}

#[test]
fn rows_that_are_only_claimed_are_not_looked_at() {
    for length in [json!(u64::MAX), json!(1_u64 << 40)] {
        for table in ["frameTable", "funcTable", "stackTable", "nativeSymbols", "resourceTable"] {
            let mut document = document(&sample_profile(), FormatVersion::V66);
            document["shared"][table]["length"] = length.clone();
            assert!(!firefox::check(&document).is_empty(), "{table} of {length} rows");
        }
    }
}
