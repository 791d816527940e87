//! Profiles of versions that are read but not written, following the format's changelog.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{Profile, Sample};
use serde_json::{Value, json};

use nyquist_test_support::sample_profile::{describe, sample_profile};

fn document(version: FormatVersion) -> Value {
    let mut output = Vec::new();
    firefox::write(&sample_profile(), WriteOptions { version, gzip: false }, &mut output).unwrap();
    serde_json::from_slice(&output).unwrap()
}

fn read(document: &Value) -> Profile {
    firefox::read(document.to_string().as_bytes()).unwrap()
}

/// Applies `change` to a version 49 document, and expects the same profile to be read from it.
fn check_same(version: u32, change: impl Fn(&mut Value)) {
    let mut old = document(FormatVersion::V49);
    old["meta"]["preprocessedProfileVersion"] = json!(version);
    change(&mut old);
    assert_eq!(describe(&read(&old)), describe(&sample_profile()), "version {version}");
}

fn threads(document: &mut Value) -> &mut Vec<Value> {
    document["threads"].as_array_mut().unwrap()
}

fn remove(object: &mut Value, member: &str) -> Value {
    object.as_object_mut().unwrap().remove(member).unwrap()
}

#[test]
fn version_40_has_libs_in_each_thread() {
    check_same(40, |document| {
        let libs = remove(document, "libs");
        for thread in threads(document) {
            thread["libs"] = libs.clone();
        }
    });
}

/// The same as the front end's upgrader of version 69.
#[test]
fn version_70_has_libs_on_frames_not_resources() {
    let mut newer = document(FormatVersion::V66);
    newer["meta"]["preprocessedProfileVersion"] = json!(70);
    let shared = &mut newer["shared"];
    let libs = remove(&mut shared["resourceTable"], "lib");
    let number = |value: &Value| usize::try_from(value.as_i64().unwrap()).ok();
    let of_func = |func: &Value| {
        let resource = number(&shared["funcTable"]["resource"][number(func).unwrap()]);
        resource.map_or(json!(-1), |resource| libs[resource].clone())
    };
    let of_frames = shared["frameTable"]["func"].as_array().unwrap().iter().map(of_func).collect();
    shared["frameTable"]["lib"] = of_frames;
    let read = read(&newer);
    assert_eq!(describe(&read), describe(&sample_profile()));
    newer["shared"]["frameTable"]["lib"][0] = json!(99);
    let refused = firefox::read(newer.to_string().as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("frameTable.lib[0] is 99"), "{refused}");
}

#[test]
fn version_45_has_numeric_pids_without_main_flag() {
    check_same(45, |document| {
        for thread in threads(document) {
            remove(thread, "isMainThread");
            let pid: u32 = thread["pid"].as_str().unwrap().parse().unwrap();
            thread["pid"] = json!(pid);
        }
        document["counters"][0]["pid"] = json!(78);
    });
}

#[test]
fn version_47_has_groups_of_counter_samples() {
    check_same(47, |document| {
        let counter = &mut document["counters"][0];
        let samples = remove(counter, "samples");
        counter["sampleGroups"] = json!([{ "id": 0, "samples": samples }]);
    });
}

#[test]
fn version_49_may_have_categories_on_stacks_only() {
    let mut old = document(FormatVersion::V49);
    for thread in threads(&mut old) {
        remove(&mut thread["frameTable"], "category");
        remove(&mut thread["frameTable"], "subcategory");
    }
    let (old, new) = (read(&old), sample_profile());
    for (old_thread, new_thread) in old.threads().iter().zip(new.threads()) {
        for (old_sample, new_sample) in old_thread.samples.iter().zip(&new_thread.samples) {
            assert_eq!(leaf_category(&old, &old_sample), leaf_category(&new, &new_sample));
        }
    }
}

fn leaf_category(profile: &Profile, sample: &Sample) -> Option<usize> {
    let mut frames = profile.stack_frames(sample.stack?);
    frames.find_map(|frame| frame.category).map(|pair| pair.category.index())
}

#[test]
fn version_50_may_have_differences_of_times() {
    check_same(50, |document| {
        for thread in threads(document) {
            let times = remove(&mut thread["samples"], "time");
            let mut last = 0.0;
            let deltas = times.as_array().unwrap().iter().map(|time| {
                let delta = time.as_f64().unwrap() - last;
                last = time.as_f64().unwrap();
                delta
            });
            thread["samples"]["timeDeltas"] = deltas.collect();
        }
    });
}

