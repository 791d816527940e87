//! `nyquist stat`: its counts are compared with those of perf and the kernel, and the command is not
//! disturbed.

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, skip};
use super::invocation::{Finished, Invocation};
use super::permissions::at_paranoid;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("counts_are_those_of_perf", as_perf).quick().in_pairs(SHARES),
    Test::new("children_and_threads_are_counted", family).quick().in_pairs(SHARES),
    Test::new("a_plain_user_counts_user_code_and_hears_so", plain_user).quick(),
    Test::new("refused_counting_leaves_the_times", refused),
    Test::new("the_commands_status_and_output_are_its_own", transparent).quick(),
    Test::new("a_failed_run_ends_the_runs_and_is_said", failed_run),
    Test::new("runs_have_a_mean_and_a_deviation", runs).quick(),
    Test::new("two_commands_are_compared", compared).quick().in_pairs(SHARES),
    Test::new("intervals_add_up_to_the_whole", intervals).quick(),
    Test::new("running_threads_are_counted_each", attached),
    Test::new("each_thread_of_a_command_is_counted", threads_of_command).quick().in_pairs(SHARES),
    Test::new("a_plain_user_counts_each_thread", threads_for_plain_user).in_pairs(SHARES),
    Test::new("threads_are_counted_where_perf_is_refused", threads_where_refused),
    Test::new("threads_are_counted_across_exec", threads_across_exec),
    Test::new("a_command_with_counted_threads_is_controlled", threads_controlled),
    Test::new("threads_that_are_too_many_are_reported", threads_too_many),
    Test::new("calls_in_threads_add_up_to_all_calls", probes_by_thread),
    Test::new("calls_of_a_function_are_counted", probes).quick(),
    Test::new("a_wrong_event_is_pointed_at", wrong_event).quick(),
    Test::new("a_table_fits_the_terminal", narrow),
];

/// Waits in a shell, without another process, until the program `sleep` that it has started last has begun.
const IS_ASLEEP: &str = "until read -r name < /proc/$!/comm && [ $name = sleep ]; do :; done";

/// A count in the JSON.
fn mean(json: &Value, event: &str) -> Result<f64, anyhow::Error> {
    let rows = json["events"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["event"] == event);
    row.and_then(|row| row["mean"].as_f64()).ok_or_else(|| anyhow::anyhow!("no count of {event} in {json}"))
}

fn stat(test: &Context<'_>, options: &[&str], command: &[&str]) -> Result<Value, anyhow::Error> {
    let output = test.fresh("stat.json");
    let call = test.nyquist(&["stat", "--json", "-o"]).path(&output).args(options).args(command);
    call.run()?.succeeded()?;
    Ok(serde_json::from_slice(&std::fs::read(&output)?)?)
}

/// The value of an event that `perf stat -x,` prints.
fn by_perf(test: &Context<'_>, event: &str, command: &[&str]) -> Result<f64, Stop> {
    let output = test.fresh("perf.csv");
    let call = test.program("perf").args(&["stat", "-x,", "-e", event, "-o"]).path(&output).args(&["--"]);
    if let Err(error) = call.args(command).run() {
        return skip(format_args!("there is no perf here: {error}"));
    }
    let text = std::fs::read_to_string(&output).unwrap_or_default();
    let line = text.lines().find(|line| line.contains(event));
    match line.and_then(|line| line.split(',').next()?.parse().ok()) {
        Some(count) => Ok(count),
        None => skip(format_args!("perf counts no {event} here: {text}")),
    }
}

fn as_perf(test: &Context<'_>) -> Verdict {
    let work = test.workload("parts").display().to_string();
    let commands: [&[&str]; 3] = [
        &["true"],
        &[&work, "30", "60", "30"],
        &["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done"],
    ];
    for command in commands {
        let counted = stat(test, &[], command)?;
        let faults = (mean(&counted, "page-faults")?, by_perf(test, "page-faults", command)?);
        expect_measured(
            (faults.0 - faults.1).abs() <= 0.05 * faults.1 + 3.0,
            format_args!("page faults of {command:?}: {} beside perf's {}", faults.0, faults.1),
        )?;
        let clock = (mean(&counted, "task-clock")? / 1e6, by_perf(test, "task-clock", command)?);
        expect_measured(
            (clock.0 - clock.1).abs() <= 0.3 * clock.1 + 3.0,
            format_args!("task-clock of {command:?}: {} ms beside perf's {}", clock.0, clock.1),
        )?;
    }
    Ok(())
}

