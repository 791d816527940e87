//! Allocations in the files of other programs, which read there what the program is known to allocate.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::allocations::KNOWN;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::profiler_cli::Session;
use super::recorded::Recorded;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("heaptrack_reads_recorded_allocations", heaptrack),
    Test::new("the_viewer_of_dhat_reads_allocations", dhat),
    Test::new("pprof_reads_recorded_allocations", pprof),
    Test::new("folded_stacks_have_allocations", folded),
    Test::new("the_front_end_has_allocations", native_allocations),
    Test::new("only_allocations_are_written_as_such", refused),
];

/// The viewer of DHAT's files.
const DHAT_VIEWER: &str = "/usr/libexec/valgrind/dh_view.js";

/// Builds the tree that DHAT's viewer shows, by its own code, and prints the stacks of the file with their values.
const DHAT_READER: &str = "
const fs = require('fs'), vm = require('vm'), [viewer, file] = process.argv.slice(1);
const context = vm.createContext({ console, document: {} });
vm.runInContext(fs.readFileSync(viewer, 'utf8'), context);
context.text = fs.readFileSync(file, 'utf8');
vm.runInContext('gData = JSON.parse(text); gSelect = { childNodes: gSelectData.map(() => ({})), selectedIndex: 0 }; buildTree();', context);
const sums = vm.runInContext('({ total: gRoot._totalBytes, peak: gRoot._atTGmaxBytes, end: gRoot._atTEndBytes })', context);
const points = context.gData ?? vm.runInContext('gData', context);
const stacks = points.pps.map(point => ({ point, frames: point.fs.map(frame => points.ftbl[frame]) }));
console.log(JSON.stringify({ sums, stacks }));";

/// Records the workload with each allocation.
fn recorded(test: &Context<'_>, options: &[&str]) -> Result<Recorded, Stop> {
    let options = [&["--alloc", "--alloc-rate", "1"], options].concat();
    Ok(test.record(&["allocates"]).options(&options).run_well()?)
}

fn export(test: &Context<'_>, recorded: &Recorded, event: &str, name: &str) -> Result<PathBuf, Stop> {
    let output = test.path(name);
    let call = test.nyquist(&["export", "--event", event, "-o"]).path(&output).path(&recorded.path);
    call.run()?.succeeded()?;
    Ok(output)
}

/// The sums of functions in folded stacks.
fn folded_sums(text: &str) -> BTreeMap<&str, f64> {
    let mut sums = BTreeMap::new();
    for (stack, weight) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
        let weight: f64 = weight.parse().unwrap_or(0.0);
        for (function, _) in KNOWN {
            // heaptrack puts the file behind the function.
            if stack.split(';').any(|frame| frame.split(' ').next() == Some(function)) {
                *sums.entry(function).or_default() += weight;
            }
        }
    }
    sums
}

/// Checks the sums of functions that are known at this place.
fn expect_known(what: &str, sums: &BTreeMap<&str, f64>, place: usize) -> Verdict {
    for (function, known) in KNOWN {
        let found = sums.get(function).copied().unwrap_or(0.0);
        expect_eq(&format!("{what} of {function}"), found, known[place])?;
    }
    Ok(())
}

fn heaptrack(test: &Context<'_>) -> Verdict {
    let recorded = recorded(test, &[])?;
    let file = export(test, &recorded, "total", "app.heaptrack")?;
    for (cost, place) in [("leaked", 1), ("peak", 2)] {
        let stacks = test.path(cost);
        let print = test.program("heaptrack_print").args(&["--flamegraph-cost-type", cost, "-F"]);
        let Ok(printed) = print.path(&stacks).path(&file).run() else {
            return skip("there is no heaptrack_print");
        };
        let printed = printed.succeeded()?.stdout_text();
        expect_contains("what is printed", &printed, "calls to allocation functions")?;
        expect_known(cost, &folded_sums(&fs::read_to_string(&stacks)?), place)?;
    }
    let calls = test.path("allocations");
    let print = test.program("heaptrack_print").args(&["--flamegraph-cost-type", "allocations", "-F"]);
    print.path(&calls).path(&file).run()?.succeeded()?;
    let text = fs::read_to_string(&calls)?;
    let sums = folded_sums(&text);
    let found = ["keeps", "temps", "peaks", "in_thread"].map(|function| sums.get(function).copied());
    expect_eq("allocations", found, [2000.0, 10_000.0, 1000.0, 500.0].map(Some))
}

fn dhat(test: &Context<'_>) -> Verdict {
    if !Path::new(DHAT_VIEWER).exists() {
        return skip("valgrind's viewer of DHAT is not there");
    }
    let recorded = recorded(test, &[])?;
    let file = export(test, &recorded, "total", "app.dhat.json")?;
    let call = test.program("node").args(&["-e", DHAT_READER, DHAT_VIEWER]).path(&file);
    let read: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
    let mut sums = [(); 3].map(|()| BTreeMap::<&str, f64>::new());
    for stack in read["stacks"].as_array().into_iter().flatten() {
        let frames: Vec<&str> =
            stack["frames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (function, _) in KNOWN {
            if frames.iter().any(|frame| frame.contains(&format!(": {function} ("))) {
                for (sums, key) in sums.iter_mut().zip(["tb", "eb", "gb"]) {
                    *sums.entry(function).or_default() += stack["point"][key].as_f64().unwrap_or(0.0);
                }
            }
        }
    }
    for (place, sums) in sums.iter().enumerate() {
        expect_known(["tb", "eb", "gb"][place], sums, place)?;
    }
    // The viewer has added up what it shows at the root.
    let report = test.nyquist(&["report", "--json", "--event", "total"]).path(&recorded.path).run()?;
    let report: Value = serde_json::from_str(&report.succeeded()?.stdout_text())?;
    expect_eq("bytes in all", read["sums"]["total"].as_f64(), report["weight"].as_f64())
}

