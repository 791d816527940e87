//! `record -e`: additional events. Their counts are compared with those of the program, the kernel
//! and perf.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip};
use super::json_docs::Documents;
use super::permissions::at_paranoid;
use super::profile::Profile;
use super::recorded::Recorded;
use super::rules;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("page_faults_are_those_that_the_kernel_counts", faults).quick().on_busy_cpu().on_busy_cpu(),
    Test::new("tracepoints_have_their_fields_and_stacks", tracepoints).quick(),
    Test::new("one_of_so_many_is_recorded", one_of_many).quick(),
    Test::new("few_records_have_the_count_of_all", counted_by_frequency).quick().everywhere(),
    Test::new("calls_are_counted_over_forks_and_threads", calls).quick(),
    Test::new("calls_of_a_running_process_are_its_own", attached),
    Test::new("an_event_can_take_the_place_of_cpu_time", in_place_of_time).quick().on_busy_cpu(),
    Test::new("a_ratio_is_of_one_event_by_another", ratios).quick(),
    Test::new("a_plain_user_records_faults_of_user_code", plain_user),
    Test::new("what_cannot_be_recorded_is_said", refusals).quick(),
    Test::new("a_flood_leaves_the_samples_alone", flood),
];

fn is_missing(path: &str) -> bool {
    !Path::new(path).exists()
}

fn need_tracepoints() -> Verdict {
    need_root()?;
    if is_missing("/sys/kernel/tracing/events/syscalls") {
        return skip("this kernel has no tracepoints of system calls");
    }
    Ok(())
}

/// The markers of a recording, by event: the values of their fields, and whether they have a stack.
fn markers(recorded: &Recorded) -> anyhow::Result<BTreeMap<String, Vec<(Value, bool)>>> {
    let json = &recorded.profile.json;
    let mut found: BTreeMap<String, Vec<(Value, bool)>> = BTreeMap::new();
    for thread in json["threads"].as_array().context("no threads")? {
        let rows = thread["markers"]["data"].as_array().into_iter().flatten();
        for data in rows {
            let Some(event) = data["type"].as_str().and_then(|kind| kind.strip_prefix("Event: ")) else {
                continue;
            };
            let has_stack = !data["cause"]["stack"].is_null();
            found.entry(event.to_owned()).or_default().push((data.clone(), has_stack));
        }
    }
    Ok(found)
}

fn count(markers: &[(Value, bool)]) -> u64 {
    markers.iter().filter_map(|(data, _)| data["event_count"].as_u64()).sum()
}

/// The count after an event's name in the summary.
fn count_in_summary(recorded: &Recorded, event: &str) -> anyhow::Result<u64> {
    let stderr = &recorded.finished.stderr;
    let line = stderr.lines().find_map(|line| line.strip_prefix("Events: ")).context("no line of events")?;
    let part = line.split(" · ").find_map(|part| part.strip_prefix(event)).context("no such event")?;
    Ok(part.trim().replace(',', "").parse()?)
}