fn family(test: &Context<'_>) -> Verdict {
    let counted = stat(
        test,
        &["-e", "task-clock,sched:sched_process_fork"],
        &["sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done"],
    );
    if let Ok(counted) = counted {
        expect_eq("forks", mean(&counted, "sched:sched_process_fork")?, 5.0)?;
    }
    let threads = test.workload("many_threads").display().to_string();
    let counted = stat(test, &["-e", "task-clock"], &[&threads, "300", "4"])?;
    let used = mean(&counted, "user time")? + mean(&counted, "system time")?;
    let clock = mean(&counted, "task-clock")? / 1e9;
    expect_measured(
        (clock - used).abs() <= 0.2 * used + 0.01,
        format_args!("task-clock {clock} s beside {used} s of the kernel's account"),
    )
}

fn plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let finished =
        test.nyquist(&["stat", "sh", "-c", "sleep 0.02; sleep 0.02"]).by_plain_user().run()?.succeeded()?;
    expect_contains("stderr", &finished.stderr, "page-faults:u")?;
    let explained = finished.stderr.matches("`:u` counts user code alone").count();
    expect_eq("times that `:u` is explained", explained, 1)?;
    let switches = finished.stderr.lines().find(|line| line.contains("context-switches")).unwrap_or_default();
    let count = switches.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
    expect(count.is_some_and(|count| count >= 2), format_args!("switches of two sleeps: `{switches}`"))
}

fn refused(test: &Context<'_>) -> Verdict {
    let deny = test.workload("deny_perf").display().to_string();
    let finished = test.nyquist(&["stat", "true"]).under(&[&deny]).run()?.succeeded()?;
    for part in ["wall time", "user time", "page-faults", "perf_event_open is refused"] {
        expect_contains("stderr", &finished.stderr, part)?;
    }
    expect_eq("times that this is said", finished.stderr.matches("refused").count(), 1)
}

fn transparent(test: &Context<'_>) -> Verdict {
    for (script, status) in [("echo out; exit 7", 7), ("echo out; kill -TERM $$", 143), ("echo out", 0)] {
        let finished = test.nyquist(&["stat", "sh", "-c", script]).run()?;
        expect_eq("the status", finished.code(), status)?;
        expect_eq("stdout", finished.stdout_text(), "out\n".to_owned())?;
        expect_contains("stderr", &finished.stderr, "wall time")?;
    }
    let finished = test.nyquist(&["stat", "/no/such/program"]).run()?;
    expect_eq("the status", finished.code(), 127)?;
    let json = test.nyquist(&["stat", "--json", "true"]).run()?.succeeded()?;
    let json: Value = serde_json::from_str(&json.stdout_text()).map_err(anyhow::Error::from)?;
    expect_eq("the runs", json["runs"].as_u64(), Some(1))
}

fn failed_run(test: &Context<'_>) -> Verdict {
    let finished = test.nyquist(&["stat", "-r", "3", "sh", "-c", "echo x; exit 3"]).run()?;
    expect_eq("the status", finished.code(), 3)?;
    expect_eq("the runs", finished.stdout_text(), "x\n".to_owned())?;
    expect_contains(
        "stderr",
        &finished.stderr,
        "failed with 3: 2 runs left out (-i continues in spite of a failure)",
    )?;
    let finished = test.nyquist(&["stat", "-i", "-r", "3", "sh", "-c", "echo x; exit 3"]).run()?;
    expect_eq("the runs", finished.stdout_text(), "x\nx\nx\n".to_owned())
}