fn pprof(test: &Context<'_>) -> Verdict {
    let recorded = recorded(test, &[])?;
    let file = export(test, &recorded, "live", "heap.pb.gz")?;
    for (value, place) in [("alloc_space", 0), ("inuse_space", 1)] {
        let options = ["tool", "pprof", "-top", "-nodefraction=0", "-nodecount=0", "-unit=B"];
        let call = test.program("go").args(&options).args(&[&format!("-sample_index={value}")]).path(&file);
        let Ok(printed) = call.run() else { return skip("there is no go") };
        let printed = printed.succeeded()?.stdout_text();
        expect_known(value, &cumulative(&printed), place)?;
    }
    Ok(())
}

/// The cumulative sums of `go tool pprof -top`: flat, its share, the sum of shares, cum, its share, and the function.
fn cumulative(printed: &str) -> BTreeMap<&str, f64> {
    let row = |line: &'_ str| {
        let args: Vec<&str> = line.split_whitespace().collect();
        let (function, _) = KNOWN.into_iter().find(|(function, _)| args.get(5) == Some(function))?;
        Some((function, args.get(3)?.trim_end_matches('B').parse().ok()?))
    };
    printed.lines().filter_map(row).collect()
}

fn folded(test: &Context<'_>) -> Verdict {
    let recorded = recorded(test, &[])?;
    for (event, place) in [("total", 0), ("live", 1), ("peak", 2), ("temporary", 3)] {
        let file = export(test, &recorded, event, &format!("{event}.folded"))?;
        expect_known(event, &folded_sums(&fs::read_to_string(file)?), place)?;
    }
    let refused = test.nyquist(&["report", "--event", "nothing"]).path(&recorded.path).run()?;
    expect_contains("the refusal", &refused.stderr, "temporary")
}

/// By the front end's rules: one balanced table for a process, in which each free comes after the allocation of the
/// same address. What is left is retained.
fn native_allocations(test: &Context<'_>) -> Verdict {
    for version in ["66", "49"] {
        let recorded = recorded(test, &["--profile-version", version])?;
        let threads = recorded.profile.json["threads"].as_array().context("no threads")?;
        let tables: Vec<_> = threads
            .iter()
            .enumerate()
            .filter(|(_, thread)| thread["nativeAllocations"].is_object())
            .collect();
        let [(index, thread)] = tables[..] else {
            return expect(false, format_args!("{} tables for one process", tables.len()));
        };
        expect_eq("the thread with the table", thread["isMainThread"].as_bool(), Some(true))?;
        let names = |stack: usize| recorded.profile.threads[index].names_of(stack);
        let [allocated, retained] = sums_of_table(&thread["nativeAllocations"], &names)?;
        expect_known("allocated", &allocated, 0)?;
        expect_known("retained", &retained, 1)?;
        let session = Session::of_file(test, &recorded.path)?;
        expect_eq(
            "the front end",
            session.ask(&["profile", "info"])?["type"].as_str(),
            Some("profile-info"),
        )?;
    }
    Ok(())
}

/// What functions have allocated in a table, and what of it is left.
fn sums_of_table<'a>(
    table: &Value,
    names: &dyn Fn(usize) -> Vec<&'a str>,
) -> Result<[BTreeMap<&'static str, f64>; 2], Stop> {
    let column = |key: &str| table[key].as_array().with_context(|| format!("no column {key}"));
    let [times, weights, stacks, addresses, threads] =
        ["time", "weight", "stack", "memoryAddress", "threadId"].map(column);
    let (times, weights, stacks, addresses) = (times?, weights?, stacks?, addresses?);
    let length = table["length"].as_u64().unwrap_or_default() as usize;
    expect(
        [times, weights, stacks, addresses, threads?].iter().all(|it| it.len() == length),
        "a column's length",
    )?;
    expect(times.is_sorted_by(|a, b| a.as_f64() <= b.as_f64()), "times decrease")?;
    expect_eq("the unit", table["weightType"].as_str(), Some("bytes"))?;
    let mut held = BTreeMap::new();
    let mut sums = [(); 2].map(|()| BTreeMap::new());
    for row in 0..length {
        let (weight, address) = (weights[row].as_f64().unwrap_or(0.0), addresses[row].as_u64());
        if weight < 0.0 {
            let allocation = held.remove(&address).map(|(weight, _): (f64, Vec<&str>)| weight);
            expect_eq("the allocation of a free", allocation, Some(-weight))?;
            continue;
        }
        let stack = stacks[row].as_u64().map_or_else(Vec::new, |stack| names(stack as usize));
        add(&mut sums[0], &stack, weight);
        expect(held.insert(address, (weight, stack)).is_none(), "an address is allocated twice")?;
    }
    for (weight, stack) in held.into_values() {
        add(&mut sums[1], &stack, weight);
    }
    Ok(sums)
}

fn add(sums: &mut BTreeMap<&'static str, f64>, stack: &[&str], weight: f64) {
    for (function, _) in KNOWN {
        if stack.contains(&function) {
            *sums.entry(function).or_default() += weight;
        }
    }
}

fn refused(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    for name in ["x.heaptrack", "x.dhat.json"] {
        let call = test.nyquist(&["export", "-o"]).path(&test.path(name)).path(&recorded.path);
        let refused = call.run()?;
        expect_eq("the status", refused.code(), 1)?;
        expect_contains("what is said", &refused.stderr, "has no allocations")?;
        expect_contains("what works", &refused.stderr, "nyquist record --alloc")?;
        expect(!test.path(name).exists(), "a file is left")?;
    }
    Ok(())
}
