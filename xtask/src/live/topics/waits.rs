//! `record --off-cpu`: where threads wait, for how long, and for which reason.

use std::os::unix::fs::MetadataExt as _;

use anyhow::Context as _;
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip};
use super::invocation::Invocation;
use super::recorded::Recorded;
use super::test::{SHARES, Test};
use super::viewer::ViewerServer;
use super::{permissions, rules};

pub(super) const TESTS: &[Test] = &[
    Test::new("each_thread_waits_for_what_it_waits_for", reasons).quick().in_pairs(SHARES).everywhere(),
    Test::new("ptrace_shows_what_threads_wait_for", reasons_by_ptrace).in_pairs(SHARES),
    Test::new("running_and_waiting_are_all_time_of_a_thread", all_time).in_pairs(SHARES),
    Test::new("no_thread_is_in_two_places_at_once", one_place).in_pairs(SHARES),
    Test::new("a_lock_names_its_holder_and_who_waits", locks).in_pairs(SHARES).everywhere(),
    Test::new("root_sees_where_in_the_kernel_threads_wait", kernel_functions).in_pairs(SHARES),
    Test::new("root_sees_which_thread_ends_a_wait", wakers).in_pairs(SHARES),
    Test::new("root_reads_tracepoints_that_are_not_mounted", tracefs_not_mounted).in_pairs(SHARES),
    Test::new("a_sleeping_thread_is_seen_when_attached", attached).in_pairs(SHARES).everywhere(),
    Test::new("each_wait_is_drawn_with_its_own_stack", drawn),
    Test::new("workers_of_tokio_wait_where_they_park", workers_of_tokio).in_pairs(SHARES),
    Test::new("waits_are_not_kept_as_perf_data", with_perf_data),
];

/// The threads of the program, each with the reason of its wait and the function in which it waits.
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
    record_with(test, &["--off-cpu"], adapt)
}

fn record_with<'a>(
    test: &'a Context<'a>,
    options: &[&str],
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> anyhow::Result<Recorded> {
    let file = test.fresh("written").display().to_string();
    test.record(&["reasons", "2", &file]).options(options).with(adapt).run_well()
}

/// A report of a recording, as JSON.
pub(super) fn report(test: &Context<'_>, recorded: &Recorded, options: &[&str]) -> anyhow::Result<Value> {
    let call = test.nyquist(&["report", "--json", "--limit", "0"]).args(options).path(&recorded.path);
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The total share of a function in a report.
pub(super) fn share(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"].as_str() == Some(function));
    row.and_then(|row| row["total_share"].as_f64()).unwrap_or(0.0)
}

fn reasons(test: &Context<'_>) -> Verdict {
    check_reasons(test, &record(test, |call| call)?)
}

fn reasons_by_ptrace(test: &Context<'_>) -> Verdict {
    check_reasons(test, &record_with(test, &["--off-cpu", "--backend", "ptrace"], |call| call)?)
}

fn check_reasons(test: &Context<'_>, recorded: &Recorded) -> Verdict {
    for (thread, reason, function) in REASONS {
        // A child process first has the name of the thread that has created it.
        let options = ["--off-cpu", "--process", "^reasons$", "--thread", &format!("^{thread}$")];
        let report = report(test, recorded, &options)?;
        let [for_that, there] = [reason, function].map(|name| share(&report, name));
        let holds = for_that > 0.8 && there > 0.8;
        expect_measured(holds, format_args!("{thread}: {for_that:.3} {reason}, {there:.3} in {function}"))?;
    }
    expect_contains("the summary", &recorded.finished.stderr, "All threads together waited")?;
    let broken = rules::broken(&recorded.profile.json);
    expect(broken.is_empty(), broken.join("; "))
}

/// With the clocks of threads, CPU time is exact. The clocks of CPUs, which root uses, sample it. Their
/// precision depends on the number of samples.
fn all_time(test: &Context<'_>) -> Verdict {
    check_time(test, &record(test, |call| call)?, |report, samples| {
        4.0 * samples.sqrt() / 1000.0 + late_samples(report)
    })?;
    let _held = permissions::at_paranoid(2)?;
    check_time(test, &record(test, Invocation::by_plain_user)?, |_, _| 0.0)
}

/// The seconds of CPU time in samples that a CPU's clock took late. A virtual CPU that was halted notices its
/// clock only when it runs again. The sample is then where interrupts are enabled after the switch to the
/// thread, although the thread did not use that time.
fn late_samples(report: &Value) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let late = rows
        .filter(|row| row["function"].as_str().is_some_and(|name| name.starts_with("finish_task_switch")));
    late.filter_map(|row| row["self"].as_f64()).sum::<f64>() / 1000.0
}

