//! Options of `nyquist record` for the threads of a profile, their names, and the runs of a command. samply
//! has the same options.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, expect_within, skip};
use super::invocation::Invocation;
use super::markers::{Marker, markers};
use super::profile::{Profile, Thread};
use super::recorded::Recorded;
use super::rules;
use super::stacks::is_truncated;
use super::test::{SHARES, Test};

/// Why some of these tests run alone.
const BRIEF: &str = "records for a second, in which the program must get a CPU";

pub(super) const TESTS: &[Test] = &[
    Test::new("several_runs_are_in_one_profile", iterations).in_pairs(SHARES),
    Test::new("a_failing_run_ends_the_runs_unless_ignored", failing_runs),
    Test::new("processes_of_one_name_are_merged", reuse).in_pairs(SHARES),
    Test::new("arguments_are_in_the_names_of_processes", arguments),
    Test::new("only_main_threads_are_kept", main_threads).exclusive(BRIEF),
    Test::new("each_cpu_has_a_thread", cpu_threads).exclusive(BRIEF),
    Test::new("each_time_on_a_cpu_is_a_marker", switch_markers).in_pairs(SHARES),
    Test::new("the_first_function_of_a_jitdump_is_a_marker", first_jit_marker),
    Test::new("each_function_made_just_in_time_is_a_marker", jit_markers),
    Test::new("the_base_of_a_cut_recursion_is_folded", folded),
    Test::new("a_jitdump_is_removed_and_read_nonetheless", unlinked).in_pairs(SHARES),
];

/// The number of processes with this name.
fn processes(profile: &Profile, name: &str) -> usize {
    let named = profile.threads.iter().filter(|thread| thread.process == name);
    named.map(|thread| &thread.pid).collect::<BTreeSet<_>>().len()
}

fn iterations(test: &Context<'_>) -> Verdict {
    let recorded =
        test.record(&["ending", "100", "exit", "0"]).options(&["--iteration-count", "3"]).run_well()?;
    expect_eq("processes", processes(&recorded.profile, "ending"), 3)?;
    let cpu: f64 = recorded.truths.iter().map(|truth| truth.cpu).sum();
    if recorded.truths.len() == 3 {
        expect_within("samples of all runs", recorded.profile.total(), cpu * 1000.0, 0.1)?;
    }
    expect_measured(
        recorded.profile.total() > 200.0,
        format_args!("only {} samples", recorded.profile.total()),
    )
}

fn failing_runs(test: &Context<'_>) -> Verdict {
    let count = ["--iteration-count", "3"];
    let stopped = test.record(&["ending", "30", "exit", "7"]).options(&count).run()?;
    expect_eq("the status", stopped.finished.code(), 7)?;
    expect_eq("runs", processes(&stopped.profile, "ending"), 1)?;
    expect_contains("stderr", &stopped.finished.stderr, "2 runs left out")?;
    let all = test.record(&["ending", "30", "exit", "7"]).options(&count).options(&["-i"]).run()?;
    expect_eq("the status", all.finished.code(), 7)?;
    expect_eq("runs that go on", processes(&all.profile, "ending"), 3)
}

fn reuse(test: &Context<'_>) -> Verdict {
    // Without exec, the samples of a child are in a row with its parent's name.
    let script = "import os, time\n\
                  for i in range(4):\n    \
                      child = os.fork()\n    \
                      while child == 0:\n        \
                          if time.thread_time() > 0.05: os._exit(0)\n    \
                      os.waitpid(child, 0)";
    let args = ["python3", "-c", script];
    let apart = test.record_command(&args).run_well()?;
    expect_eq("processes apart", processes(&apart.profile, "python3"), 5)?;
    let merged = test.record_command(&args).options(&["--reuse-threads"]).run_well()?;
    expect_eq("the parent, and its children merged", processes(&merged.profile, "python3"), 2)?;
    let (found, expected) = (merged.profile.total(), apart.profile.total());
    expect_within("samples", found, expected, 0.25)?;
    reuse_with_exec(test)
}