fn runs(test: &Context<'_>) -> Verdict {
    let counted = stat(test, &["-r", "4"], &["sleep", "0.05"])?;
    expect_eq("the runs", counted["runs"].as_u64(), Some(4))?;
    let wall = counted["events"].as_array().into_iter().flatten().find(|row| row["event"] == "wall time");
    let wall = wall.cloned().unwrap_or_default();
    expect_eq("the values", wall["values"].as_array().map(Vec::len), Some(4))?;
    expect(wall["mean"].as_f64().is_some_and(|mean| mean >= 0.05), format_args!("{wall}"))?;
    expect(wall["deviation"].as_f64().is_some(), format_args!("{wall}"))?;
    let table = test.nyquist(&["stat", "-r", "3", "true"]).run()?.succeeded()?;
    for part in ["true (3 runs):", "± %", "wall time"] {
        expect_contains("the table", &table.stderr, part)?;
    }
    Ok(())
}

fn compared(test: &Context<'_>) -> Verdict {
    let output = test.fresh("stat.json");
    let call = test.nyquist(&["stat", "-r", "4", "--json", "-o"]).path(&output);
    call.args(&["sleep", "0.1", "--vs", "sleep", "0.05"]).run()?.succeeded()?;
    let json: Value = serde_json::from_slice(&std::fs::read(&output).map_err(anyhow::Error::from)?)
        .map_err(anyhow::Error::from)?;
    let changes = json["changes"].as_array().into_iter().flatten();
    let wall = changes.into_iter().find(|change| change["event"] == "wall time").cloned().unwrap_or_default();
    let relative = wall["relative"].as_f64().unwrap_or(0.0);
    expect_measured(
        wall["is_significant"] == true && (relative + 0.5).abs() < 0.15,
        format_args!("half the sleep: {wall}"),
    )?;
    let table = test.nyquist(&["stat", "-r", "2", "true", "--vs", "true"]).run()?.succeeded()?;
    for part in ["before: true (2 runs)", "CHANGE", "Welch's t"] {
        expect_contains("the table", &table.stderr, part)?;
    }
    let refused = test.nyquist(&["stat", "true", "--vs"]).run()?;
    expect_eq("the status", refused.code(), 2)
}

fn intervals(test: &Context<'_>) -> Verdict {
    let work = test.workload("parts").display().to_string();
    let call = test.nyquist(&["stat", "-I", "50", "--json", "-e", "task-clock", &work, "100", "150", "100"]);
    let output = call.run()?.succeeded()?.stdout_text();
    let lines: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let Some((whole, intervals)) = lines.split_last() else {
        return Err(anyhow::anyhow!("no JSON: {output}").into());
    };
    expect(intervals.len() >= 3, format_args!("{} intervals: {output}", intervals.len()))?;
    let sum: f64 = intervals.iter().filter_map(|line| line["events"][0]["value"].as_f64()).sum();
    let whole = mean(whole, "task-clock")?;
    expect((sum - whole).abs() <= 0.01 * whole + 1e6, format_args!("the sum {sum} of {whole}"))?;
    let call = test.nyquist(&["stat", "-r", "2", "-I", "50", "--json", "-e", "task-clock", &work, "60"]);
    let output = call.run()?.succeeded()?.stdout_text();
    let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut runs: Vec<u64> = lines.filter_map(|line| line["run"].as_u64()).collect();
    runs.dedup();
    expect_eq("the runs of the intervals", runs, vec![1, 2])
}

fn attached(test: &Context<'_>) -> Verdict {
    let threads = test.program(test.workload("many_threads")).args(&["60000", "3"]).start()?;
    let pid = threads.pid().to_string();
    let task = format!("/proc/{pid}/task");
    threads.wait_until("three threads more", || std::fs::read_dir(&task).is_ok_and(|it| it.count() >= 4))?;
    let counted = stat(test, &["-p", &pid, "--per-thread", "-e", "task-clock"], &["sleep", "0.2"])?;
    let rows: Vec<_> = counted["events"].as_array().into_iter().flatten().cloned().collect();
    let tids = rows.iter().filter(|row| row["thread"]["tid"].is_u64()).count();
    expect(tids >= 4, format_args!("{tids} threads: {counted}"))?;
    let whole = stat(test, &["-p", &pid, "-e", "task-clock"], &["sleep", "0.2"])?;
    expect(mean(&whole, "task-clock")? > 0.0, "nothing was counted")?;
    let stopped = test.nyquist(&["stat", "-p", &pid, "-d", "0.1"]).run()?;
    expect_eq("the status", stopped.code(), 0)
}