/// The program prints how long each of its threads lived. `more` is the tolerance in seconds of CPU time,
/// given the number of samples.
fn check_time(test: &Context<'_>, recorded: &Recorded, more: fn(&Value, f64) -> f64) -> Verdict {
    let lines = recorded.finished.stdout_text();
    for line in lines.lines() {
        let (thread, lived) = line.split_once(' ').context("a line of the program")?;
        let report = |state| report(test, recorded, &[state, "--thread", &format!("^{thread}$")]);
        let weight = |report: &Value| report["weight"].as_f64().context("no weight");
        let (all, waiting) = (report("--wall")?, report("--off-cpu")?);
        // The unit of weight is a millisecond.
        let (found, lived) = (weight(&all)? / 1000.0, lived.parse::<f64>()?);
        let waited = weight(&waiting)? / 1000.0;
        let holds = (found - lived).abs() <= 0.02 * lived + more(&all, (found - waited) * 1000.0);
        expect_measured(holds, format_args!("{thread} lived for {lived:.3} s, and {found:.3} s are shown"))?;
    }
    expect_eq("threads", lines.lines().count(), 10)
}

/// Two threads take turns on one CPU, so nearly all of their waits are shorter than a sampling interval and were
/// not seen.
fn one_place(test: &Context<'_>) -> Verdict {
    let _held = permissions::at_paranoid(2)?;
    for (backend, is_plain_user) in [("perf", false), ("perf", true), ("ptrace", false)] {
        let recording = test.record(&["switches", "80000"]).options(&["--off-cpu", "--backend", backend]);
        let recording = if is_plain_user { recording.with(Invocation::by_plain_user) } else { recording };
        let recorded = recording.run_well()?;
        let served = ViewerServer::start(test, &[&recorded.path])?;
        for state in ["running", "waiting", "both"] {
            expect_one_place(&served, state)?;
        }
        served.end()?;
    }
    Ok(())
}

/// The number of parts of the time that are compared.
const PARTS: usize = 20;

/// In no part of the time, a thread has more time than there was, and all parts together have its weight. The CPU time
/// of a process that could not be sampled is on the row of one thread, and may be that of the other.
fn expect_one_place(served: &ViewerServer<'_>, state: &str) -> Verdict {
    let info = served.ask(&format!("info?state={state}"))?;
    let interval = number(&info["interval_ns"])?;
    for thread in info["threads"].as_array().context("no threads")? {
        let answer =
            served.ask(&format!("timeline?parts={PARTS}&state={state}&tracks={}", thread["thread"]))?;
        let categories = answer["tracks"][0]["categories"].as_array().context("no categories")?;
        let in_part = |part: usize| categories.iter().filter_map(|row| row["ns"][part].as_f64()).sum::<f64>();
        let parts: Vec<_> = (0..PARTS).map(in_part).collect();
        let (drawn, weight) = (parts.iter().sum::<f64>(), number(&thread["weight"])? * interval);
        // What a thread used since its last sample has no weight yet, or is no whole interval.
        let holds = (drawn - weight).abs() <= 5.0 * interval;
        expect_measured(holds, format_args!("{state}: {drawn} ns are drawn of {weight} ns: {thread}"))?;
        let lived = number(&thread["end_ns"])? - number(&thread["start_ns"])?;
        let most = parts.into_iter().fold(0.0, f64::max) / number(&answer["part_ns"])?;
        let holds = most <= 1.2 * (weight / lived).max(1.0);
        expect_measured(holds, format_args!("{state}: {most:.2} threads at once: {thread}"))?;
    }
    Ok(())
}