/// The samples of a child before its exec are in a row with its parent's name, from the second child on. The
/// first child's row has the name of the new program.
fn reuse_with_exec(test: &Context<'_>) -> Verdict {
    let program = test.workload("ending").display().to_string();
    let script = "import os, sys, time\n\
                  for i in range(4):\n    \
                      child = os.fork()\n    \
                      while child == 0:\n        \
                          if time.thread_time() > 0.05: os.execv(sys.argv[1], [sys.argv[1], '50', 'exit', '0'])\n    \
                      os.waitpid(child, 0)";
    let args = ["python3", "-c", script, &program];
    let merged = test.record_command(&args).options(&["--reuse-threads"]).run_well()?;
    expect_eq("the other program", processes(&merged.profile, "ending"), 1)?;
    expect_eq("the parent, and its children before", processes(&merged.profile, "python3"), 2)
}

fn arguments(test: &Context<'_>) -> Verdict {
    let names = |option: &str| -> anyhow::Result<Vec<String>> {
        let recorded = test.record(&["ending", "50", "exit", "0"]).options(&[option]).run_well()?;
        Ok(recorded.profile.threads.iter().map(|thread| thread.process.clone()).collect())
    };
    for (option, expected) in [("--include-args=2", "ending 50 exit"), ("--include-args", "ending 50 exit 0")]
    {
        let found = names(option)?;
        expect(
            found.iter().any(|name| name == expected),
            format_args!("{option}: no {expected:?} in {found:?}"),
        )?;
    }
    Ok(())
}

fn main_threads(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["endless", "2"]).options(&["-d", "1", "--main-thread-only"]).run()?;
    let profile = &recorded.profile;
    expect(profile.threads.iter().all(|thread| thread.is_main), "there are other threads")?;
    expect_measured(profile.total_share("main_loop") > 0.9, "the main thread is missing")?;
    expect_eq("the other thread's share", profile.total_share("helper_loop") > 0.0, false)?;
    let stderr = &recorded.finished.stderr;
    let (before, after) = stderr.split_once(" s of CPU time").context("no CPU time")?;
    let seconds: f64 = before.rsplit(' ').next().context("no CPU time")?.parse()?;
    let samples = after.split_once(" sample").context("no samples")?.0.rsplit(' ').next();
    let samples: f64 = samples.context("no samples")?.replace(',', "").parse()?;
    // Both are of the main thread. The helper uses as much CPU time again.
    expect_within("milliseconds of CPU time, and samples", seconds * 1e3, samples, 0.2)
}

fn cpu_threads(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["endless", "2"]).options(&["-d", "1", "--per-cpu-threads"]).run()?;
    let profile = &recorded.profile;
    let (cpus, others): (Vec<&Thread>, Vec<&Thread>) =
        profile.threads.iter().partition(|thread| thread.process == "CPU");
    let sum = |threads: &[&Thread]| threads.iter().map(|thread| thread.total()).sum::<f64>();
    let (all, each): (Vec<&Thread>, Vec<&Thread>) = cpus.iter().partition(|thread| thread.is_main);
    expect(
        !each.is_empty() && each.iter().all(|thread| thread.name.starts_with("CPU ")),
        "no thread for a CPU",
    )?;
    expect_eq("the CPUs together", sum(&all), sum(&each))?;
    let kernel_aside = |thread: &&Thread| {
        thread
            .stacks()
            .filter(|(stack, _)| !stack.is_empty() && !stack[0].function.starts_with('['))
            .map(|(_, weight)| weight)
            .sum::<f64>()
    };
    let sampled: f64 = others.iter().map(kernel_aside).sum();
    expect_within("the CPUs' samples", sum(&each), sampled, 0.01)?;
    let labelled = each
        .iter()
        .flat_map(|thread| thread.stacks())
        .all(|(stack, _)| stack.first().is_some_and(|root| root.function.contains("(process ")));
    expect(labelled, "a CPU's stack does not say whose it is")?;
    // The rows of CPUs show the samples a second time. They are counted once.
    let report = test.nyquist(&["report", "--json"]).path(&recorded.path).run()?.succeeded()?;
    let report: serde_json::Value = serde_json::from_slice(&report.stdout)?;
    let weight = report["weight"].as_f64().context("the report has no weight")?;
    expect_eq("the report's weight", weight, sum(&others))?;
    let seconds = recorded.finished.stderr.split_once(" s of CPU time").context("no CPU time")?.0;
    let seconds: f64 = seconds.rsplit(' ').next().unwrap_or_default().parse().map_err(anyhow::Error::from)?;
    expect_within("the summary's CPU time", seconds * 1000.0, weight, 0.02)?;
    let folded = test.nyquist(&["export", "-f", "folded", "-o", "-"]).path(&recorded.path).run()?;
    let folded = folded.succeeded()?.stdout_text();
    let weights = folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    expect_eq("the exported weight", weights.sum::<f64>(), weight)
}

