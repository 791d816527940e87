//! The code of the front end itself agrees: it shows the profile's data, and gets names, sources and assembly
//! from our server.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::http::Client;
use super::permissions::at_paranoid;
use super::profile::{Profile, Thread};
use super::profiler_cli::Session;
use super::recorded::Recorded;
use super::server::{link_of, urls_of};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("functions_are_as_in_report", functions),
    Test::new("processes_and_threads_are_listed", processes),
    Test::new("inlined_functions_are_marked", inlined),
    Test::new("kernel_time_not_permitted_is_shown", not_permitted),
    Test::new("names_come_from_the_symbol_server", names_from_server),
    Test::new("source_and_assembly_are_shown", source_and_assembly),
    Test::new("counters_are_no_tracks_in_it", without_counters),
];

const VERSIONS: [&str; 2] = ["66", "49"];

fn record_version(test: &Context<'_>, args: &[&str], version: &str) -> Result<Recorded> {
    test.record(args).options(&["--profile-version", version]).run_well()
}

/// Self and total weight of each function, with its name and library as the key.
type Functions = BTreeMap<(String, String), (f64, f64)>;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A list of functions, given the names of its members.
fn functions_of(list: &Value, [name, lib, own, total]: [&str; 4]) -> Result<Functions> {
    let rows = list.as_array().context("no list of functions")?;
    let row = |row: &Value| {
        let number = |key: &str| row[key].as_f64().with_context(|| format!("no {key} in {row}"));
        Ok(((text(&row[name]), text(&row[lib])), (number(own)?, number(total)?)))
    };
    rows.iter().map(row).collect()
}

fn shown_functions(session: &Session<'_>, thread: &str) -> Result<Functions> {
    let answer = session.ask(&["thread", "functions", "--limit", "0", "--thread", thread])?;
    functions_of(&answer["functions"], ["name", "library", "selfSamples", "totalSamples"])
}

fn report_functions(test: &Context<'_>, path: &Path) -> Result<Functions> {
    let call = test.nyquist(&["report", "--json", "--limit", "0"]).path(path);
    let report: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
    functions_of(&report["functions"], ["function", "lib", "self", "total"])
}

/// What the tests' own reader finds for a thread.
fn true_functions(thread: &Thread) -> Functions {
    let mut functions = Functions::new();
    for (stack, weight) in thread.stacks() {
        let key =
            |index: usize| (stack[index].function.clone(), stack[index].lib.clone().unwrap_or_default());
        let mut keys: Vec<_> = (0..stack.len()).map(key).collect();
        if let Some(innermost) = keys.last() {
            functions.entry(innermost.clone()).or_default().0 += weight;
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            functions.entry(key).or_default().1 += weight;
        }
    }
    functions
}

fn expect_same_functions(what: &str, found: &Functions, expected: &Functions) -> Verdict {
    let differing = found.keys().chain(expected.keys()).find(|key| found.get(*key) != expected.get(*key));
    let Some(key) = differing else { return Ok(()) };
    let (found, expected) = (found.get(key), expected.get(key));
    expect(false, format_args!("{what}: {key:?} has (self, total) {found:?}, wanted {expected:?}"))
}

/// The handle of the busiest thread, which is the selected one when a profile is loaded.
fn busiest(session: &Session<'_>) -> Result<String> {
    let list = session.ask(&["thread", "list", "--sort", "cpu"])?;
    Ok(text(&list["threads"][0]["threadHandle"]))
}

fn functions(test: &Context<'_>) -> Verdict {
    for version in VERSIONS {
        let recorded = record_version(test, &["shares", "600"], version)?;
        let session = Session::of_file(test, &recorded.path)?;
        let [thread] = recorded.profile.threads.as_slice() else {
            return expect(false, "shares has one thread");
        };
        let handle = busiest(&session)?;
        let shown = shown_functions(&session, &handle)?;
        expect_same_functions("the front end and the profile", &shown, &true_functions(thread))?;
        expect_same_functions("the front end and report", &shown, &report_functions(test, &recorded.path)?)?;
        expect_categories(&session, &handle, thread)?;
        expect_head(&session, &recorded.profile)?;
    }
    Ok(())
}

