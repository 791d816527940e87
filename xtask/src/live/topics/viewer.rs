//! The built-in viewer: the answers of its server, and the page in a real browser
//! (`crates/nyquist-viewer/tests/browser.mjs`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::browser;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::http::Client;
use super::invocation::Running;
use super::large_profile;
use super::npm::{self, Package};
use super::query;
use super::server::{link_of, parts_of};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_page_loads_nothing_of_others", page),
    Test::new("a_browser_opens_the_requested_page", chosen_page),
    Test::new("its_types_check_and_its_logic_passes", pure_parts),
    Test::new("the_list_has_the_reports_numbers", numbers),
    Test::new("trees_search_and_filters", |test| on_shares(test, "views")),
    Test::new("a_dragged_range_is_in_the_address", |test| on_shares(test, "range")),
    Test::new("an_empty_selection_has_a_way_back", |test| on_shares(test, "empty")),
    Test::new("deep_rows_and_long_names_are_in_sight", deep),
    Test::new("short_calls_are_seen_in_the_stack_chart", short_calls),
    Test::new("a_narrow_screen_is_enough", |test| on_shares(test, "narrow")),
    Test::new("source_and_instructions_are_shown", |test| on_shares(test, "source")),
    Test::new("what_is_shown_can_be_saved", |test| on_shares(test, "share")),
    Test::new("moments_and_the_heat_map", |test| on_shares(test, "moments")),
    Test::new("own_code_and_libraries", |test| on_shares(test, "own")),
    Test::new("two_runs_are_compared", compare),
    Test::new("events_are_shown_in_place_of_time", events),
    Test::new("waits_have_their_shares_and_stacks", waits),
    Test::new("without_samples_the_reason_is_shown", nothing),
    Test::new("the_page_selects_nothing_by_itself", |test| on_shares(test, "unselected")),
    Test::new("axe_finds_nothing", accessible),
    Test::new("the_wheel_and_keys_zoom", |test| on_shares(test, "zoom")),
    Test::new("functions_are_grouped_by_file_and_library", |test| on_shares(test, "groups")),
    Test::new("inlined_functions_can_be_merged", compiled),
    Test::new("tracks_are_hidden_and_stacks_selected", tracks),
    Test::new("a_tooltip_has_all_calls_of_a_function", calls),
    Test::new("a_tooltip_has_all_names_of_a_function", folded),
    Test::new("dropped_files_are_opened_and_compared", |test| on_shares(test, "drop")),
    Test::new("a_dropped_file_keeps_to_the_memory_limit", dropped_within_limit),
    Test::new("each_of_many_threads_has_a_track", many_threads),
    Test::new("much_of_everything_is_usable", large),
    Test::new("each_core_has_a_track", cores),
    Test::new("a_recording_is_followed", live_recording),
    Test::new("top_is_followed_in_a_browser", live_top),
    Test::new("an_exported_page_needs_no_server", exported),
    Test::new("hostile_names_are_text", hostile_names),
];

/// The package that controls the browser.
const PLAYWRIGHT: Package = Package { name: "playwright-core", version: "1.65.1" };

/// The package that checks what programs that read pages aloud need.
const AXE: Package = Package { name: "axe-core", version: "4.14.1" };

/// The package that checks the types in the page's modules.
const TYPESCRIPT: Package = Package { name: "typescript", version: "5.9.3" };

/// A running server of the viewer.
pub(super) struct ViewerServer<'a> {
    running: Running<'a>,
    client: Client,
    /// The path of the page.
    path: String,
    /// The address that opens the profile in the front end.
    front_end: String,
}

impl<'a> ViewerServer<'a> {
    pub(super) fn start(test: &'a Context<'a>, profiles: &[&Path]) -> Result<Self, Stop> {
        let call = test.nyquist(&["load", "--no-open"]);
        let running = profiles.iter().fold(call, |call, profile| call.path(profile)).start()?;
        let front_end = link_of(&running)?;
        let (port, _, base) = parts_of(&front_end)?;
        Ok(Self { running, client: Client::new(port), path: format!("{base}/"), front_end })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.client.port, self.path)
    }

    /// The answer to a question.
    pub(super) fn ask(&self, question: &str) -> anyhow::Result<Value> {
        self.client.get(&format!("{}api/v1/{question}", self.path))?.json()
    }

    pub(super) fn end(self) -> Verdict {
        self.running.signal(libc::SIGINT)?;
        expect_eq("the server's status after Ctrl-C", self.running.wait()?.code(), 0)
    }
}