/// A report of a recording, as JSON.
fn report(test: &Context<'_>, recorded: &Recorded, options: &[&str]) -> anyhow::Result<Value> {
    let call = test.nyquist(&["report", "--json", "--limit", "0"]).args(options).path(&recorded.path);
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The total weight of a function in a report.
fn total(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"].as_str() == Some(function));
    row.and_then(|row| row["total"].as_f64()).unwrap_or(0.0)
}

fn faults(test: &Context<'_>) -> Verdict {
    let recorded =
        test.record(&["occurs", "1", "1", "2000"]).options(&["-e", "page-faults", "-c", "1"]).run_well()?;
    let own: u64 = recorded.finished.stdout_text().trim().parse().map_err(anyhow::Error::from)?;
    let found = markers(&recorded)?;
    let faults = found.get("page-faults").context("no page faults")?;
    let counted = count(faults);
    expect_eq("the summary's number", count_in_summary(&recorded, "page-faults")?, counted)?;
    // The kernel's own count includes the faults of exec, which occur before the recording begins.
    expect_measured(
        counted.abs_diff(own) <= 60 + own / 50,
        format_args!("{counted} faults beside {own} of the kernel's account"),
    )?;
    let with_address = faults.iter().filter(|(data, _)| data["addr"].as_u64().is_some()).count();
    let with_stack = faults.iter().filter(|(_, has_stack)| *has_stack).count();
    expect(with_address + 20 >= faults.len(), format_args!("{with_address} addresses of {}", faults.len()))?;
    expect(with_stack * 100 >= faults.len() * 95, format_args!("{with_stack} stacks of {}", faults.len()))?;
    let sampled: f64 =
        recorded.profile.threads.iter().flat_map(|thread| &thread.samples).map(|it| it.weight).sum();
    expect(sampled < 1000.0, format_args!("{sampled} samples: faults are none"))?;
    let broken = rules::broken(&recorded.profile.json);
    expect(broken.is_empty(), broken.join("; "))
}

fn tracepoints(test: &Context<'_>) -> Verdict {
    need_tracepoints()?;
    let options =
        ["-e", "syscalls:sys_enter_write", "--filter", "count == 7", "-e", "sched:sched_process_fork"];
    let recorded = test.record(&["occurs", "1", "400", "10"]).options(&options).run_well()?;
    let found = markers(&recorded)?;
    let writes = found.get("syscalls:sys_enter_write").context("no writes")?;
    expect_eq("writes of seven bytes", writes.len(), 400)?;
    for (data, has_stack) in writes {
        expect_eq("the size", data["count"].as_u64(), Some(7))?;
        expect(*has_stack && data["fd"].as_u64().is_some_and(|fd| fd > 2), format_args!("{data}"))?;
    }
    let forks = found.get("sched:sched_process_fork").context("no forks")?;
    expect_eq("a thread and a process", forks.len(), 2)?;
    let name = &forks[0].0["parent_comm"];
    let names = recorded.profile.json["shared"]["stringArray"].clone();
    let name = name.as_str().map(str::to_owned).or_else(|| {
        let at = usize::try_from(name.as_u64()?).ok()?;
        names.get(at)?.as_str().map(str::to_owned)
    });
    expect_eq("a text", name.as_deref(), Some("occurs"))
}

/// Each CPU and each thread counts separately, so each may lack a marker for its last events.
fn one_of_many(test: &Context<'_>) -> Verdict {
    need_tracepoints()?;
    let options = ["-c", "50", "-e", "syscalls:sys_enter_write", "-e", "page-faults"];
    let recorded = test.record(&["occurs", "1", "5000", "5000"]).options(&options).run_well()?;
    let found = markers(&recorded)?;
    for event in ["syscalls:sys_enter_write", "page-faults"] {
        let events = found.get(event).context("no markers")?;
        let (records, counted) = (events.len() as u64, count(events));
        expect_eq("events that a marker stands for", counted, records * 50)?;
        expect((95..=110).contains(&records), format_args!("{records} markers of 5000 {event}"))?;
    }
    Ok(())
}

/// Most faults of a burst have no record of their own. The count is the kernel's all the same.
fn counted_by_frequency(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["occurs", "1", "1", "30000"]).options(&["-e", "page-faults"]).run_well()?;
    let own: u64 = recorded.finished.stdout_text().trim().parse().map_err(anyhow::Error::from)?;
    let counted = count_in_summary(&recorded, "page-faults")?;
    // As root, events after the last record are not counted.
    expect_measured(
        counted.abs_diff(own) <= own / 20 && own > 30_000,
        format_args!("{counted} faults beside {own} of the kernel's account"),
    )
}

/// Skips the test unless functions of programs can be counted.
pub(super) fn need_probes() -> Verdict {
    need_root()?;
    if is_missing("/sys/bus/event_source/devices/uprobe") {
        return skip("this kernel has no uprobes");
    }
    Ok(())
}

fn calls(test: &Context<'_>) -> Verdict {
    need_probes()?;
    let probe = format!("{}:called_by_name", test.workload("occurs").display());
    let recorded = test.record(&["occurs", "500", "1", "1"]).options(&["-e", &probe]).run_well()?;
    let found = markers(&recorded)?;
    let calls = found.get(&probe).context("no calls")?;
    expect_eq("calls of a process, its thread and its child", calls.len(), 1500)?;
    expect_eq("the summary's number", count_in_summary(&recorded, &probe)?, 1500)?;
    let report = report(test, &recorded, &["--event", &probe])?;
    expect_eq("calls by their caller", total(&report, "calls"), 1500.0)
}

/// A probe is opened for all processes, because an inherited probe makes forks fail. Events of other
/// processes are left out.
fn attached(test: &Context<'_>) -> Verdict {
    need_probes()?;
    let (program, other) = (test.workload("occurs"), test.path("other"));
    std::os::unix::fs::symlink(&program, &other)?;
    let again = |path: &Path| format!("while :; do {} 10 1 1 >/dev/null; sleep 0.01; done", path.display());
    let inside = test.program("sh").args(&["-c", &again(&program)]).start()?;
    let _outside = test.program("sh").args(&["-c", &again(&other)]).start()?;
    let (probe, pid) = (format!("{}:called_by_name", program.display()), inside.pid().to_string());
    let saved = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-d", "1", "-e", &probe, "-p", &pid, "-o"]).path(&saved);
    call.run()?.succeeded()?;
    let profile = Profile::read(&saved)?;
    let mut by_process: BTreeMap<String, usize> = BTreeMap::new();
    for thread in profile.json["threads"].as_array().context("no threads")? {
        let markers = thread["markers"]["length"].as_u64().unwrap_or(0) as usize;
        let process = thread["processName"].as_str().unwrap_or_default();
        *by_process.entry(process.to_owned()).or_default() += markers;
    }
    let calls = by_process.get("occurs").copied().unwrap_or(0);
    expect(calls >= 30 && !by_process.contains_key("other"), format_args!("{by_process:?}"))
}