/// Compares the weight of each category, by innermost frames.
fn expect_categories(session: &Session<'_>, handle: &str, thread: &Thread) -> Verdict {
    let answer = session.ask(&["thread", "samples", "--thread", handle])?;
    let rows = answer["categoryBreakdown"]["categories"].as_array().context("no categories")?;
    let shown: BTreeMap<String, f64> =
        rows.iter().map(|row| (text(&row["name"]), row["samples"].as_f64().unwrap_or(0.0))).collect();
    let mut expected = BTreeMap::<String, f64>::new();
    for (stack, weight) in thread.stacks() {
        let category = stack.last().map(|frame| frame.category.clone()).unwrap_or_default();
        *expected.entry(category).or_default() += weight;
    }
    expect_eq("the categories' samples", shown, expected)
}

/// Checks the profile's name and platform, and that the profile is marked as symbolicated.
fn expect_head(session: &Session<'_>, profile: &Profile) -> Verdict {
    let (info, head) = (session.ask(&["profile", "info"])?, session.ask(&["profile", "meta"])?);
    expect_contains("the profile's name", &text(&info["name"]), "shares")?;
    let system = std::fs::read_to_string("/etc/os-release")?;
    let value = |key: &str| {
        let value = system.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        value.trim_matches('"').to_owned()
    };
    // The page shows a short name of the system: `Debian 12`.
    let name = value("NAME=").split(' ').next().unwrap_or_default().to_owned();
    let system = format!("{name} {}", value("VERSION_ID="));
    expect_contains("the platform", &text(&info["platform"]), system.trim_end())?;
    expect_contains("the program that recorded", &text(&head["importedFrom"]), "nyquist")?;
    expect_contains("the command", &text(&head["arguments"]), "shares")?;
    expect_eq("symbolicated", head["symbolicated"].as_bool(), Some(true))?;
    expect_eq("the interval", head["interval"].as_f64(), profile.json["meta"]["interval"].as_f64())
}

fn processes(test: &Context<'_>) -> Verdict {
    for version in VERSIONS {
        for workload in ["fork_tree", "rust_threads"] {
            let recorded = record_version(test, &[workload, "500"], version)?;
            let session = Session::of_file(test, &recorded.path)?;
            expect_threads(&session, &recorded.profile)?;
        }
    }
    Ok(())
}

fn expect_threads(session: &Session<'_>, profile: &Profile) -> Verdict {
    let list = session.ask(&["thread", "list", "--limit", "0", "--sort", "index"])?;
    let rows = list["threads"].as_array().context("no threads")?;
    expect_eq("the number of threads", rows.len(), profile.threads.len())?;
    let written = profile.json["threads"].as_array().context("no threads")?;
    for ((row, thread), written) in rows.iter().zip(&profile.threads).zip(written) {
        let shown = (text(&row["processName"]), text(&row["name"]), text(&row["pid"]));
        let expected = (thread.process.clone(), text(&written["name"]), thread.pid.clone());
        expect_eq("a thread", shown, expected)?;
        // The first delta does not count, because no row comes before it.
        let cpu = thread.rows.iter().skip(1).filter_map(|sample| sample.cpu_delta).sum::<f64>() / 1e6;
        let shown = row["cpuMs"].as_f64().unwrap_or(0.0);
        expect((shown - cpu).abs() < 0.01, format_args!("{}: {shown} ms of CPU, wanted {cpu}", thread.name))?;
        let handle = text(&row["threadHandle"]);
        let info = session.ask(&["thread", "info", "--thread", &handle])?;
        expect_eq("its rows", info["sampleCount"].as_u64(), Some(thread.rows.len() as u64))?;
    }
    Ok(())
}

