//! Markers of a Tokio program with the layer, of a program without any library, of a program that crashes,
//! and of a program that is attached to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::invocation::Running;
use super::profile::Profile;
use super::profiler_cli::Session;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("spans_and_events_are_markers_on_their_threads", spans),
    Test::new("tasks_have_one_identity_and_an_own_line", tasks),
    Test::new("a_crash_loses_no_markers", crash),
    Test::new("markers_of_a_plain_user_are_recorded", plain_user),
    Test::new("any_program_can_write_markers", without_library).in_pairs(SHARES),
    Test::new("a_marker_file_that_is_cut_keeps_what_parses", cut),
    Test::new("samplys_marker_files_are_read", samplys),
    Test::new("attaching_switches_markers_on_and_off", attached).in_pairs(SHARES),
    Test::new("attaching_finds_markers_of_a_forked_child", attached_child).in_pairs(SHARES),
    Test::new("the_front_end_shows_markers", front_end),
];

/// The mode, the connections and the requests of the server. Each request is a page.
const SMALL: [&str; 3] = ["joined", "4", "25"];
const PAGES: usize = 100;

/// A marker, with its thread's name.
pub(super) struct Marker {
    pub(super) thread: String,
    pub(super) name: String,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) data: Value,
}

pub(super) fn markers(profile: &Profile) -> anyhow::Result<Vec<Marker>> {
    let json = &profile.json;
    let strings = &json["shared"]["stringArray"];
    let mut markers = Vec::new();
    for thread in json["threads"].as_array().context("no threads")? {
        let table = &thread["markers"];
        for row in 0..table["length"].as_u64().context("no markers")? as usize {
            let start = table["startTime"][row].as_f64().unwrap_or_default();
            let name = table["name"][row].as_u64().context("no name")? as usize;
            markers.push(Marker {
                thread: thread["nyquistName"]
                    .as_str()
                    .or(thread["name"].as_str())
                    .unwrap_or_default()
                    .to_owned(),
                name: strings[name].as_str().unwrap_or_default().to_owned(),
                start,
                end: table["endTime"][row].as_f64().unwrap_or(start),
                data: table["data"][row].clone(),
            });
        }
    }
    Ok(markers)
}

/// The number of markers of a thread, by name.
fn counts<'a>(markers: &'a [Marker], thread: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for marker in markers.iter().filter(|marker| marker.thread == thread) {
        *counts.entry(marker.name.as_str()).or_default() += 1;
    }
    counts
}

fn server(args: [&str; 3]) -> [&str; 4] {
    ["async_server", args[0], args[1], args[2]]
}

fn spans(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&server(SMALL)).run_well()?;
    let markers = markers(&recorded.profile)?;
    let on_workers = counts(&markers, "tokio-rt-worker");
    expect_eq("events", on_workers.get("INFO"), Some(&PAGES))?;
    expect_eq("calls of a function that is no task", on_workers.get("render"), Some(&PAGES))?;
    let event = markers.iter().find(|marker| marker.name == "INFO").context("no event")?;
    expect_eq("the message", event.data["message"].as_str(), Some("page is ready"))?;
    expect(event.data["bytes"].as_u64() > Some(10_000), format_args!("no field in {}", event.data))?;
    let end = recorded.profile.json["meta"]["profilingEndTime"].as_f64().unwrap_or_default();
    let sane =
        markers.iter().all(|marker| 0.0 <= marker.start && marker.start <= marker.end && marker.end <= end);
    expect(sane, "a marker lies outside of the recording")?;
    expect(!recorded.finished.stderr.contains("warning"), "something was lost")
}

fn tasks(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&server(SMALL)).run_well()?;
    let markers = markers(&recorded.profile)?;
    let whole = counts(&markers, "async tasks");
    expect_eq("pages as wholes", whole.get("page"), Some(&PAGES))?;
    expect_eq("queries as wholes", whole.get("query"), Some(&(3 * PAGES)))?;
    for page in markers.iter().filter(|marker| marker.thread == "async tasks" && marker.name == "page") {
        let runs: Vec<_> = markers
            .iter()
            .filter(|run| run.thread == "tokio-rt-worker" && run.data["span"] == page.data["span"])
            .filter(|run| run.name == "page")
            .collect();
        expect(runs.len() >= 2, format_args!("{} runs of a page", runs.len()))?;
        expect_eq("the count of runs", page.data["runs"].as_u64(), Some(runs.len() as u64))?;
        let inside = runs.iter().all(|run| page.start <= run.start && run.end <= page.end);
        expect(inside, "a run lies outside of its task")?;
        let busy: f64 = runs.iter().map(|run| run.end - run.start).sum();
        let (printed, idle) = (page.data["busy"].as_f64(), page.data["idle"].as_f64().unwrap_or_default());
        expect(
            printed.is_some_and(|printed| (printed - busy).abs() < 0.001),
            format_args!("busy {busy} and {printed:?}"),
        )?;
        expect((busy + idle - (page.end - page.start)).abs() < 0.001, "busy and idle are not the whole")?;
        let queries = markers.iter().filter(|query| {
            query.name == "query"
                && query.thread == "async tasks"
                && query.data["parent"] == page.data["span"]
        });
        expect_eq("queries of a page", queries.count(), 3)?;
    }
    Ok(())
}