/// The number of waits is compared with the kernel's count, and the time on CPUs with CPU time. The last stay
/// ends with the thread, after the program has written its truth.
fn switch_markers(test: &Context<'_>) -> Verdict {
    for adapt in [|call| call, Invocation::by_plain_user] {
        let _held = super::permissions::at_paranoid(2)?;
        let options = ["--cswitch-markers", "--per-cpu-threads"];
        let recorded = test.record(&["ticks", "200"]).options(&options).with(adapt).run_well()?;
        let truth = recorded.truth()?;
        let [blocked, _] = truth.switches.context("the program does not count its switches")?;
        let markers = markers(&recorded.profile)?;
        let stays: Vec<_> = markers.iter().filter(|marker| marker.name == "Running on CPU").collect();
        let because = |reason: &str| stays.iter().filter(|marker| marker.data["outwhy"] == *reason).count();
        // The program also waits while it is loaded, which it does not count.
        let (waits, blocked) = (because("blocked") as f64, blocked as f64);
        let near = (waits - blocked).abs() <= 3.0 + 0.01 * blocked;
        expect_measured(near, format_args!("{waits} stays ended in a wait, the program counts {blocked}"))?;
        expect_eq("stays that ended with the thread", because("ended"), 1)?;
        let time: f64 = stays.iter().map(|marker| marker.end - marker.start).sum();
        // At each switch, the scheduler counts some µs for the thread after the events were switched off.
        // There are many switches.
        let threads = recorded.profile.threads.iter().filter(|thread| thread.process != "CPU");
        let counted: f64 = threads.map(Thread::total).sum();
        expect_within("milliseconds on CPUs", time, counted, 0.1)?;
        // Each switch has a marker in the row of all CPUs and one in the row of its CPU.
        let on_cpus = markers.iter().filter(|marker| marker.data["type"] == "ContextSwitch").count();
        expect_eq("markers of CPUs", on_cpus, 2 * stays.len())?;
        let broken = rules::broken(&recorded.profile.json);
        expect(broken.is_empty(), broken.join("; "))?;
    }
    let options = ["--cswitch-markers", "--per-cpu-threads"];
    let args = ["record", "-s", "-o", "traced.json.gz", "--backend", "ptrace"];
    let traced = test.nyquist(&args).args(&options).args(&["true"]).run()?.succeeded()?;
    for option in options {
        expect_contains("stderr", &traced.stderr, &format!("{option} has no effect"))?;
    }
    Ok(())
}

/// Records a program that describes its generated code in a jitdump. It runs in a separate folder.
fn record_dumped(test: &Context<'_>, options: &[&str]) -> anyhow::Result<(Recorded, PathBuf)> {
    let folder = test.fresh("jit");
    std::fs::create_dir_all(&folder)?;
    let program = test.workload("dumped_code").display().to_string();
    let args = ["sh", "-c", "cd \"$0\" && exec \"$@\"", &folder.display().to_string(), &program, "500"];
    Ok((test.record_command(&args).options(options).run_well()?, folder))
}