/// The nodes of a call tree, and whether the front end shows them as inlined.
fn inline_statuses(tree: &Value) -> BTreeMap<String, String> {
    let mut statuses = BTreeMap::new();
    let mut open = vec![tree];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                if let Some(name) = fields.get("nameWithLibrary") {
                    let status = fields.get("inlineStatus").map(text).unwrap_or_default();
                    statuses.insert(text(name), status);
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    statuses
}

fn inlined(test: &Context<'_>) -> Verdict {
    for version in VERSIONS {
        let recorded = record_version(test, &["inlines-v0", "600"], version)?;
        let session = Session::of_file(test, &recorded.path)?;
        expect_inlined(&session)?;
    }
    Ok(())
}

fn expect_inlined(session: &Session<'_>) -> Verdict {
    let statuses = inline_statuses(&session.ask(&["thread", "samples-top-down"])?);
    for (function, status) in
        [("outer_frame", ""), ("middle_inline", "inlined"), ("deepest_inline", "inlined")]
    {
        let name = format!("inlines-v0!inlines::{function}");
        expect_eq(&name, statuses.get(&name).map(String::as_str), Some(status))?;
    }
    Ok(())
}

fn not_permitted(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let recorded = test.record(&["kernel_heavy", "600", "zero"]).by_plain_user().run_well()?;
    let session = Session::of_file(test, &recorded.path)?;
    let thread = recorded.profile.threads.first().context("no thread")?;
    let handle = busiest(&session)?;
    let shown = shown_functions(&session, &handle)?;
    expect_same_functions("the front end and the profile", &shown, &true_functions(thread))?;
    let hidden = shown.get(&("[kernel: not permitted]".to_owned(), String::new()));
    let share = hidden.map_or(0.0, |(own, _)| own / thread.total());
    expect(share > 0.3, format_args!("{share:.3} of the samples are shown as not permitted"))?;
    expect_categories(&session, &handle, thread)
}

/// The profile as a recorder without symbols would write it: addresses instead of names, no lines, no inlined
/// frames.
fn without_names(json: &Value) -> Result<Value> {
    let mut json = json.clone();
    json["meta"]["symbolicated"] = json!(false);
    let shared = &mut json["shared"];
    let depths = shared["frameTable"]["inlineDepth"].as_array().context("no inline depths")?.clone();
    let outer = leave_inlined_stacks(&mut shared["stackTable"], &depths)?;
    forget_names(shared)?;
    for thread in json["threads"].as_array_mut().context("no threads")? {
        for stack in thread["samples"]["stack"].as_array_mut().context("no stacks")? {
            if let Some(index) = stack.as_u64() {
                *stack = json!(outer[index as usize]);
            }
        }
    }
    Ok(json)
}

/// Links every stack to the innermost stack above it that is not inlined. Returns the index of that stack for
/// each stack.
fn leave_inlined_stacks(table: &mut Value, depths: &[Value]) -> Result<Vec<usize>> {
    let frames = table["frame"].as_array().context("no frames")?.clone();
    let mut outer: Vec<usize> = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let offset = table["prefixOffset"][index].as_u64().context("no prefixOffset")? as usize;
        let above = (offset > 0).then(|| outer[index - offset]);
        table["prefixOffset"][index] = json!(above.map_or(0, |above| index - above));
        let is_inlined = depths[frame.as_u64().context("no frame")? as usize].as_u64() > Some(0);
        outer.push(above.filter(|_| is_inlined).unwrap_or(index));
    }
    Ok(outer)
}