fn in_place_of_time(test: &Context<'_>) -> Verdict {
    let recorded =
        test.record(&["occurs", "1", "1", "1000"]).options(&["-e", "page-faults", "-c", "1"]).run_well()?;
    let whole = report(test, &recorded, &["--event", "page-faults"])?;
    expect_measured(
        (1000.0..1100.0).contains(&total(&whole, "touches")),
        format_args!("{} faults in a function that touches 1000 pages", total(&whole, "touches")),
    )?;
    let text = test.nyquist(&["report", "--event", "page-faults"]).path(&recorded.path).run()?.succeeded()?;
    expect_contains("the report", &text.stdout_text(), "page-faults")?;
    expect(!text.stdout_text().contains("CPU time in"), text.stdout_text())?;
    let picture = test.fresh("faults.svg");
    let call =
        test.nyquist(&["flamegraph", "--event", "page-faults", "-o"]).path(&picture).path(&recorded.path);
    call.run()?.succeeded()?;
    let call = test.nyquist(&["export", "--event", "page-faults", "--format", "folded", "-o", "-"]);
    let folded = call.path(&recorded.path).run()?.succeeded()?.stdout_text();
    expect_contains("the export", &folded, "touches")?;
    let script =
        test.nyquist(&["script", "--event", "page-faults"]).path(&recorded.path).run()?.succeeded()?;
    expect_contains("the script", &script.stdout_text(), "touches")?;
    for command in ["report", "query", "script"] {
        let finished = test.nyquist(&[command, "--event", "page-fautls"]).path(&recorded.path).run()?;
        expect(finished.code() != 0, format_args!("{command} of an unknown event"))?;
    }
    let finished = test.nyquist(&["report", "--event", "page-fautls"]).path(&recorded.path).run()?;
    expect_contains("stderr", &finished.stderr, "its events are page-faults")
}

/// The ratio of a function, either for its own code or including its callees.
fn ratio(json: &Value, function: &str, which: &str) -> anyhow::Result<Value> {
    let rows = json["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"].as_str() == Some(function));
    Ok(row.with_context(|| format!("no function {function} in {json}"))?[which].clone())
}

fn ratios(test: &Context<'_>) -> Verdict {
    let options = ["-e", "page-faults", "-c", "1"];
    let recorded = test.record(&["occurs", "30000000", "1", "8000"]).options(&options).run_well()?;
    let found = report(test, &recorded, &["--ratio", "page-faults/cpu-time"])?;
    Documents::read()?.hold(&["report", "ratio"], &found)?;
    // The parts of the ratio are equal to the values in the reports of both events.
    let faults = report(test, &recorded, &["--event", "page-faults"])?;
    let time = report(test, &recorded, &[])?;
    let interval = time["interval_ns"].as_f64().context("no interval")?;
    for function in ["touches", "calls", "main"] {
        let found = ratio(&found, function, "total")?;
        let (count, of) = (total(&faults, function), total(&time, function) * interval);
        expect_eq("the first event", found["count"].as_f64(), Some(count))?;
        expect_eq("the second event", found["of"].as_f64(), Some(of))?;
        expect_eq("the ratio", found["ratio"].as_f64(), (of > 0.0).then(|| count / of))?;
    }
    let (touches, calls) = (ratio(&found, "touches", "total")?, ratio(&found, "calls", "total")?);
    expect_measured(
        touches["ratio"].as_f64() > Some(1e-5) && calls["ratio"].as_f64() < Some(1e-6),
        format_args!("faults by ns: {touches} where memory is touched, {calls} where it is not"),
    )?;
    expect_measured(touches["is_uncertain"] == false, format_args!("{touches} of much CPU time"))?;
    let text = test.nyquist(&["report", "--ratio", "page-faults/cpu-time"]).path(&recorded.path);
    let text = text.run()?.succeeded()?.stdout_text();
    for part in ["A: page-faults ", "B: CPU time ", " per second of CPU time ± ", "touches"] {
        expect_contains("the report", &text, part)?;
    }
    let lines = test.nyquist(&["annotate", "touches", "--json", "--ratio", "page-faults/cpu-time"]);
    let lines = lines.path(&recorded.path).run()?.succeeded()?.stdout_text();
    let lines: Value = serde_json::from_str(&lines).map_err(anyhow::Error::from)?;
    Documents::read()?.hold(&["annotate --ratio"], &lines)?;
    let all = lines["files"][0]["lines"].as_array().into_iter().flatten();
    let hot = all.filter(|line| line["source"].as_str().is_some_and(|text| text.contains("memory[at] = 1")));
    let counted: f64 = hot.filter_map(|line| line["self"]["count"].as_f64()).sum();
    expect(
        counted >= 0.9 * total(&faults, "touches"),
        format_args!("{counted} faults of the line that touches memory: {lines}"),
    )?;
    for wrong in ["page-faults", "page-faults/", "page-fautls/cpu-time"] {
        let finished = test.nyquist(&["report", "--ratio", wrong]).path(&recorded.path).run()?;
        expect(finished.code() != 0, format_args!("the ratio `{wrong}`"))?;
    }
    Ok(())
}