/// The program makes its one function in its first milliseconds. At that time, the recorder does not know yet
/// that this process is the command.
fn first_jit_marker(test: &Context<'_>) -> Verdict {
    let (recorded, _) = record_dumped(test, &["--jit-markers"])?;
    let markers = markers(&recorded.profile)?;
    let made: Vec<_> = markers.iter().filter(|marker| marker.name == "JitFunctionAdd").collect();
    let names: Vec<_> = made.iter().filter_map(|marker| marker.data["n"].as_str()).collect();
    expect_eq("functions that were made", names, vec!["dumped_code"])?;
    let used = recorded.profile.threads.iter().flat_map(|thread| &thread.samples).map(|sample| sample.time);
    let last = used.fold(0.0, f64::max);
    expect(0.0 < made[0].start && made[0].start < last, format_args!("it was made at {} ms", made[0].start))
}

fn jit_markers(test: &Context<'_>) -> Verdict {
    if test.program("node").args(&["--version"]).run().is_err() {
        return skip("node is not installed");
    }
    let script = crate::paths::root().join("workloads/jit.js").display().to_string();
    let folder = test.path("jit");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.display().to_string();
    let args = ["sh", "-c", "cd \"$0\" && exec node \"$@\"", &folder, "--perf-prof", &script, "500"];
    let recorded = test.record_command(&args).options(&["--jit-markers"]).run_well()?;
    let markers = markers(&recorded.profile)?;
    let mut made = markers.iter().filter(|marker| marker.name == "JitFunctionAdd");
    let is_spin = |marker: &&Marker| marker.data["n"].as_str().is_some_and(|name| name.contains("spin "));
    let spin = made.find(is_spin).context("no marker for spin")?;
    let first = recorded.profile.threads.iter().flat_map(|thread| &thread.samples).map(|sample| sample.time);
    let last = first.fold(0.0, f64::max);
    expect(0.0 < spin.start && spin.start < last, format_args!("spin was made at {} ms", spin.start))
}

fn folded(test: &Context<'_>) -> Verdict {
    // The recursion is far deeper than a copy of the stack.
    let args = ["recursion", "200", "4000"];
    let deepest = |options: &[&str]| -> anyhow::Result<usize> {
        let recorded = test.record(&args).options(options).run_well()?;
        // On its way down and up, the recursion fits into the copy. Only truncated stacks count.
        let cut = recorded.profile.stacks().filter(|(stack, _)| is_truncated(stack));
        let depths = cut.map(|(stack, _)| stack.iter().filter(|frame| frame.function == "descend").count());
        Ok(depths.max().unwrap_or(0))
    };
    let copied = ["--call-graph", "dwarf"];
    let whole = deepest(&copied)?;
    expect((100..4000).contains(&whole), format_args!("{whole} levels are in a copy of the stack"))?;
    let depth = deepest(&[&copied[..], &["--fold-recursive-prefix"]].concat())?;
    expect((1..=2).contains(&depth), format_args!("the recursion is {depth} deep where it is folded"))
}

fn unlinked(test: &Context<'_>) -> Verdict {
    for (options, left) in [(&[][..], 1), (&["--unlink-aux-files"], 0)] {
        let (recorded, folder) = record_dumped(test, options)?;
        let share = recorded.profile.total_share("dumped_code");
        expect_measured(share > 0.5, format_args!("{options:?}: the code has a share of {share:.3}"))?;
        let is_dump = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == "dump");
        let dumps = std::fs::read_dir(&folder)?.flatten().filter(is_dump).count();
        expect_eq(&format!("{options:?}: jitdumps left"), dumps, left)?;
    }
    others_stay(test)
}

/// Text files with markers are read, and not deleted, as with samply on Linux.
fn others_stay(test: &Context<'_>) -> Verdict {
    let folder = test.path("markers");
    std::fs::create_dir_all(&folder)?;
    let program = test.workload("markers").display().to_string();
    let args = ["sh", "-c", "cd \"$0\" && exec \"$1\" samply", &folder.display().to_string(), &program];
    let recorded = test.record_command(&args).options(&["--unlink-aux-files"]).run_well()?;
    let names: Vec<_> = markers(&recorded.profile)?.into_iter().map(|marker| marker.name).collect();
    expect_eq("markers", names, vec!["first step".to_owned(), "second step".to_owned()])?;
    let is_text = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == "txt");
    let left = std::fs::read_dir(&folder)?.flatten().filter(is_text);
    expect_eq("files of markers left", left.count(), 1)
}