/// What a thread of `counted_threads` prints: its name, its id, and the kernel's count of its page faults.
type Said = (String, u64, f64);

fn printed(output: &str) -> Vec<Said> {
    let thread = |line: &str| {
        let mut args = line.split(' ');
        Some((args.next()?.to_owned(), args.next()?.parse().ok()?, args.next()?.parse().ok()?))
    };
    output.lines().filter_map(thread).collect()
}

/// The count for a thread with this name in the JSON, and the thread's id.
fn of_thread(json: &Value, name: &str, event: &str) -> Result<(f64, u64), anyhow::Error> {
    let rows = json["events"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["event"] == event && row["thread"]["name"] == name);
    let count = row.and_then(|row| Some((row["mean"].as_f64()?, row["thread"]["tid"].as_u64()?)));
    count.ok_or_else(|| anyhow::anyhow!("no count of {event} of {name} in {json}"))
}

/// Compares the counts of a run with what the threads print.
fn expect_threads_counted(finished: &Finished, events: [&str; 2]) -> Verdict {
    let printed = printed(&finished.stdout_text());
    let json = finished.stdout_text();
    let json = json.find('{').map_or("", |begin| &json[begin..]);
    let json: Value = serde_json::from_str(json).map_err(anyhow::Error::from)?;
    expect_eq("the threads that said something", printed.len(), 3)?;
    for (name, tid, faults) in printed {
        let (counted, counted_tid) = of_thread(&json, &name, events[1])?;
        expect_eq("the number of the thread", counted_tid, tid)?;
        // The end of a thread touches at most one more page.
        expect((counted - faults).abs() <= 3.0, format_args!("{name}: {counted} faults of {faults}"))?;
        let number = name.strip_prefix("worker-").and_then(|number| number.parse::<f64>().ok());
        let (clock, expected) =
            (of_thread(&json, &name, events[0])?.0 / 1e6, number.unwrap_or_default() * 20.0);
        expect_measured(
            clock >= expected - 1.0 && clock <= expected + 10.0,
            format_args!("{name}: {clock} ms of {expected}"),
        )?;
    }
    // The child that calls exec also counts as a thread.
    expect(of_thread(&json, "true", events[1])?.0 > 10.0, "the child has touched no page")
}

/// A call that runs the three threads, which do not have to wait.
fn counted_threads<'a>(test: &'a Context<'_>, options: &[&str]) -> Result<Invocation<'a>, anyhow::Error> {
    let go = test.path("begin");
    std::fs::write(&go, "")?;
    let call =
        test.nyquist(&["stat", "--json", "--per-thread", "-e", "task-clock,page-faults"]).args(options);
    Ok(call.path(&test.workload("counted_threads")).path(&go))
}

fn threads_of_command(test: &Context<'_>) -> Verdict {
    super::expect::need_root()?;
    let finished = counted_threads(test, &[])?.run()?.succeeded()?;
    expect_threads_counted(&finished, ["task-clock", "page-faults"])?;
    // perf counts only the threads of a process that runs already.
    let go = test.fresh("go-later");
    let threads = test.program(test.workload("counted_threads")).path(&go).start()?;
    let pid = threads.pid().to_string();
    let task = format!("/proc/{pid}/task");
    threads.wait_until("three threads more", || std::fs::read_dir(&task).is_ok_and(|it| it.count() >= 4))?;
    let script =
        format!("touch {}; while [ -e /proc/{pid}/task/{pid}/exe ]; do sleep 0.01; done", go.display());
    let output = test.fresh("perf.csv");
    let perf =
        test.program("perf").args(&["stat", "-x,", "--per-thread", "-e", "page-faults", "-p", &pid, "-o"]);
    if let Err(error) = perf.path(&output).args(&["--", "sh", "-c", &script]).run() {
        return skip(format_args!("there is no perf here: {error}"));
    }
    let printed = printed(&threads.wait()?.stdout_text());
    let text = std::fs::read_to_string(&output).unwrap_or_default();
    for (name, tid, faults) in printed {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}-{tid},"))).unwrap_or_default();
        let by_perf = line.split(',').nth(1).and_then(|count| count.parse::<f64>().ok());
        // The thread had begun before perf attached to it.
        let agrees = by_perf.is_some_and(|by_perf| (by_perf - faults).abs() <= 15.0);
        expect(agrees, format_args!("{name} by perf: `{line}` beside {faults} in {text}"))?;
    }
    Ok(())
}

