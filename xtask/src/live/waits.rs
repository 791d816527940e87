//! `record --off-cpu`: where threads wait, for how long, and what for.

use anyhow::Context as _;
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::harness::Test;
use super::invocation::Invocation;
use super::recorded::Recorded;
use super::{permissions, rules};

pub(super) const TESTS: &[Test] = &[
    Test::new("each_thread_waits_for_what_it_waits_for", reasons).quick(),
    Test::new("a_plain_user_sees_what_threads_wait_for", reasons_of_plain_user),
    Test::new("running_and_waiting_are_all_time_of_a_thread", all_time),
    Test::new("a_lock_names_its_holder_and_who_waits", locks),
    Test::new("a_sleeping_thread_is_seen_when_attached", attached),
    Test::new("waits_are_not_kept_as_perf_data", with_perf_data),
];

/// Each thread of the program, what it waits for, and the function where it does.
const REASONS: [(&str, &str, &str); 8] = [
    ("sleeps", "[waiting: sleep]", "sleeps"),
    ("holds", "[waiting: sleep]", "holds_lock"),
    ("wants", "[waiting: lock]", "wants_lock"),
    ("pipe", "[waiting: pipe]", "reads_pipe"),
    ("socket", "[waiting: network]", "receives"),
    ("polls", "[waiting: events]", "polls"),
    ("child", "[waiting: child process]", "awaits_child"),
    ("feeds", "[waiting: sleep]", "feeds"),
];

fn record<'a>(
    test: &'a Context<'a>,
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> anyhow::Result<Recorded> {
    let file = test.fresh("written").display().to_string();
    test.record(&["reasons", "2", &file]).options(&["--off-cpu"]).with(adapt).run_well()
}

/// A report of a recording, as JSON.
fn report(test: &Context<'_>, recorded: &Recorded, options: &[&str]) -> anyhow::Result<Value> {
    let call = test.nyquist(&["report", "--json", "--limit", "0"]).args(options).path(&recorded.path);
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The share of a function in a report, with what it calls.
fn share(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"].as_str() == Some(function));
    row.and_then(|row| row["total_share"].as_f64()).unwrap_or(0.0)
}

fn reasons(test: &Context<'_>) -> Verdict {
    check_reasons(test, &record(test, |call| call)?)
}

fn reasons_of_plain_user(test: &Context<'_>) -> Verdict {
    let _held = permissions::at_paranoid(2)?;
    check_reasons(test, &record(test, Invocation::by_plain_user)?)
}

fn check_reasons(test: &Context<'_>, recorded: &Recorded) -> Verdict {
    for (thread, reason, function) in REASONS {
        let report = report(test, recorded, &["--off-cpu", "--thread", &format!("^{thread}$")])?;
        let [for_that, there] = [reason, function].map(|name| share(&report, name));
        let holds = for_that > 0.8 && there > 0.8;
        expect_measured(holds, format_args!("{thread}: {for_that:.3} {reason}, {there:.3} in {function}"))?;
    }
    expect_contains("the summary", &recorded.finished.stderr, "All threads together waited")?;
    let broken = rules::broken(&recorded.profile.json);
    expect(broken.is_empty(), broken.join("; "))
}

/// With the clocks of threads, CPU time is exact. Those of CPUs, as root, sample it: it is as exact as a number of samples.
fn all_time(test: &Context<'_>) -> Verdict {
    check_time(test, &record(test, |call| call)?, |samples| 4.0 * samples.sqrt() / 1000.0)?;
    let _held = permissions::at_paranoid(2)?;
    check_time(test, &record(test, Invocation::by_plain_user)?, |_| 0.0)
}

/// The program says how long each of its threads lived. `more` is how many seconds of CPU time so many samples may be off.
fn check_time(test: &Context<'_>, recorded: &Recorded, more: fn(f64) -> f64) -> Verdict {
    let lines = recorded.finished.stdout_text();
    for line in lines.lines() {
        let (thread, lived) = line.split_once(' ').context("a line of the program")?;
        let weight = |state: &[&str]| -> anyhow::Result<f64> {
            let report = report(test, recorded, &[state, &["--thread", &format!("^{thread}$")]].concat())?;
            report["weight"].as_f64().context("no weight")
        };
        // A weight is a millisecond.
        let (found, lived) = (weight(&["--wall"])? / 1000.0, lived.parse::<f64>()?);
        let waited = weight(&["--off-cpu"])? / 1000.0;
        let holds = (found - lived).abs() <= 0.02 * lived + more((found - waited) * 1000.0);
        expect_measured(holds, format_args!("{thread} lived for {lived:.3} s, and {found:.3} s are shown"))?;
    }
    expect_eq("threads", lines.lines().count(), 10)
}

fn locks(test: &Context<'_>) -> Verdict {
    let recorded = record(test, |call| call)?;
    let report = report(test, &recorded, &["--waits", "--thread", "^wants$"])?;
    let waits = report["waits"].as_array().context("no waits")?;
    let lock = waits.iter().find(|wait| wait["reason"] == "lock").context("no lock")?;
    let holder = lock["held_by"][0]["thread"].as_str().unwrap_or_default();
    expect(holder.starts_with("holds ("), format_args!("the lock's holder is {holder:?}"))?;
    expect(lock["object"].as_str().is_some_and(|it| it.starts_with("0x")), format_args!("{lock}"))?;
    let frames = lock["stacks"][0]["frames"].as_array().context("no stack")?;
    expect(frames.iter().any(|name| name == "wants_lock"), format_args!("{frames:?}"))?;
    let total = lock["total_ns"].as_f64().unwrap_or_default() / 1e9;
    expect_measured((1.2..2.1).contains(&total), format_args!("waited {total:.3} s for the lock"))
}

/// It leaves no CPU and comes to none while it is recorded.
fn attached(test: &Context<'_>) -> Verdict {
    let target = test.program("sleep").args(&["1000"]).start()?;
    let (pid, output) = (target.pid().to_string(), test.fresh("profile.json.gz"));
    let options = ["record", "-s", "--off-cpu", "-d", "1", "-p", &pid, "-o"];
    test.nyquist(&options).path(&output).run()?.succeeded()?;
    super::targets::end(target)?;
    let call = test.nyquist(&["report", "--json", "--off-cpu"]).path(&output);
    let report: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
    let slept = share(&report, "[waiting: sleep]");
    let seconds = report["weight"].as_f64().unwrap_or_default() / 1000.0;
    let holds = slept > 0.95 && (0.9..1.2).contains(&seconds);
    expect_measured(holds, format_args!("{slept:.3} of {seconds:.3} s asleep"))
}

fn with_perf_data(test: &Context<'_>) -> Verdict {
    let words = ["record", "-s", "--off-cpu", "--perf-data", "x.data", "true"];
    let refused = test.nyquist(&words).run()?;
    expect_eq("the exit status", refused.code(), 2)?;
    expect_contains("stderr", &refused.stderr, "--perf-data")
}