fn plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let recording = test.record(&["occurs", "1", "1", "2000"]).options(&["-e", "page-faults", "-c", "1"]);
    let recorded = recording.by_plain_user().run_well()?;
    let found = markers(&recorded)?;
    let counted = found.get("page-faults").map_or(0, |faults| count(faults));
    // The locked memory of a plain user holds few copies of stacks, and faults occur at a high rate.
    let stderr = &recorded.finished.stderr;
    let dropped = stderr.lines().find_map(|line| line.strip_prefix("warning: ")?.split_once(" event record"));
    let dropped = dropped.map_or(Ok(0), |(number, _)| number.replace(',', "").parse::<u64>());
    let dropped = dropped.map_err(anyhow::Error::from)?;
    expect(
        counted > 0 && (2000..2600).contains(&(counted + dropped)),
        format_args!("{counted} faults of 2000 pages, and {dropped} dropped"),
    )?;
    // Kernel time is known as such only beside samples of user code.
    let copies = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000000"];
    let copied = test.record_command(&copies).options(&["-e", "page-faults"]).by_plain_user().run_well()?;
    let ratio = test.nyquist(&["report", "--ratio", "page-faults/cpu-time"]).path(&copied.path);
    let ratio = ratio.run()?.succeeded()?.stdout_text();
    expect_contains("the ratio", &ratio, "of CPU time is the kernel's, which may not be sampled")?;
    let finished =
        test.nyquist(&["record", "-s", "-e", "sched:sched_switch", "true"]).by_plain_user().run()?;
    expect(finished.code() != 0 && finished.stderr.contains("hint:"), finished.stderr)
}

fn refusals(test: &Context<'_>) -> Verdict {
    for (options, part) in [
        (&["-e", "page-fautls"][..], "similar: page-faults"),
        (&["-e", "page-faults", "--filter", "a == 1"], "--filter is for tracepoints"),
        (&["-e", "page-faults", "--backend", "ptrace"], "need perf_event_open"),
        (&["-e", "page-faults", "--perf-data", "x"], "--perf-data"),
        (&["-c", "7"], "--event"),
        (&["--filter", "x"], "--event"),
    ] {
        let finished = test.nyquist(&["record", "-s"]).args(options).args(&["--", "true"]).run()?;
        expect(finished.code() != 0, format_args!("{options:?}"))?;
        expect_contains("stderr", &finished.stderr, part)?;
    }
    let deny = test.workload("deny_perf").display().to_string();
    let finished = test.nyquist(&["record", "-s", "-e", "page-faults", "true"]).under(&[&deny]).run()?;
    expect_contains("stderr", &finished.stderr, "events (-e) need perf_event_open")?;
    need_tracepoints()?;
    let args = ["record", "-s", "-e", "syscalls:sys_enter_write", "--filter", "size == 1", "true"];
    let finished = test.nyquist(&args).run()?;
    expect(finished.code() != 0, "a filter of a field that is none")?;
    expect_contains("stderr", &finished.stderr, "its fields are")
}

fn flood(test: &Context<'_>) -> Verdict {
    need_tracepoints()?;
    let options = ["--call-graph", "none", "-e", "syscalls:sys_enter_write"];
    let recorded = test.record(&["occurs", "1000", "1100000", "1"]).options(&options).run_well()?;
    let found = markers(&recorded)?;
    let most = found.values().map(Vec::len).max().unwrap_or(0);
    expect(most > 0 && most <= 1_000_000, format_args!("{most} markers"))?;
    let stderr = &recorded.finished.stderr;
    expect(!stderr.contains("samples among them"), stderr)
}