fn number(value: &Value) -> anyhow::Result<f64> {
    value.as_f64().context("no number")
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

/// Checks in which kernel function each thread of the program waits. Not all waits of a thread are recorded
/// with their stacks, because another thread waits thousands of times a second.
fn kernel_functions(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recorded = record(test, |call| call)?;
    for (thread, function) in [("sleeps", "hrtimer_nanosleep"), ("pipe", "pipe_read"), ("child", "do_wait")] {
        let report = report(test, &recorded, &["--off-cpu", "--thread", &format!("^{thread}$")])?;
        let rows = report["functions"].as_array().into_iter().flatten();
        let found = rows.filter(|row| row["function"].as_str().is_some_and(|name| name.contains(function)));
        let share: f64 = found.filter_map(|row| row["total_share"].as_f64()).fold(0.0, f64::max);
        expect_measured(share > 0.1, format_args!("{thread}: {share:.3} of its waits are in {function}"))?;
    }
    Ok(())
}

/// The front end draws each row up to the next one. So the row at the middle of a marked wait has its stack.
fn drawn(test: &Context<'_>) -> Verdict {
    let recorded = record(test, |call| call)?;
    let profile = &recorded.profile;
    let written = profile.json["threads"].as_array().context("no threads")?;
    let interval = profile.json["meta"]["interval"].as_f64().context("no interval")?;
    let (mut waits, mut wrong) = (0, Vec::new());
    for (thread, written) in profile.threads.iter().zip(written) {
        let markers = &written["markers"];
        for (index, data) in markers["data"].as_array().into_iter().flatten().enumerate() {
            let time = |column: &str| markers[column][index].as_f64().unwrap_or_default();
            let (start, end) = (time("startTime"), time("endTime"));
            let Some(stack) = data["cause"]["stack"].as_u64().filter(|_| data["type"] == "Wait") else {
                continue;
            };
            if end - start < 3.0 * interval {
                continue;
            }
            waits += 1;
            let category = markers["category"][index].as_u64().unwrap_or_default() as usize;
            let category = &profile.json["meta"]["categories"][category]["name"];
            expect(category == "Waiting", format_args!("a wait's category is {category}"))?;
            let expected = thread.names_of(stack as usize);
            let middle = f64::midpoint(start, end);
            if thread.names_at(middle).as_ref() != Some(&expected) {
                wrong.push(format!(
                    "{} at {middle} ms: {:?}, not {expected:?}",
                    thread.name,
                    thread.names_at(middle)
                ));
            }
        }
    }
    expect(waits > 100, format_args!("{waits} waits"))?;
    expect(wrong.is_empty(), format_args!("{} of {waits} waits: {}", wrong.len(), wrong.join("; ")))
}

/// The inode number of the initial process namespace (`PROC_PID_INIT_INO` in Linux's
/// `include/linux/proc_ns.h`).
const FIRST_NAMESPACE: u64 = 0xefff_fffc;

/// A wakeup names a thread by its id in the initial process namespace.
fn wakers(test: &Context<'_>) -> Verdict {
    need_root()?;
    if std::fs::metadata("/proc/self/ns/pid").map_err(anyhow::Error::from)?.ino() != FIRST_NAMESPACE {
        return skip("this is not the first namespace of processes");
    }
    let recorded = record(test, |call| call)?;
    for (thread, waker) in [("wants", "holds ("), ("pipe", "feeds ("), ("sleeps", "an interrupt")] {
        let report = report(test, &recorded, &["--waits", "--thread", &format!("^{thread}$")])?;
        let found = report["waits"][0]["woken_by"][0]["thread"].as_str().unwrap_or_default();
        expect(found.starts_with(waker), format_args!("{thread} is woken by {found:?}"))?;
    }
    let markers = report(test, &recorded, &["--markers", "--thread", "^feeds$"])?;
    let rows = markers["markers"].as_array().into_iter().flatten();
    let wakes = rows.filter(|row| row["kind"] == "Wake").filter_map(|row| row["count"].as_u64()).sum::<u64>();
    expect(wakes >= 10, format_args!("the thread that feeds others woke {wakes}"))
}

/// Runs the command with its own view of mounts, in which nobody has mounted tracefs.
const WITHOUT_TRACEFS: [&str; 6] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "umount -a -t tracefs && ! grep tracefs /proc/mounts && exec \"$@\"",
    "sh",
];

