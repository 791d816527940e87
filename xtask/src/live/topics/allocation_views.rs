//! Allocations in the views of CPU time: each shows what the program is known to allocate.

use std::collections::BTreeMap;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::allocations::KNOWN;
use super::browser::Page;
use super::context::Context;
use super::expect::{Verdict, expect, expect_eq, skip};
use super::invocation::Finished;
use super::recorded::Recorded;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("each_view_has_the_known_allocations", views),
    Test::new("a_line_has_what_it_allocates", lines),
    Test::new("a_diff_of_allocations_is_exact", diff),
    Test::new("who_calls_operator_new_allocates", of_cpp),
    Test::new("who_calls_rusts_allocator_allocates", of_rust),
    Test::new("files_of_other_tools_have_the_same_sites", imported),
    Test::new("the_track_of_live_bytes_has_its_peak", track_of_peak),
];

/// The events, in the order of the sums of [`KNOWN`].
const EVENTS: [&str; 4] = ["total", "live", "peak", "temporary"];

fn recorded(test: &Context<'_>, factor: &str) -> Result<Recorded> {
    let options = ["--alloc", "--alloc-rate", "1"];
    test.record(&["allocates", "sums", factor]).options(&options).run_well()
}

/// The rows of an answer, by function. Rows of one function are added: none of them calls itself.
fn sums<'a>(rows: impl IntoIterator<Item = &'a Value>, member: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        if let (Some(function), Some(sum)) = (row["function"].as_str(), row[member].as_f64()) {
            *sums.entry(function.to_owned()).or_insert(0.0) += sum;
        }
    }
    sums
}

fn views(test: &Context<'_>) -> Verdict {
    let recorded = recorded(test, "1")?;
    let views: [(&[&str], &[&str], &str, &str); 4] = [
        (&["report", "--tree", "--limit", "0", "--percent", "0"], &[], "nodes", "total"),
        (&["flamegraph", "--json", "-o", "-"], &[], "boxes", "width"),
        (&["query"], &["functions", "--limit", "10000"], "functions", "total"),
        (&["report", "--inverted", "--limit", "0", "--percent", "0"], &[], "nodes", "self"),
    ];
    for (place, event) in EVENTS.into_iter().enumerate() {
        for (command, question, list, member) in views {
            let call = test.nyquist(command).path(&recorded.path).args(question).args(&["--event", event]);
            let call = if command.contains(&"--json") { call } else { call.args(&["--json"]) };
            let json: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())
                .with_context(|| format!("{command:?} {question:?}"))?;
            let found = sums(json[list].as_array().into_iter().flatten(), member);
            expect_known(&format!("{event} by {command:?} {question:?}"), &found, place)?;
        }
        let call = test.nyquist(&["script", "--json", "--event", event]).path(&recorded.path);
        let text = call.run()?.succeeded()?.stdout_text();
        expect_known(&format!("{event} by script"), &of_script(&text)?, place)?;
    }
    Ok(())
}

/// The sums of functions in the samples that `script` prints, a line each.
fn of_script(text: &str) -> Result<BTreeMap<String, f64>> {
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let weight = sample["weight"].as_f64().context("a sample without weight")?;
        for frame in sample["stack"].as_array().into_iter().flatten() {
            let function = frame["function"].as_str().unwrap_or_default().to_owned();
            *sums.entry(function).or_insert(0.0) += weight;
        }
    }
    Ok(sums)
}

fn expect_known(what: &str, found: &BTreeMap<String, f64>, place: usize) -> Verdict {
    for (function, known) in KNOWN {
        let sum = found.get(function).copied().unwrap_or(0.0);
        expect_eq(&format!("{what}: {function}"), sum, known[place])?;
    }
    Ok(())
}

