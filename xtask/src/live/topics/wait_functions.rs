//! `record --off-cpu`: what threads wait for by the functions of their runtimes, which all wait by the same system
//! call.

use std::fs;

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_measured, skip};
use super::recorded::Recorded;
use super::test::{SHARES, Test};
use super::waits::{report, share};

pub(super) const TESTS: &[Test] = &[
    Test::new("waits_by_pthreads_are_told_apart", pthreads).in_pairs(SHARES),
    Test::new("a_lock_has_a_holder_where_its_memory_says_so", holders).in_pairs(SHARES),
    Test::new("waits_by_rusts_library_are_told_apart", rust).in_pairs(SHARES),
    Test::new("waits_by_cpps_library_are_told_apart", cpp).in_pairs(SHARES),
    Test::new("waits_of_python_are_told_apart", python).in_pairs(SHARES),
    Test::new("waits_of_java_are_told_apart", java).in_pairs(SHARES),
    Test::new("waits_of_node_are_told_apart", node).in_pairs(SHARES),
    Test::new("waits_of_go_are_told_apart", go).in_pairs(SHARES),
];

/// Checks what most of each thread's waits were for: pairs of a thread and the innermost function.
fn expect_reasons(test: &Context<'_>, recorded: &Recorded, expected: &[(&str, &str)]) -> Verdict {
    for (thread, reason) in expected {
        let report = report(test, recorded, &["--off-cpu", "--thread", &format!("^{thread}$")])?;
        let found = share(&report, reason);
        let most = report["functions"][0]["function"].as_str().unwrap_or_default();
        expect_measured(found > 0.7, format_args!("{thread}: {found:.3} {reason}, most is {most:?}"))?;
    }
    Ok(())
}

fn record(test: &Context<'_>, args: &[&str]) -> Result<Recorded, Stop> {
    Ok(test.record(args).options(&["--off-cpu"]).run_well()?)
}

fn pthreads(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["futexes", "1"])?;
    let expected = [
        ("plain", "[waiting: lock]"),
        ("robust", "[waiting: lock]"),
        ("inheriting", "[waiting: lock]"),
        ("reads", "[waiting: rwlock]"),
        ("writes", "[waiting: rwlock]"),
        ("condition", "[waiting: condition variable]"),
        ("semaphore", "[waiting: semaphore]"),
        ("barrier", "[waiting: barrier]"),
        ("first", "[waiting: sleep]"),
        ("once", "[waiting: once]"),
        ("joins", "[waiting: end of a thread]"),
    ];
    expect_reasons(test, &recorded, &expected)
}

/// A thread may wait for each lock of the one that holds them all. Others wait for things that nobody holds.
fn holders(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["futexes", "0.5"])?;
    let holder = |thread: &str| -> Result<Option<String>, Stop> {
        let report = report(test, &recorded, &["--waits", "--thread", &format!("^{thread}$")])?;
        let waits = report["waits"].as_array().into_iter().flatten();
        let held = waits.filter_map(|wait| wait["held_by"][0]["thread"].as_str());
        Ok(held.map(str::to_owned).next())
    };
    for thread in ["plain", "robust", "inheriting", "reads", "writes"] {
        let found = holder(thread)?.unwrap_or_default();
        expect(found.starts_with("holds ("), format_args!("{thread} waits for {found:?}"))?;
    }
    for thread in ["condition", "semaphore", "barrier", "once", "joins"] {
        let found = holder(thread)?;
        expect(found.is_none(), format_args!("{thread} waits for {found:?}"))?;
    }
    Ok(())
}

fn rust(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["rust_waits", "1"])?;
    let expected = [
        ("mutex", "[waiting: lock]"),
        ("rwlock", "[waiting: rwlock]"),
        ("condvar", "[waiting: condition variable]"),
        ("receives", "[waiting: channel receive]"),
        ("sends", "[waiting: channel send]"),
        ("parks", "[waiting: park]"),
        ("barrier", "[waiting: barrier]"),
        ("first", "[waiting: sleep]"),
        ("once", "[waiting: once]"),
        ("joins", "[waiting: end of a thread]"),
    ];
    expect_reasons(test, &recorded, &expected)
}

fn cpp(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["futures", "1"])?;
    let expected = [
        ("mutex", "[waiting: lock]"),
        ("condition", "[waiting: condition variable]"),
        ("future", "[waiting: future]"),
        ("joins", "[waiting: end of a thread]"),
    ];
    expect_reasons(test, &recorded, &expected)
}