fn threads_for_plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let finished = counted_threads(test, &[])?.by_plain_user().run()?.succeeded()?;
    expect_threads_counted(&finished, ["task-clock:u", "page-faults:u"])?;
    let switches = test.nyquist(&["stat", "--per-thread", "sh", "-c", "sleep 0.01; sleep 0.01"]);
    let switches = switches.by_plain_user().run()?.succeeded()?;
    let lines = switches.stderr.lines().filter(|line| line.contains("context-switches"));
    let of_threads = lines.filter(|line| line.contains("by the kernel's account of the thread")).count();
    expect(of_threads >= 2, format_args!("switches of each thread: {}", switches.stderr))
}

fn threads_where_refused(test: &Context<'_>) -> Verdict {
    let deny = test.workload("deny_perf").display().to_string();
    let finished = counted_threads(test, &[])?.under(&[&deny]).run()?.succeeded()?;
    expect_threads_counted(&finished, ["task-clock", "page-faults"])
}

fn threads_across_exec(test: &Context<'_>) -> Verdict {
    let script = "exec sleep 0.01";
    let counted = stat(
        test,
        &["--per-thread", "-e", "task-clock"],
        &[&test.workload("thread_exec").display().to_string(), "50", "/bin/sh", "-c", script],
    )?;
    let rows: Vec<_> = counted["events"].as_array().into_iter().flatten().cloned().collect();
    let threads: Vec<_> = rows.iter().filter(|row| row["thread"].is_object()).collect();
    expect_eq("the threads, of which one has taken the other's number", threads.len(), 2)?;
    let (clock, _) = of_thread(&counted, "sleep", "task-clock")?;
    expect_measured(clock >= 45e6, format_args!("{clock} ns of the thread that has called exec"))
}

/// Processes that are stopped, continued or killed behave as without a tracer.
fn threads_controlled(test: &Context<'_>) -> Verdict {
    let scripts = [
        ("(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo went on; exit 7", 7, "went on\n"),
        ("sleep 60 & kill -9 $!; wait $!; echo $?", 0, "137\n"),
        ("sleep 60 & kill -STOP $!; kill $!; kill -CONT $!; wait $!; echo $?", 0, "143\n"),
        ("trap 'echo trapped' USR1; kill -USR1 $$", 0, "trapped\n"),
    ];
    for (script, status, printed) in scripts {
        let finished = test.nyquist(&["stat", "--per-thread", "sh", "-c", script]).run()?;
        expect_eq(script, (finished.code(), finished.stdout_text()), (status, printed.to_owned()))?;
    }
    // A process that outlives the command or the time limit is counted until then, and then released.
    let outlived = format!("sleep 60 & {IS_ASLEEP}");
    for options in [&["sh", "-c", &outlived][..], &["-d", "0.2", "sleep", "60"]] {
        let finished = test.nyquist(&["stat", "--per-thread", "-e", "page-faults"]).args(options).run()?;
        expect_eq("the status", finished.code(), 0)?;
        expect_contains("the threads", &finished.stderr, "sleep (")?;
    }
    Ok(())
}

fn threads_too_many(test: &Context<'_>) -> Verdict {
    let script =
        format!("for i in $(seq 40); do sleep 60 & {IS_ASLEEP}; all=\"$all $!\"; done; kill $all; wait");
    let call =
        test.nyquist(&["stat", "--per-thread", "-e", "task-clock,page-faults,cs", "sh", "-c", &script]);
    let finished = call.under(&["sh", "-c", "ulimit -n 60; exec \"$@\"", "sh"]).run()?.succeeded()?;
    let counted = finished.stderr.matches("\nsleep (").count();
    let not_counted = finished.stderr.lines().find_map(|line| {
        line.strip_prefix("warning: ")?
            .strip_suffix(" further threads could not be counted, because there were too many")
    });
    let not_counted = not_counted.and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
    expect(counted > 0 && not_counted > 0, format_args!("{counted} of 40 are counted: {}", finished.stderr))?;
    // `seq` is counted as a thread, too.
    expect((40..=41).contains(&(counted + not_counted)), format_args!("{counted} and {not_counted} of 40"))
}