fn crash(test: &Context<'_>) -> Verdict {
    let args = [&server(SMALL)[..], &["crash"]].concat();
    let recorded = test.record(&args).run()?;
    expect_eq("the exit status", recorded.finished.status.code(), Some(128 + libc::SIGABRT))?;
    let markers = markers(&recorded.profile)?;
    expect_eq("events", counts(&markers, "tokio-rt-worker").get("INFO"), Some(&PAGES))
}

fn plain_user(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&server(SMALL)).by_plain_user().run_well()?;
    let markers = markers(&recorded.profile)?;
    expect_eq("events", counts(&markers, "tokio-rt-worker").get("INFO"), Some(&PAGES))
}

fn without_library(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["markers", "records"]).run_well()?;
    let found = markers(&recorded.profile)?;
    let names: Vec<_> = found.iter().map(|marker| marker.name.as_str()).collect();
    expect_eq("markers", names, vec!["load file", "load file", "tick"])?;
    let data: Vec<_> =
        found.iter().map(|marker| (marker.data["path"].as_str(), marker.data["size"].as_u64())).collect();
    expect_eq("fields", data, vec![(Some("/a"), Some(4096)), (Some("/b"), Some(123)), (None, None)])?;
    let took = found[0].end - found[0].start;
    // The interval may have begun before the recording did.
    expect_measured((0.5..50.0).contains(&took), format_args!("an interval of 2 ms took {took} ms"))?;
    expect_contains(
        "what is said of the other file",
        &recorded.finished.stderr,
        "1 marker could not be understood",
    )
}

fn cut(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["markers", "cut"]).run_well()?;
    let names: Vec<_> = markers(&recorded.profile)?.into_iter().map(|marker| marker.name).collect();
    expect_eq("markers", names, vec!["load file".to_owned()])?;
    expect_contains("what is said", &recorded.finished.stderr, "could not be understood")
}

fn samplys(test: &Context<'_>) -> Verdict {
    let program = test.workload("markers").display().to_string();
    let shell = format!("cd {} && exec {program} samply", test.path("").display());
    let recorded = test.record_command(&["sh", "-c", &shell]).run_well()?;
    let names: Vec<_> = markers(&recorded.profile)?.into_iter().map(|marker| marker.name).collect();
    expect_eq("markers", names, vec!["first step".to_owned(), "second step".to_owned()])?;
    expect_contains("what is said", &recorded.finished.stderr, "1 marker could not be understood")
}

fn attached(test: &Context<'_>) -> Verdict {
    let target = test.program(test.workload("async_server")).args(&["joined", "4", "1000000"]).start()?;
    target.wait_until("the program can be attached to", || control_file(&target).is_some())?;
    let pid = target.pid().to_string();
    for round in ["first", "second"] {
        let output = test.fresh("attached.json.gz");
        let call = test.nyquist(&["record", "-s", "-d", "1", "-p", &pid, "-o"]).path(&output);
        call.run()?.succeeded()?;
        let markers = markers(&Profile::read(&output)?)?;
        let pages = counts(&markers, "tokio-rt-worker").get("INFO").copied().unwrap_or_default();
        expect_measured(pages > 50, format_args!("{pages} pages in the {round} recording"))?;
        wait_until_freed(&target)?;
    }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    expect(!maps.is_empty(), "the program did not survive")?;
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

/// The memory file by which recorders find the program.
fn control_file(target: &Running<'_>) -> Option<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", target.pid())).ok()?.flatten();
    let is_it = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains("nyquist-markers"))
    };
    descriptors.map(|entry| entry.path()).find(is_it)
}

/// Waits until the memory of the rings is freed. Only their addresses remain.
fn wait_until_freed(target: &Running<'_>) -> Verdict {
    let blocks = || control_file(target).and_then(|file| fs::metadata(file).ok()).map(|file| file.blocks());
    // A few pages are allocated again if a thread was writing a marker.
    target.wait_until("the rings' memory to be freed", || blocks().is_some_and(|blocks| blocks < 1024))?;
    Ok(())
}

fn attached_child(test: &Context<'_>) -> Verdict {
    let target = test.program(test.workload("markers")).args(&["attach"]).by_plain_user().start()?;
    target.wait_until("the program can be attached to", || control_file(&target).is_some())?;
    let pid = target.pid().to_string();
    for _ in 0..2 {
        let output = test.fresh("attached.json.gz");
        test.nyquist(&["record", "-s", "-d", "1", "-p", &pid, "-o"]).path(&output).run()?.succeeded()?;
        let mut names: Vec<_> =
            markers(&Profile::read(&output)?)?.into_iter().map(|marker| marker.name).collect();
        names.sort();
        names.dedup();
        expect_eq("markers", names, vec!["child".to_owned(), "parent".to_owned()])?;
        wait_until_freed(&target)?;
    }
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

fn front_end(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&server(SMALL)).run_well()?;
    let session = Session::of_file(test, &recorded.path)?;
    let list = session.ask(&["thread", "list", "--sort", "cpu"])?;
    let threads = list["threads"].as_array().context("no threads")?;
    let tasks = threads.iter().find(|thread| thread["name"] == "async tasks").context("no line of tasks")?;
    let handle = tasks["threadHandle"].as_str().unwrap_or_default();
    let shown = session.ask(&["thread", "markers", "--thread", handle])?.to_string();
    expect_contains("the tasks' markers", &shown, "page")?;
    expect_contains("the tasks' markers", &shown, "query")
}