#[test]
fn version_55_has_fields_in_marker_schemas() {
    check_same(55, |document| {
        let schema = &mut document["meta"]["markerSchema"][0];
        let mut fields = remove(schema, "data");
        fields.as_array_mut().unwrap().retain(|field| field.get("key").is_some());
        schema["fields"] = fields;
        schema["description"] = json!("A request");
    });
}

#[test]
fn version_56_shares_strings_of_49s_threads() {
    check_same(56, |document| {
        let mut strings: Vec<Value> = Vec::new();
        for thread in threads(document) {
            let offset = strings.len() as u64;
            strings.extend(remove(thread, "stringArray").as_array().unwrap().iter().cloned());
            for (table, column) in [
                ("funcTable", "name"),
                ("funcTable", "fileName"),
                ("resourceTable", "name"),
                ("nativeSymbols", "name"),
                ("markers", "name"),
            ] {
                for index in thread[table][column].as_array_mut().unwrap() {
                    *index = index.as_u64().map_or(Value::Null, |index| json!(index + offset));
                }
            }
            for data in thread["markers"]["data"].as_array_mut().unwrap() {
                if let Some(kind) = data.get("kind").and_then(Value::as_u64) {
                    data["kind"] = json!(kind + offset);
                }
            }
        }
        document["shared"] = json!({ "stringArray": strings });
    });
}

#[test]
fn version_60_shares_tables_with_prefix_indexes() {
    let mut document = document(FormatVersion::V66);
    document["meta"]["preprocessedProfileVersion"] = json!(60);
    let offsets = remove(&mut document["shared"]["stackTable"], "prefixOffset");
    let prefixes =
        offsets.as_array().unwrap().iter().enumerate().map(|(row, offset)| match offset.as_u64().unwrap() {
            0 => Value::Null,
            offset => json!(row as u64 - offset),
        });
    document["shared"]["stackTable"]["prefix"] = prefixes.collect();
    remove(&mut document["shared"], "sourceLocationTable");
    assert_eq!(describe(&read(&document)), describe(&sample_profile()));
}

#[test]
fn cpu_deltas_may_be_microseconds_or_missing() {
    let check = |unit: Option<&str>, deltas: Value, expected: [u64; 3], is_measured: bool| {
        let mut document = document(FormatVersion::V66);
        match unit {
            Some(unit) => document["meta"]["sampleUnits"]["threadCPUDelta"] = json!(unit),
            None => drop(remove(&mut document["meta"], "sampleUnits")),
        }
        document["threads"][0]["samples"]["threadCPUDelta"] = deltas;
        let profile = read(&document);
        let deltas: Vec<_> = profile.threads()[0].samples.iter().map(|sample| sample.cpu_delta).collect();
        assert_eq!(
            (deltas.as_slice(), profile.meta().has_cpu_deltas),
            (&expected[..], is_measured),
            "{unit:?}"
        );
    };
    check(Some("ns"), json!([1, 2, 3]), [1, 2, 3], true);
    check(Some("µs"), json!([1, 2.5, 3]), [1_000, 2_500, 3_000], true);
    // A missing delta counts as a whole CPU since the previous sample.
    check(Some("µs"), json!([null, null, 0]), [0, 1_000_002, 0], true);
    check(Some("variable CPU cycles"), json!([1, 2, 3]), [0, 0, 0], false);
    check(None, json!([1, 2, 3]), [0, 0, 0], false);
}

#[test]
fn without_a_list_of_categories_nothing_has_one() {
    let mut document = document(FormatVersion::V66);
    remove(&mut document["meta"], "categories");
    let profile = read(&document);
    assert!(profile.frames().iter().all(|frame| frame.category.is_none()));
    assert_eq!(profile.categories().len(), 1);
}

#[test]
fn unknown_members_are_skipped() {
    let mut document = document(FormatVersion::V66);
    document["pages"] = json!([{ "tabID": 1 }]);
    document["profilerOverhead"] = json!([]);
    document["threads"][0]["jsTracer"] = json!({ "events": [[[]]] });
    document["shared"]["frameTable"]["extra"] = json!(["anything"]);
    assert_eq!(describe(&read(&document)), describe(&sample_profile()));
}