fn page(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let served = ViewerServer::start(test, &[&recorded.path])?;
    let page = served.client.get(&served.path)?;
    expect_eq("the status", page.status, 200)?;
    let policy = page.header("content-security-policy").unwrap_or_default();
    expect_contains("the policy", policy, "default-src 'none'; script-src 'self'; style-src 'self';")?;
    expect_contains("the page", &page.text(), &served.front_end.replace('&', "&amp;"))?;
    let printed = served.running.stdout_so_far() + &served.running.stderr_so_far();
    expect_contains("what is printed", &printed, &format!("Built-in viewer   {}", served.url()))?;
    let script = format!("{}assets/page.js", served.path);
    let zipped = served.client.request("GET", &script, &[("Accept-Encoding", "gzip, br")], "")?;
    expect_eq("the encoding", zipped.header("content-encoding"), Some("gzip"))?;
    let etag = zipped.header("etag").unwrap_or_default().to_owned();
    let again = served.client.request("GET", &script, &[("If-None-Match", &etag)], "")?;
    expect_eq("the status of what is known", again.status, 304)?;
    expect_eq("without the token", served.client.get("/assets/page.js")?.status, 404)?;
    let refused = served.client.get(&format!("{}api/v1/callers?function=x", served.path))?;
    expect_eq(
        "a wrong question",
        (refused.status, refused.json()?),
        (400, json!({"error": "function takes a number, not \"x\""})),
    )?;
    served.end()
}

/// The address that a browser gets leads to the requested page. If the front end cannot be reached, that is
/// the viewer.
fn chosen_page(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    // A port on which no server listens.
    let unreachable = "http://127.0.0.1:1";
    for (ui, is_viewer) in [("builtin", true), ("firefox", false), ("auto", true)] {
        let (browser, opened) = browser::stand_in(test, ui)?;
        let call = test.nyquist(&["load", "--ui", ui]).path(&recorded.path);
        let call = call.env("BROWSER", browser.display().to_string()).env("PROFILER_URL", unreachable);
        let running = call.start()?;
        let link = link_of(&running)?;
        running.wait_until("the browser to be opened", || opened.exists())?;
        let argument = std::fs::read_to_string(&opened)?.trim().to_owned();
        let (port, _, base) = parts_of(&link)?;
        let path = argument.strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap_or_default();
        let answer = Client::new(port).get(path)?;
        let target = if is_viewer { format!("http://127.0.0.1:{port}{base}/") } else { link };
        expect_eq(ui, answer.header("location"), Some(target.as_str()))?;
        running.signal(libc::SIGINT)?;
        expect_eq("the status at the end", running.wait()?.code(), 0)?;
    }
    Ok(())
}

/// The folder of the viewer's crate.
fn crate_folder() -> PathBuf {
    crate::paths::root().join("crates/nyquist-viewer")
}