/// The line that allocates has the bytes, and the caller's line has them as a call.
fn lines(test: &Context<'_>) -> Verdict {
    let recorded = recorded(test, "1")?;
    let line = |code: &str| anyhow::Ok(line_with(code)? as f64);
    let (allocating, calling) =
        (line("kept[kept_count++] = touched(malloc(1000));")?, line("KEPT) keeps();")?);
    let call = test.nyquist(&["report", "--lines", "--json", "--limit", "0", "--event", "live"]);
    let json: Value = serde_json::from_str(&call.path(&recorded.path).run()?.succeeded()?.stdout_text())
        .map_err(anyhow::Error::from)?;
    expect_line("report --lines", &json["lines"], allocating, [2e6, 2e6])?;
    expect_line("report --lines", &json["lines"], calling, [0.0, 2e6])?;
    let call = test.nyquist(&["annotate", "keeps", "--json", "--event", "live"]);
    let json: Value = serde_json::from_str(&call.path(&recorded.path).run()?.succeeded()?.stdout_text())
        .map_err(anyhow::Error::from)?;
    expect_eq("annotate", [&json["self"], &json["total"]].map(Value::as_f64), [Some(2e6); 2])?;
    expect_line("annotate", &json["files"][0]["lines"], allocating, [2e6, 2e6])
}

/// The number of the workload's line with this code, counted from 1.
fn line_with(code: &str) -> Result<usize> {
    let text = std::fs::read_to_string(crate::paths::root().join("workloads/allocates.c"))?;
    let found = text.lines().position(|line| line.contains(code));
    Ok(1 + found.with_context(|| format!("no line with {code}"))?)
}

/// Checks the weight of a line in itself, and with its calls.
fn expect_line(what: &str, rows: &Value, number: f64, known: [f64; 2]) -> Verdict {
    let rows = rows.as_array().into_iter().flatten();
    let is_it = |row: &&Value| {
        row["line"].as_f64() == Some(number)
            && row["file"].as_str().is_some_and(|file| file.ends_with("allocates.c"))
    };
    let row = rows.into_iter().find(is_it).with_context(|| format!("{what} has no line {number}"))?;
    let sums = [&row["self"], &row["total"]].map(|sum| sum.as_f64().unwrap_or(-1.0));
    expect_eq(&format!("{what}, line {number}"), sums, known)
}

/// Twice the work is twice the bytes, and what happens once is no difference.
fn diff(test: &Context<'_>) -> Verdict {
    let (one, two) = (recorded(test, "1")?, recorded(test, "2")?);
    let call = test.nyquist(&["diff", "--json", "--all", "--limit", "0", "--event", "total"]);
    let json: Value =
        serde_json::from_str(&call.path(&one.path).path(&two.path).run()?.succeeded()?.stdout_text())
            .map_err(anyhow::Error::from)?;
    expect_eq("the unit", json["unit"].as_str(), Some("bytes"))?;
    for (function, [bytes, ..]) in KNOWN {
        let rows = json["functions"].as_array().into_iter().flatten();
        let row = rows.into_iter().find(|row| row["function"] == function);
        let sums = row.context("a function is missing")?;
        let after = if function == "peaks" { bytes } else { 2.0 * bytes };
        let found = ["before", "after"].map(|side| sums["total"][side].as_f64().unwrap_or(-1.0));
        expect_eq(function, found, [bytes, after])?;
    }
    expect(json["whole"]["is_noise"] == false, format_args!("the whole is said to be noise: {json}"))
}