/// Gives each frame of a library a separate function, whose name is its address.
fn forget_names(shared: &mut Value) -> Result<()> {
    let old = shared["funcTable"].clone();
    let count = shared["frameTable"]["func"].as_array().context("no funcs")?.len();
    let columns: Vec<String> = old.as_object().context("no funcTable")?.keys().cloned().collect();
    let strings = shared["stringArray"].as_array().context("no strings")?.len();
    for index in 0..count {
        let func = shared["frameTable"]["func"][index].as_u64().context("no func")? as usize;
        for column in columns.iter().filter(|column| *column != "length") {
            if index == 0 {
                shared["funcTable"][column] = json!([]);
            }
            push(&mut shared["funcTable"][column], old[column][func].clone())?;
        }
        let address = shared["frameTable"]["address"][index].as_i64().unwrap_or(-1);
        let is_of_lib = old["resource"][func].as_i64().unwrap_or(-1) >= 0 && address >= 0;
        let name = if is_of_lib {
            format!("{address:#x}")
        } else {
            text(&shared["stringArray"][old["name"][func].as_u64().unwrap_or(0) as usize])
        };
        push(&mut shared["stringArray"], json!(name))?;
        shared["funcTable"]["name"][index] = json!(strings + index);
        shared["funcTable"]["source"][index] = Value::Null;
        shared["funcTable"]["lineNumber"][index] = Value::Null;
        shared["frameTable"]["func"][index] = json!(index);
        shared["frameTable"]["line"][index] = Value::Null;
        shared["frameTable"]["nativeSymbol"][index] = Value::Null;
    }
    shared["funcTable"]["length"] = json!(count);
    Ok(())
}

fn push(column: &mut Value, value: Value) -> Result<()> {
    column.as_array_mut().context("not a column")?.push(value);
    Ok(())
}

fn write(path: &Path, json: &Value) -> Result<()> {
    let mut file = GzEncoder::new(File::create(path)?, Compression::fast());
    file.write_all(json.to_string().as_bytes())?;
    file.finish()?;
    Ok(())
}

/// Loads a profile from `nyquist load` and queries its symbol server while `ask` runs.
fn served(test: &Context<'_>, path: &Path, ask: impl FnOnce(&Session<'_>) -> Verdict) -> Verdict {
    let running = test.nyquist(&["load", "--no-open"]).path(path).start()?;
    let (profile, server) = urls_of(&link_of(&running)?)?;
    ask(&Session::of_server(test, &profile, &server)?)?;
    running.signal(libc::SIGINT)?;
    expect_eq("the server's status after Ctrl-C", running.wait()?.code(), 0)
}

/// The saved file has counters. What the front end loads has the same threads without them.
fn without_counters(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).run_well()?;
    let counters = |profile: &Profile| profile.json["counters"].as_array().map_or(0, Vec::len);
    expect(counters(&recorded.profile) > 0, "the saved file has no counters")?;
    let running = test.nyquist(&["load", "--no-open"]).path(&recorded.path).start()?;
    let (address, _) = urls_of(&link_of(&running)?)?;
    let (authority, path) =
        address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).context("no address")?;
    let port = authority.rsplit(':').next().context("no port")?.parse().context("no port")?;
    let loaded = test.path("loaded.json.gz");
    std::fs::write(&loaded, Client::new(port).get(&format!("/{path}"))?.body)?;
    let loaded = Profile::read(&loaded)?;
    expect_eq("the counters", counters(&loaded), 0)?;
    for member in ["threads", "shared", "libs", "meta"] {
        expect(loaded.json[member] == recorded.profile.json[member], format_args!("{member} differ"))?;
    }
    running.signal(libc::SIGINT)?;
    expect_eq("the server's status after Ctrl-C", running.wait()?.code(), 0)
}

/// The functions of libraries that have files on the disk. The kernel and the vdso have none.
fn of_files(functions: Functions) -> Functions {
    functions.into_iter().filter(|((_, lib), _)| !lib.starts_with('[') && !lib.is_empty()).collect()
}

/// The functions as the front end shows them after it has queried a symbol server. It then calls a function
/// unknown whose only name is an address.
fn as_requested(functions: Functions) -> Functions {
    let shown = |name: String| if name.starts_with("0x") { format!("<unknown at {name}>") } else { name };
    functions.into_iter().map(|((name, lib), time)| ((shown(name), lib), time)).collect()
}