fn pure_parts(test: &Context<'_>) -> Verdict {
    let tools = npm::folder_with(&[TYPESCRIPT])?;
    let compiler = tools.join("node_modules/typescript/bin/tsc");
    let checked = test.program("node").path(&compiler).args(&["-p"]).path(&crate_folder()).run()?;
    expect_eq(&format!("tsc: {}", checked.stdout_text()), checked.code(), 0)?;
    let mut tests: Vec<PathBuf> = std::fs::read_dir(crate_folder().join("tests"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    tests.sort();
    expect(!tests.is_empty(), "there are no tests of the page's logic")?;
    let call = tests.iter().fold(test.program("node").args(&["--test"]), |call, path| call.path(path));
    let tested = call.run()?;
    expect_eq(&format!("node --test: {}", tested.stdout_text()), tested.code(), 0)
}

/// Runs a scenario with served profiles. `expected` contains the facts that the scenario checks.
fn browse(test: &Context<'_>, profiles: &[&Path], scenario: &str, expected: &Value) -> Verdict {
    browser::program()?;
    let served = ViewerServer::start(test, profiles)?;
    look_at(test, &served.url(), scenario, expected)?;
    served.end()
}

/// Runs a scenario in a browser.
fn look_at(test: &Context<'_>, url: &str, scenario: &str, expected: &Value) -> Verdict {
    let (program, tools) = (browser::program()?, npm::folder_with(&[PLAYWRIGHT, AXE])?);
    let script = crate_folder().join("tests/browser.mjs");
    let call = test.program("node").path(&script).args(&[scenario, url, &expected.to_string()]);
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output()?;
    let call = call.env("CHROMIUM", String::from_utf8_lossy(&found.stdout).trim());
    let finished = call.env("PLAYWRIGHT_HOME", tools.display().to_string()).run()?;
    expect_eq(&format!("{scenario}: {}", finished.stderr), finished.code(), 0)
}

/// While no page is watched, no snapshot is made. A page shows a growing profile, and then the end. After
/// that, the profile is available as for any recording.
fn live_recording(test: &Context<'_>) -> Verdict {
    let (output, ending) = (test.path("live.json.gz"), test.path("over"));
    let call = test.nyquist(&["record", "--live", "--no-open", "-o"]).path(&output).args(&["--"]);
    let running = call.path(&test.workload("endless")).args(&["1"]).path(&ending).start()?;
    let (port, profile, base) = parts_of(&link_of(&running)?)?;
    let client = Client::new(port);
    running.wait_until_sampling()?;
    // Several times as long as a watched page waits for a new snapshot.
    std::thread::sleep(Duration::from_secs(2));
    let live_state = || client.get(&format!("{base}/api/v1/live?paused=1"))?.json();
    expect_eq("the state while no page is open", live_state()?, json!({"version": 0, "state": "running"}))?;
    follow(test, port, &base, &ending)?;
    expect_eq("the state of the recording", live_state()?["state"].as_str(), Some("ended"))?;
    expect(output.exists(), "the profile is shown and not saved")?;
    let served = client.get(&profile)?;
    expect_eq(
        "the profile",
        (served.status, served.header("content-type")),
        (200, Some("application/gzip")),
    )?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status, the command's own", running.wait()?.code(), 0)
}

fn live_top(test: &Context<'_>) -> Verdict {
    let ending = test.path("over");
    let call = test.nyquist(&["top", "--web", "--no-open", "--"]);
    let running = call.path(&test.workload("endless")).args(&["1"]).path(&ending).start()?;
    let (port, _, base) = parts_of(&link_of(&running)?)?;
    follow(test, port, &base, &ending)?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status, the command's own", running.wait()?.code(), 0)
}

/// Watches a program until it ends, which happens when a file exists.
fn follow(test: &Context<'_>, port: u16, base: &str, ending: &Path) -> Verdict {
    let expected = json!({"leaf": "main_loop", "ending": ending.display().to_string()});
    look_at(test, &format!("http://127.0.0.1:{port}{base}/"), "live", &expected)
}

/// A profile that is sent to the page is read within the memory that the command was given.
fn dropped_within_limit(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let call = test.nyquist(&["load", "--no-open", "--max-memory", "64M"]).path(&recorded.path);
    let running = call.start()?;
    let (port, _, base) = parts_of(&link_of(&running)?)?;
    let sent = |functions: u32| {
        let lines: Vec<_> = (0..functions).map(|n| format!("main;outer{n};inner{n} 1\n")).collect();
        Client::new(port).post(&format!("{base}/api/v1/open"), &lines.concat())
    };
    let refused = sent(400_000)?;
    expect_eq("a large profile", refused.status, 400)?;
    expect_contains("the reason", &refused.text(), "64 MiB of memory")?;
    expect_eq("a small profile", sent(100)?.status, 200)?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status after Ctrl-C", running.wait()?.code(), 0)
}

/// An exported page opens without a server.
fn exported(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let page = test.path("page.html");
    let call = test.nyquist(&["export", "--format", "viewer", "-o"]).path(&page);
    call.path(&recorded.path).run()?.succeeded()?;
    let url = format!("file://{}", page.display());
    look_at(test, &url, "file", &json!({"leaf": "alpha", "caller": "middle"}))
}

/// There are more threads than one answer contains tracks. The page requests the others when they become
/// visible.
fn many_threads(test: &Context<'_>) -> Verdict {
    const THREADS: usize = 300;
    let slice = |thread: usize| json!({"ph": "X", "name": "work", "ts": 0, "dur": 500_000 + thread, "pid": 1, "tid": thread});
    let mut events: Vec<_> = (0..THREADS).map(slice).collect();
    events.push(json!({"ph": "X", "name": "rest", "ts": 999_999, "dur": 1, "pid": 1, "tid": 0}));
    let trace = test.fresh("many.json");
    std::fs::write(&trace, json!({ "traceEvents": events }).to_string())?;
    browse(test, &[&trace], "many", &json!({ "threads": THREADS }))
}

/// Two thousand threads, an hour at 1 ms, a hundred counters, a name of 4,000 characters.
fn large(test: &Context<'_>) -> Verdict {
    let profile = test.fresh("large.json");
    std::fs::write(&profile, large_profile::text())?;
    let expected = json!({
        "long": large_profile::long_name(), "caller": large_profile::CALLER,
        "thread": large_profile::thread_name(large_profile::THREADS - 1),
        "counters": large_profile::COUNTERS, "nodes": 6000,
    });
    browse(test, &[&profile], "large", &expected)
}

/// Threads whose names differ in their ends, and whose stacks are deep.
fn deep(test: &Context<'_>) -> Verdict {
    const DEPTH: usize = 60;
    let name = |tid: usize| format!("worker-of-the-pool-of-requests-{tid}");
    let call = |tid, number: usize| {
        let name = if number + 1 == DEPTH { "leaf".to_owned() } else { format!("call{number}") };
        json!({"ph": "X", "name": name, "ts": 0, "dur": 1_000_000, "pid": 1, "tid": tid})
    };
    let named =
        |tid| json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name(tid)}});
    let threads = [10_001, 10_002];
    let events: Vec<_> = threads
        .into_iter()
        .flat_map(|tid| (0..DEPTH).map(move |number| call(tid, number)).chain([named(tid)]))
        .collect();
    let trace = test.fresh("deep.json");
    std::fs::write(&trace, json!({ "traceEvents": events }).to_string())?;
    let expected = json!({"leaf": "leaf", "root": "call0", "ends": ["10001", "10002"]});
    browse(test, &[&trace], "deep", &expected)
}