/// What is made is seen before it is returned: otherwise the call is a jump, and its caller is not on the stack.
const CPP: &str = "#include <vector>
struct Node { char data[1000]; };
template <class T> T *seen(T *made) { asm volatile(\"\" : \"+r\"(made)); return made; }
__attribute__((noinline)) Node *makes() { return seen(new Node); }
__attribute__((noinline)) char *makes_array() { return seen(new char[500]); }
__attribute__((noinline)) void fills() { std::vector<char> bytes(3000); asm volatile(\"\" : : \"r\"(bytes.data()) : \"memory\"); }
int main() { for (int i = 0; i < 100; i++) { delete makes(); delete[] makes_array(); fills(); } }
";

const RUST: &str =
    "#[inline(never)] fn makes() -> Box<[u8; 1000]> { Box::new(std::hint::black_box([7; 1000])) }
fn main() { for _ in 0..100 { drop(std::hint::black_box(makes())); } }
";

/// Compiles a program. `None` if there is no such compiler.
fn compiled(test: &Context<'_>, compiler: &[&str], (name, source): (&str, &str)) -> Result<Option<String>> {
    let (file, program) = (test.fresh(name), test.path("compiled"));
    std::fs::write(&file, source)?;
    let built = Command::new(compiler[0]).args(&compiler[1..]).arg("-o").arg(&program).arg(&file).output();
    let Ok(built) = built else { return Ok(None) };
    anyhow::ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(Some(program.display().to_string()))
}

/// The bytes of each function itself, and the function with the most.
fn self_bytes(test: &Context<'_>, program: &str) -> Result<(BTreeMap<String, f64>, String)> {
    let recorded = test.record_command(&[program]).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    let json = functions(test, &recorded, "total")?;
    let first = json["functions"][0]["function"].as_str().unwrap_or_default().to_owned();
    Ok((sums(json["functions"].as_array().into_iter().flatten(), "self"), first))
}

/// The bytes of each function itself, of an event.
pub(super) fn self_sums(
    test: &Context<'_>,
    recorded: &Recorded,
    event: &str,
) -> Result<BTreeMap<String, f64>> {
    let json = functions(test, recorded, event)?;
    Ok(sums(json["functions"].as_array().into_iter().flatten(), "self"))
}

fn functions(test: &Context<'_>, recorded: &Recorded, event: &str) -> Result<Value> {
    let call = test.nyquist(&["report", "--json", "--limit", "0", "--event", event]);
    Ok(serde_json::from_str(&call.path(&recorded.path).run()?.succeeded()?.stdout_text())?)
}

fn of_cpp(test: &Context<'_>) -> Verdict {
    // Where the library's functions are not inlined, they are seen, too.
    for level in ["-O0", "-O2"] {
        let compiler = ["g++", "-g", level];
        let Some(program) = compiled(test, &compiler, ("allocates.cpp", CPP))? else {
            return skip("there is no g++");
        };
        let (found, _) = self_bytes(test, &program)?;
        for (function, bytes) in [("makes()", 1e5), ("makes_array()", 5e4)] {
            expect_eq(&format!("{function} at {level}"), found.get(function).copied(), Some(bytes))?;
        }
        let passing = found.iter().find(|(name, bytes)| {
            **bytes > 0.0 && (name.starts_with("operator new") || name.contains(">::allocate"))
        });
        expect(passing.is_none(), format_args!("at {level}, {passing:?} has bytes of its own"))?;
    }
    Ok(())
}

/// heaptrack's file has `operator new` as the innermost function, and DHAT's has what it has in its place.
fn imported(test: &Context<'_>) -> Verdict {
    let Some(program) = compiled(test, &["g++", "-g", "-O2"], ("allocates.cpp", CPP))? else {
        return skip("there is no g++");
    };
    let [of_heaptrack, of_dhat] = ["heaptrack", "dhat.out"].map(|name| test.path(name).display().to_string());
    let heaptrack = test.program("heaptrack").args(&["-o", &of_heaptrack, &program]).run();
    if heaptrack.and_then(Finished::succeeded).is_err() {
        return skip("there is no heaptrack");
    }
    let compressed = ["zst", "gz"].map(|ending| format!("{of_heaptrack}.{ending}"));
    let of_heaptrack =
        compressed.iter().find(|file| Path::new(file).exists()).context("heaptrack wrote nothing")?;
    let option = format!("--dhat-out-file={of_dhat}");
    let valgrind = test.program("valgrind").args(&["--tool=dhat", &option, &program]).run();
    if valgrind.and_then(Finished::succeeded).is_err() {
        return skip("there is no valgrind");
    }
    for file in [of_heaptrack, &of_dhat] {
        let report = ["report", file, "--limit", "0", "--event", "total", "--json"];
        let query = ["query", file, "functions", "--limit", "10000", "--event", "total", "--json"];
        for (command, call) in [("report", &report[..]), ("query", &query)] {
            let call = test.nyquist(call);
            let json: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
            // Weights are counted in the largest unit that all of them have in common.
            let found = sums(json["functions"].as_array().into_iter().flatten(), "self_amount");
            // A query shows names without their parameters.
            let parameters = if command == "query" { "" } else { "()" };
            for (function, bytes) in [("makes", 1e5), ("makes_array", 5e4)] {
                let sum = found.get(&format!("{function}{parameters}")).copied();
                expect_eq(&format!("{command}: {function} in {file}"), sum, Some(bytes))?;
            }
            let passing = found.iter().find(|(name, bytes)| {
                let is_passing =
                    name.starts_with("operator new") || name.contains(">::allocate") || *name == "malloc";
                **bytes > 0.0 && is_passing
            });
            expect(passing.is_none(), format_args!("{command}: {passing:?} has bytes of its own in {file}"))?;
        }
    }
    Ok(())
}

fn of_rust(test: &Context<'_>) -> Verdict {
    for options in [["-O", "-g"], ["-Copt-level=0", "-g"]] {
        let compiler = [&["rustc", "--edition=2021"], &options[..]].concat();
        let Some(program) = compiled(test, &compiler, ("allocates.rs", RUST))? else {
            return skip("there is no rustc");
        };
        let (found, first) = self_bytes(test, &program)?;
        let passing = found.iter().find(|(name, bytes)| **bytes > 0.0 && name.contains("alloc::alloc::"));
        expect(passing.is_none(), format_args!("{options:?}: {passing:?} has bytes of its own"))?;
        expect(
            first.contains("boxed") || first.ends_with("makes"),
            format_args!("{options:?}: {first} has most bytes"),
        )?;
    }
    Ok(())
}

/// What the viewer's page says of the track of live bytes: its text for screen readers, and where its mark is, in per
/// cent of the width.
const TRACK: &str = "(() => {
  const toggle = document.querySelector('.counter-toggle');
  if (toggle && toggle.getAttribute('aria-expanded') === 'false') toggle.click();
  const row = [...document.querySelectorAll('.counter')].find((one) => one.getAttribute('aria-label').startsWith('Allocated'));
  const mark = row?.querySelector('.counter-peak');
  if (!mark || mark.hidden || mark.getBoundingClientRect().height === 0) return null;
  return { label: row.getAttribute('aria-label'), left: parseFloat(mark.style.left), rows: document.querySelectorAll('.counter').length };
})()";

/// The program has 10 MB when it has most, and 2 MB before and after.
fn track_of_peak(test: &Context<'_>) -> Verdict {
    let recorded = recorded(test, "1")?;
    let peak =
        test.nyquist(&["report", "--json", "--event", "peak"]).path(&recorded.path).run()?.succeeded()?;
    let peak: Value = serde_json::from_str(&peak.stdout_text())?;
    let peak = peak["weight"].as_f64().context("no sum of the peak")? / 1_048_576.0;
    let file = test.path("page.html");
    let export = test.nyquist(&["export", "--format", "viewer", "-o"]);
    export.path(&file).path(&recorded.path).run()?.succeeded()?;
    for (width, height) in [(1200, 800), (600, 800)] {
        let mut page = Page::open(test, &file, width, height)?;
        page.wait_until(&format!("{TRACK} !== null"))?;
        let track = page.evaluate(TRACK)?;
        let label = track["label"].as_str().unwrap_or_default();
        let printed =
            label.split("peak ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        let printed = printed.with_context(|| format!("the track says no peak: {label}"))?;
        expect(
            (printed - peak).abs() <= 0.02 * peak + 0.05,
            format_args!("{label}: the peak has {peak} MB"),
        )?;
        let left = track["left"].as_f64().unwrap_or(-1.0);
        expect((0.0..=100.0).contains(&left), format_args!("the mark is at {left} %"))?;
    }
    Ok(())
}