fn handle_of(session: &Session<'_>, function: &str) -> Result<String, Stop> {
    let answer = session.ask(&["thread", "functions", "--limit", "0", "--search", function])?;
    let rows = answer["functions"].as_array().context("no functions")?;
    let row = rows.iter().find(|row| row["name"] == function);
    Ok(text(&row.with_context(|| format!("no function {function}"))?["functionHandle"]))
}

/// The source of a function as the front end shows it: the file, and each line with its samples.
fn annotated(session: &Session<'_>, function: &str) -> Result<Value, Stop> {
    let handle = handle_of(session, function)?;
    let mut answer = session.ask(&["function", "annotate", &handle, "--mode", "src", "--context", "file"])?;
    Ok(answer["srcAnnotation"].take())
}

fn names_from_server(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "600"]).run_well()?;
    let nameless = test.path("nameless.json.gz");
    write(&nameless, &without_names(&recorded.profile.json)?)?;
    let bare = Profile::read(&nameless)?;
    expect(bare.total_share("inlines::outer_frame") == 0.0, "the names are not forgotten")?;
    let original = Session::of_file(test, &recorded.path)?;
    served(test, &nameless, |session| {
        let thread = busiest(session)?;
        let found = of_files(shown_functions(session, &thread)?);
        let expected = of_files(as_requested(shown_functions(&original, &thread)?));
        expect_same_functions("names from the server", &found, &expected)?;
        expect_inlined(session)?;
        for function in ["inlines::outer_frame", "inlines::deepest_inline"] {
            let (found, expected) = (annotated(session, function)?, annotated(&original, function)?);
            expect_contains("the file", &text(&found["filename"]), "inlines.rs")?;
            for member in ["filename", "samplesWithFunction"] {
                expect_eq(&format!("{function}: {member}"), &found[member], &expected[member])?;
            }
            expect_eq(&format!("{function}: samples by line"), by_line(&found), by_line(&expected))?;
        }
        Ok(())
    })
}

/// The lines with samples, and how many samples each has.
fn by_line(annotation: &Value) -> BTreeMap<u64, u64> {
    let lines = annotation["lines"].as_array().into_iter().flatten();
    let numbers =
        lines.filter_map(|line| Some((line["lineNumber"].as_u64()?, line["totalSamples"].as_u64()?)));
    numbers.filter(|(_, samples)| *samples > 0).collect()
}

fn source_and_assembly(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).run_well()?;
    served(test, &recorded.path, |session| {
        let source = annotated(session, "alpha")?;
        let file = std::fs::read_to_string(crate::paths::root().join("workloads/shares.c"))?;
        let lines = source["lines"].as_array().context("no source")?;
        let shown: Vec<String> = lines.iter().map(|line| text(&line["sourceText"])).collect();
        expect_eq("the source", shown.join("\n").trim_end(), file.trim_end())?;
        let handle = handle_of(session, "alpha")?;
        let answer = session.ask(&["function", "annotate", &handle, "--mode", "asm"])?;
        expect_assembly(&answer["asmAnnotations"][0])
    })
}

fn expect_assembly(assembly: &Value) -> Verdict {
    expect_eq("the symbol", assembly["symbolName"].as_str(), Some("alpha"))?;
    expect(!assembly["fetchError"].is_string(), format_args!("no assembly: {}", assembly["fetchError"]))?;
    let instructions = assembly["instructions"].as_array().context("no instructions")?;
    expect(instructions.len() > 3, format_args!("{} instructions", instructions.len()))?;
    let sampled: u64 = instructions.iter().filter_map(|line| line["selfSamples"].as_u64()).sum();
    expect(sampled > 200, format_args!("only {sampled} samples lie on an instruction: {assembly}"))
}