/// A second of calls of less than 0.4 ms, each with 59 more inside: no call is as wide as a pixel.
fn short_calls(test: &Context<'_>) -> Verdict {
    const DEPTH: usize = 60;
    let slice = |at: usize, depth: usize| {
        let name = format!("level {depth} {}", at / 500 % 2);
        json!({"ph": "X", "name": name, "ts": at, "dur": 400 - depth, "pid": 1, "tid": 1})
    };
    let events: Vec<_> =
        (0..1_000_000).step_by(500).flat_map(|at| (0..DEPTH).map(move |depth| slice(at, depth))).collect();
    let trace = test.fresh("short.json");
    std::fs::write(&trace, json!({ "traceEvents": events }).to_string())?;
    browse(test, &[&trace], "short_calls", &json!({"depth": DEPTH}))
}

/// The tracks of CPUs are above those of threads.
fn cores(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).options(&["--per-cpu-threads"]).run_well()?;
    browse(test, &[&recorded.path], "cores", &json!({ "leaf": "alpha" }))
}

fn on_shares(test: &Context<'_>, scenario: &str) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let expected = json!({
        "leaf": "alpha",
        "program": "shares",
        "caller": "middle",
        "text": "NOINLINE void alpha(long ms)",
        "instruction": "ret",
    });
    browse(test, &[&recorded.path], scenario, &expected)
}

/// The shares in the list are equal to those in the report.
fn numbers(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let report = test.nyquist(&["report", "--json"]).path(&recorded.path).run()?.succeeded()?;
    let report: Value = serde_json::from_str(&report.stdout_text())?;
    let rows = report["functions"].as_array().cloned().unwrap_or_default();
    let mut functions = Vec::new();
    for name in ["alpha", "beta", "gamma_"] {
        let row = rows.iter().find(|row| row["function"] == name);
        let row = row.ok_or_else(|| anyhow::anyhow!("the report has no {name}"))?;
        let share = |key: &str| {
            let share = row[key].as_f64().unwrap_or_default();
            format!("{:.1}", 100.0 * share).parse::<f64>().unwrap_or_default()
        };
        functions.push(json!({"name": name, "own": share("self_share"), "total": share("total_share")}));
    }
    let expected = json!({"functions": functions, "caller": "middle"});
    browse(test, &[&recorded.path], "numbers", &expected)
}

/// In the second run, `slow` takes four times as long.
fn compare(test: &Context<'_>) -> Verdict {
    let (before, after) = (test.path("before.folded"), test.path("after.folded"));
    std::fs::write(&before, "main;slow 1000\nmain;same 1000\nmain;fast 500\n")?;
    std::fs::write(&after, "main;slow 4000\nmain;same 1000\nmain;fast 100\n")?;
    browse(test, &[&before, &after], "compare", &json!({"slower": "slow"}))
}