/// A recording of a program for an interpreter in `workloads/`; skips the test without the interpreter.
fn interpreted(test: &Context<'_>, args: &[&str], source: &str, argument: &str) -> Result<Recorded, Stop> {
    if test.program(args[0]).args(&["--version"]).run().is_err() {
        return skip(format!("{} is not installed", args[0]));
    }
    let source = crate::paths::root().join("workloads").join(source).display().to_string();
    let args: Vec<&str> = args.iter().copied().chain([&*source, argument]).collect();
    Ok(test.record_command(&args).options(&["--off-cpu"]).run_well()?)
}

/// The time of all waits with a reason, in seconds.
fn seconds(report: &Value, reason: &str) -> f64 {
    share(report, reason) * report["weight"].as_f64().unwrap_or_default() / 1000.0
}

/// Two threads wait until the end, in ways that the interpreter's functions do not tell apart. Two others want
/// its lock in turn.
fn python(test: &Context<'_>) -> Verdict {
    let recorded = interpreted(test, &["python3"], "waits.py", "1")?;
    let report = report(test, &recorded, &["--off-cpu"])?;
    let [parked, locked, semaphores] =
        ["[waiting: park]", "[waiting: lock]", "[waiting: semaphore]"].map(|name| seconds(&report, name));
    let holds = parked > 1.5 && locked > 0.4 && semaphores < 0.1;
    expect_measured(holds, format_args!("{parked:.3} s parked, {locked:.3} s for the lock, {semaphores:.3}"))
}

fn java(test: &Context<'_>) -> Verdict {
    let recorded = interpreted(test, &["java"], "Waits.java", "2")?;
    let expected = [
        ("enters", "[waiting: lock]"),
        ("notified", "[waiting: condition variable]"),
        ("parks", "[waiting: park]"),
        ("sleeps", "[waiting: sleep]"),
    ];
    expect_reasons(test, &recorded, &expected)?;
    let report = report(test, &recorded, &["--off-cpu", "--thread", "^(GC Thread|VM Thread|C[12] Comp)"])?;
    let idle = share(&report, "[idle: Java]");
    expect_measured(
        idle > 0.6,
        format_args!("{idle:.3} of the waits of the virtual machine's threads are idle"),
    )
}

fn node(test: &Context<'_>) -> Verdict {
    let args = ["node", "-e", "setTimeout(() => {}, 1000)"];
    if test.program("node").args(&["--version"]).run().is_err() {
        return skip("node is not installed");
    }
    let recorded = test.record_command(&args).options(&["--off-cpu"]).run_well()?;
    let report = report(test, &recorded, &["--off-cpu"])?;
    let all = report["weight"].as_f64().unwrap_or_default() / 1000.0;
    let [events, idle, workers] =
        ["[waiting: events]", "[idle: Node.js]", "[idle: libuv]"].map(|name| seconds(&report, name));
    let holds = events > 0.8 && idle > 2.0 && events + idle + workers > 0.8 * all;
    expect_measured(
        holds,
        format_args!("{events:.3} s for events, {idle:.3} and {workers:.3} s idle, of {all:.3}"),
    )
}

fn go(test: &Context<'_>) -> Verdict {
    if test.program("go").args(&["version"]).run().is_err() {
        return skip("go is not installed");
    }
    let folder = test.fresh("go");
    fs::create_dir_all(&folder)?;
    let (source, built) = (folder.join("waits.go"), folder.join("waits"));
    let text = "package main\n\nimport (\n\t\"sync\"\n\t\"time\"\n)\n\nfunc main() {\n\tvar all sync.WaitGroup\n\tfor i := 0; i < 8; i++ {\n\t\tall.Add(1)\n\t\tgo func() {\n\t\t\tdefer all.Done()\n\t\t\ttime.Sleep(time.Second)\n\t\t}()\n\t}\n\tall.Wait()\n}\n";
    fs::write(&source, text)?;
    let [source, built] = [&source, &built].map(|path| path.display().to_string());
    let cache = folder.join("cache").display().to_string();
    test.program("go").args(&["build", "-o", &built, &source]).env("GOCACHE", cache).run()?.succeeded()?;
    let recorded = test.record_command(&[&*built]).options(&["--off-cpu"]).run_well()?;
    let report = report(test, &recorded, &["--off-cpu"])?;
    let [idle, lock] = ["[idle: Go]", "[waiting: lock]"].map(|name| share(&report, name));
    expect_measured(
        idle > 0.5 && lock < 0.1,
        format_args!("{idle:.3} of all waits are idle, {lock:.3} locks"),
    )
}