fn tracefs_not_mounted(test: &Context<'_>) -> Verdict {
    need_root()?;
    if !std::path::Path::new("/sys/kernel/tracing/events").exists() {
        return skip("this kernel has no tracefs, or it cannot be mounted");
    }
    let recorded = record(test, |call| call.under(&WITHOUT_TRACEFS))?;
    let report = report(test, &recorded, &["--waits", "--thread", "^wants$"])?;
    let frames = report["waits"][0]["stacks"][0]["frames"].to_string();
    expect(frames.contains("futex_wait"), format_args!("no functions of the kernel: {frames}"))
}

/// The process neither leaves a CPU nor gets one while it is recorded.
fn attached(test: &Context<'_>) -> Verdict {
    let target = test.program("sleep").args(&["1000"]).start()?;
    let (pid, output) = (target.pid().to_string(), test.fresh("profile.json.gz"));
    let options = ["record", "-s", "--off-cpu", "-d", "1", "-p", &pid, "-o"];
    test.nyquist(&options).path(&output).run()?.succeeded()?;
    super::running_targets::end(target)?;
    let call = test.nyquist(&["report", "--json", "--off-cpu"]).path(&output);
    let report: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
    let slept = share(&report, "[waiting: sleep]");
    let seconds = report["weight"].as_f64().unwrap_or_default() / 1000.0;
    let holds = slept > 0.95 && (0.9..1.2).contains(&seconds);
    expect_measured(holds, format_args!("{slept:.3} of {seconds:.3} s asleep"))
}

/// Of two workers without work, one waits for the events of all, and the other one has nothing to do.
fn workers_of_tokio(test: &Context<'_>) -> Verdict {
    let recording = test.record(&["async_server", "joined", "4", "200"]).options(&["--off-cpu"]);
    let recorded = recording.run_well()?;
    let report = report(test, &recorded, &["--off-cpu", "--thread", "^tokio-rt-worker$"])?;
    let [idle, events] = ["[idle: Tokio]", "[waiting: events]"].map(|reason| share(&report, reason));
    let rows = report["functions"].as_array().into_iter().flatten();
    let parks = rows.filter(|row| row["function"].as_str().is_some_and(|name| name.contains("park")));
    let parked: f64 = parks.filter_map(|row| row["total_share"].as_f64()).fold(0.0, f64::max);
    let holds = idle > 0.1 && events > 0.1 && idle + events > 0.7 && parked > 0.3;
    expect_measured(holds, format_args!("{idle:.3} idle, {events:.3} for events, {parked:.3} parked"))?;
    expect_contains("the summary", &recorded.finished.stderr, "workers without work: Tokio")
}

fn with_perf_data(test: &Context<'_>) -> Verdict {
    let args = ["record", "-s", "--off-cpu", "--perf-data", "x.data", "true"];
    let refused = test.nyquist(&args).run()?;
    expect_eq("the exit status", refused.code(), 2)?;
    expect_contains("stderr", &refused.stderr, "--perf-data")
}