/// The counts of an additional event are those of the report.
fn events(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).options(&["-e", "page-faults"]).run_well()?;
    let call = test.nyquist(&["report", "--json", "--event", "page-faults"]).path(&recorded.path);
    let report: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
    let expected = json!({"event": "page-faults", "count": report["weight"]});
    browse(test, &[&recorded.path], "events", &expected)
}

fn waits(test: &Context<'_>) -> Verdict {
    let file = test.fresh("written").display().to_string();
    let recorded = test.record(&["reasons", "2", &file]).options(&["--off-cpu"]).run_well()?;
    let expected = json!({"kind": "Wait: lock", "thread": "wants", "function": "wants_lock"});
    browse(test, &[&recorded.path], "waits", &expected)
}

/// The program uses less CPU time than a sampling interval.
fn nothing(test: &Context<'_>) -> Verdict {
    let output = test.path("none.json.gz");
    let call = test.nyquist(&["record", "-s", "-r", "1", "-o"]).path(&output).args(&["--", "true"]);
    call.run()?.succeeded()?;
    let (browser, opened) = browser::stand_in(test, "auto")?;
    let call = test.nyquist(&["load", "--ui", "auto"]).path(&output);
    let running = call.env("BROWSER", browser.display().to_string()).start()?;
    let link = link_of(&running)?;
    running.wait_until("the browser to be opened", || opened.exists())?;
    let (port, _, base) = parts_of(&link)?;
    let argument = std::fs::read_to_string(&opened)?.trim().to_owned();
    let path = argument.strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap_or_default();
    let target = format!("http://127.0.0.1:{port}{base}/");
    let answer = Client::new(port).get(path)?;
    expect_eq("the opened page", answer.header("location"), Some(target.as_str()))?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status at the end", running.wait()?.code(), 0)?;
    browse(test, &[&output], "nothing", &json!({"reason": "one sample each 1.00 s"}))
}

fn accessible(test: &Context<'_>) -> Verdict {
    let file = test.fresh("written").display().to_string();
    let recorded = test.record(&["reasons", "2", &file]).options(&["--off-cpu"]).run_well()?;
    browse(test, &[&recorded.path], "accessible", &json!({"function": "wants_lock"}))
}

/// The linker has folded two functions into one.
fn folded(test: &Context<'_>) -> Verdict {
    let profile = query::record_two_names(test)?;
    browse(test, &[&profile], "folded", &json!({"names": ["get_price", "get_weight"]}))
}

/// In the served page, and in an exported one.
fn compiled(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "600"]).run_well()?;
    let expected =
        |is_served| json!({"inlined": "deepest_inline", "holder": "outer_frame", "isServed": is_served});
    browse(test, &[&recorded.path], "compiled", &expected(true))?;
    let page = test.path("page.html");
    let call = test.nyquist(&["export", "--format", "viewer", "-o"]).path(&page);
    call.path(&recorded.path).run()?.succeeded()?;
    look_at(test, &format!("file://{}", page.display()), "compiled", &expected(false))
}

/// Each of three threads runs for the first half of the time.
fn tracks(test: &Context<'_>) -> Verdict {
    let slice =
        |thread: usize| json!({"ph": "X", "name": "work", "ts": 0, "dur": 500_000, "pid": 1, "tid": thread});
    let mut events: Vec<_> = (0..3).map(slice).collect();
    events.push(json!({"ph": "i", "name": "end", "ts": 1_000_000, "pid": 1, "tid": 0, "s": "t"}));
    let trace = test.fresh("three.json");
    std::fs::write(&trace, json!({ "traceEvents": events }).to_string())?;
    browse(test, &[&trace], "tracks", &json!({"threads": 3, "leaf": "work"}))
}

/// A function that is called by two others.
fn calls(test: &Context<'_>) -> Verdict {
    let profile = test.path("calls.folded");
    std::fs::write(&profile, "a;leaf 40\nb;leaf 20\nc 40\n")?;
    browse(test, &[&profile], "calls", &json!({}))
}

/// Names that contain markup, control characters, or a hundred thousand letters.
fn hostile_names(test: &Context<'_>) -> Verdict {
    let profile = test.path("hostile.folded");
    let long = "x".repeat(100_000);
    let text = format!(
        "main;<img src=x onerror=alert(1)> 5\nmain;<script>alert(2)</script> 4\nmain;turned\u{202e}round 3\nmain;{long} 2\n"
    );
    std::fs::write(&profile, text)?;
    let expected = json!({
        "shown": ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "U+202E"],
        "hidden": ["\u{202e}"],
    });
    browse(test, &[&profile], "hostile", &expected)
}