fn probes_by_thread(test: &Context<'_>) -> Verdict {
    super::expect::need_root()?;
    if !std::path::Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        return skip("this kernel has no uprobes");
    }
    let threads = test.workload("threads").display().to_string();
    let burn = format!("{threads}:thread_burn");
    let script = format!("{threads} 10; {threads} 10");
    let counted = stat(test, &["--per-thread", "-e", &burn], &["sh", "-c", &script])?;
    let rows: Vec<_> = counted["events"].as_array().into_iter().flatten().cloned().collect();
    let of_threads = rows.iter().filter(|row| row["thread"].is_object());
    let calls: Vec<_> = of_threads.filter_map(|row| row["mean"].as_f64()).collect();
    // The shell and the main threads never call the function.
    expect_eq("the calls in all threads", calls.iter().sum::<f64>(), 6.0)?;
    expect_eq("the threads that have called it", calls.iter().filter(|calls| **calls > 0.0).count(), 6)
}

fn probes(test: &Context<'_>) -> Verdict {
    super::expect::need_root()?;
    if !std::path::Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        return skip("this kernel has no uprobes");
    }
    let threads = test.workload("threads").display().to_string();
    let (main, burn) = (format!("{threads}:main"), format!("{threads}:thread_burn"));
    let events = format!("{main},{burn},{burn}%return");
    // The command creates children. Their calls and those of threads count, too.
    let script = format!("{threads} 10; {threads} 10");
    let counted = stat(test, &["-e", &events], &["sh", "-c", &script])?;
    expect_eq("calls of main", mean(&counted, &main)?, 2.0)?;
    expect_eq("calls in threads", mean(&counted, &burn)?, 6.0)?;
    expect_eq("returns", mean(&counted, &format!("{burn}%return"))?, 6.0)?;
    // A member of a C++ template is found by the last part of its name. Overloads are reported.
    let names = test.workload("names").display().to_string();
    let member = format!("{names}:sort_items");
    let counted = stat(test, &["-e", &member], &[&names, "10"])?;
    expect_eq("calls of the member", mean(&counted, &member)?, 1.0)?;
    let finished = test.nyquist(&["stat", "-e", &format!("{names}:price"), &names, "10"]).run()?;
    expect_eq("the status", finished.code(), 2)?;
    for part in ["has several functions `price`: ", "`shop::price(int, long)` (_ZN4shop5priceEil)"] {
        expect_contains("stderr", &finished.stderr, part)?;
    }
    Ok(())
}

fn wrong_event(test: &Context<'_>) -> Verdict {
    let finished = test.nyquist(&["stat", "-e", "cs,page-fautls:u", "true"]).run()?;
    expect_eq("the status", finished.code(), 2)?;
    for part in ["event `page-fautls`", "         ^^^", "similar: page-faults"] {
        expect_contains("stderr", &finished.stderr, part)?;
    }
    let finished = test.nyquist(&["list", "cyclse"]).run()?;
    expect_contains("stderr", &finished.stderr, "cycles")?;
    let list = test.nyquist(&["list"]).run()?.succeeded()?.stdout_text();
    for part in ["task-clock", "page-faults, faults", "Hardware"] {
        expect_contains("the list", &list, part)?;
    }
    let json = test.nyquist(&["list", "--json", "software"]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&json).map_err(anyhow::Error::from)?;
    let events = json["events"].as_array().map_or(0, Vec::len);
    expect(events >= 10, format_args!("{events} events: {json}"))
}

fn narrow(test: &Context<'_>) -> Verdict {
    for width in [40, 80] {
        let script = format!("stty cols {width}; exec {} stat -r 2 true", test.nyquist_path().display());
        let call = test.program("sh").args(&["-c", &script]).on_terminal();
        let shown = call.run()?.stderr;
        let lines: Vec<&str> = shown.lines().filter(|line| !line.contains("Not on this")).collect();
        let widest = lines.iter().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        expect(lines.iter().any(|line| line.contains("task-clock")), format_args!("{width}: {shown}"))?;
        expect(widest <= width, format_args!("{widest} columns of {width}: {shown}"))?;
    }
    Ok(())
}
