//! `record --alloc`: allocations by function, of a program that knows what it allocates.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::recorded::{Prepared, Recorded};
use super::rules;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("each_allocation_is_counted_by_function", exact).quick(),
    Test::new("sampled_allocations_are_not_biased", sampled),
    Test::new("a_plain_user_records_allocations", plain_user),
    Test::new("a_disturbed_program_allocates_as_alone", disturbed),
    Test::new("a_heading_says_nothing_of_time", headings),
    Test::new("a_musl_program_allocates_as_known", of_musl),
    Test::new("a_wrapped_allocator_is_recorded", wrapped),
    Test::new("a_shell_script_works_as_alone", script),
    Test::new("another_preloaded_allocator_is_used", other_allocator),
    Test::new("losses_and_late_frees_are_counted_apart", losses),
    Test::new("programs_that_end_give_their_space_back", space),
    Test::new("nothing_waits_for_a_recorder_that_has_ended", without_recorder),
];

/// What the workload's functions allocate, if each does it once: bytes in all, live, and at the peak, then temporary
/// blocks.
pub(super) const KNOWN: [(&str, [f64; 4]); 6] = [
    ("keeps", [2e6, 2e6, 2e6, 0.0]),
    ("temps", [3e6, 0.0, 0.0, 10_000.0]),
    ("peaks", [8e6, 0.0, 8e6, 1.0]),
    ("grows", [127_000.0, 0.0, 0.0, 7.0]),
    ("in_thread", [1e6, 0.0, 0.0, 0.0]),
    ("aligns", [1_638_400.0, 0.0, 0.0, 400.0]),
];

const EVENTS: [&str; 4] = ["total", "live", "peak", "temporary"];

/// A report of a recording with an event, as JSON.
fn report(test: &Context<'_>, recorded: &Recorded, event: &str) -> Result<Value> {
    let call = test.nyquist(&["report", "--json", "--limit", "0", "--event", event]).path(&recorded.path);
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The total of a function in a report.
fn total(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"].as_str() == Some(function));
    row.and_then(|row| row["total"].as_f64()).unwrap_or(0.0)
}

/// Checks the sums of each function at each event exactly.
fn expect_exact(test: &Context<'_>, recorded: &Recorded) -> Verdict {
    for (at, event) in EVENTS.into_iter().enumerate() {
        let report = report(test, recorded, event)?;
        for (function, sums) in KNOWN {
            expect_eq(&format!("{event} of {function}"), total(&report, function), sums[at])?;
        }
    }
    let broken = rules::broken(&recorded.profile.json);
    expect(broken.is_empty(), broken.join("; "))
}

fn exact(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["allocates"]).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    expect_contains("what is said", &recorded.finished.stderr, "Recording each allocation by a library")?;
    expect_eq("the program's output", recorded.finished.stdout_text().as_str(), "done\n")?;
    expect_exact(test, &recorded)
}

fn sampled(test: &Context<'_>) -> Verdict {
    const RATE: f64 = 4096.0;
    let options = ["--alloc", "--alloc-rate", "4096"];
    let recorded = test.record(&["allocates", "sums", "16"]).options(&options).run_well()?;
    for (at, event) in EVENTS.into_iter().enumerate().take(3) {
        let report = report(test, &recorded, event)?;
        for (function, sums) in KNOWN {
            let factor = if function == "peaks" { 1.0 } else { 16.0 };
            let (found, truth) = (total(&report, function), sums[at] * factor);
            // At most the standard error of a sum of blocks, each much smaller than the distance of samples.
            let error = (RATE * truth).sqrt();
            expect(
                (found - truth).abs() <= 5.0 * error,
                format_args!("{event} of {function} is {found}, not {truth} ± {error}"),
            )?;
        }
    }
    expect_error(test, &recorded, RATE)
}

/// Each sum is shown with its standard error, in the table and as JSON.
fn expect_error(test: &Context<'_>, recorded: &Recorded, rate: f64) -> Verdict {
    let json = report(test, recorded, "total")?;
    let rows = json["functions"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["function"] == "temps").context("temps is missing")?;
    let total = row["total"].as_f64().context("no total")?;
    let error = (rate * total).sqrt();
    let declared = row["total_error"].as_f64().context("no error")?;
    expect((declared - error).abs() <= 1e-6 * error, format_args!("the error is {declared}, not {error}"))?;
    let table = test.nyquist(&["report", "--event", "total"]).path(&recorded.path).run()?.succeeded()?;
    let share = format!("± {:.1}%", 100.0 * error / total);
    let table = table.stdout_text();
    let line = table.lines().find(|line| line.ends_with(" temps")).context("no line of temps")?;
    expect_contains("the table", line, &share)
}

fn plain_user(test: &Context<'_>) -> Verdict {
    need_root()?;
    let options = ["--alloc", "--alloc-rate", "1"];
    let recorded = test.record(&["allocates"]).options(&options).by_plain_user().run_well()?;
    expect_exact(test, &recorded)
}

/// The program checks what it gets from its allocator, and its children are recorded, too.
fn disturbed(test: &Context<'_>) -> Verdict {
    let options = ["--alloc", "--alloc-rate", "1"];
    let recorded = test.record(&["allocates", "disturbs"]).options(&options).run_well()?;
    expect_eq("the program's output", recorded.finished.stdout_text().as_str(), "undisturbed\n")?;
    let live = report(test, &recorded, "live")?;
    expect_eq("what is kept", total(&live, "keeps"), 2e6)?;
    // Once in the child that was forked, and once in the one that ran the program anew.
    expect_eq("what children keep", total(&live, "in_child"), 600_000.0)?;
    let all = report(test, &recorded, "total")?;
    expect_eq("allocated at the exit", total(&all, "at_exit"), 777.0)?;
    expect_eq("allocated at the end of threads", total(&all, "at_thread_end"), 10_000.0)
}

/// Bytes have no kernel's share, and no CPU time. Only the event's name says what they are.
fn headings(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["allocates"]).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    let picture = test.path("total.svg");
    let call = test.nyquist(&["flamegraph", "--event", "total", "-o"]).path(&picture).path(&recorded.path);
    call.run()?.succeeded()?;
    let drawn = fs::read_to_string(&picture).map_err(anyhow::Error::from)?;
    let ask = |command: &[&str], after: &[&str]| {
        let call = test.nyquist(command).path(&recorded.path).args(after).args(&["--event", "total"]);
        anyhow::Ok(call.run()?.succeeded()?.stdout_text())
    };
    let (report, summary) = (ask(&["report"], &[])?, ask(&["query"], &["summary"])?);
    expect_contains("the report", &report, " MB (total), ")?;
    expect_contains("the picture", &drawn, " MB (total), ")?;
    expect_contains("the summary", &summary, "measure: total")?;
    for (what, text) in [("report", report), ("picture", drawn), ("summary", summary)] {
        let of_time = ["kernel 0", "kernel share", "user 1", "not sampled"];
        let found = of_time.iter().find(|args| text.contains(**args));
        expect(found.is_none(), format_args!("the {what} of bytes says {found:?}: {text}"))?;
    }
    Ok(())
}

fn of_musl(test: &Context<'_>) -> Verdict {
    let program = test.path("allocates-musl");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads/allocates.c");
    let built =
        Command::new("musl-gcc").args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(source).output();
    let Ok(built) = built else { return skip("there is no musl-gcc") };
    expect(built.status.success(), String::from_utf8_lossy(&built.stderr))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(anyhow::Error::from)?;
    let program = program.to_str().context("a path of the test is no text")?;
    let options = ["--alloc", "--alloc-rate", "1"];
    let recorded = test.record_command(&[program]).options(&options).run_well()?;
    let report = report(test, &recorded, "total")?;
    for (function, [sum, ..]) in KNOWN {
        expect_eq(function, total(&report, function), sum)?;
    }
    Ok(())
}

/// A program that wraps its allocator, linked dynamically and statically. It is built without cargo: the crate depends
/// on no other.
fn wrapped(test: &Context<'_>) -> Verdict {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let library = test.path("libnyquist_alloc.rlib").display().to_string();
    let rustc = |arguments: &[&str]| -> Verdict {
        let built = Command::new("rustc").args(["--edition=2021", "-O", "-g"]).args(arguments).output();
        let built = built.map_err(anyhow::Error::from)?;
        expect(built.status.success(), String::from_utf8_lossy(&built.stderr))
    };
    let crate_root = format!("{root}/crates/nyquist-alloc/src/lib.rs");
    rustc(&["--crate-type=rlib", "--crate-name=nyquist_alloc", "-Awarnings", "-o", &library, &crate_root])?;
    let (source, external) =
        (format!("{root}/workloads/wrapped_allocator.rs"), format!("nyquist_alloc={library}"));
    for (name, features) in [("wrapped", "-crt-static"), ("wrapped-static", "+crt-static")] {
        let program = test.path(name).display().to_string();
        let features = format!("-Ctarget-feature={features}");
        rustc(&["--extern", &external, &features, "-o", &program, &source])?;
        let recorded =
            test.record_command(&[&program]).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
        expect_contains("what is said", &recorded.finished.stderr, "by the program's own allocator")?;
        let (live, all) = (report(test, &recorded, "live")?, report(test, &recorded, "total")?);
        for (function, sums) in [("keeps", [1e6, 1e6]), ("frees", [0.0, 1e6])] {
            let rows = [&live, &all].map(|report| total_of(report, function));
            expect_eq(function, rows, sums)?;
        }
    }
    Ok(())
}

/// What many small programs do, one after another and in pipes.
const SCRIPT: &str = "set -e; cd \"$1\"; seq 1 20000 > a; sort -r a | head -5000 | tail -2500 | cut -c1-3 | uniq -c | sort -n | tee b | wc -l
cp a c; mv c e; ln -s e l; tr 1 x < l | md5sum | cut -d' ' -f1; split -l 1000 a p; ls p* | wc -l; cmp a e && echo same
sort a > s; join s s | wc -l; paste a e | sed -n 5p; od -c b | head -2; find . -name 'p*' | xargs cat | wc -c; grep -c 7 a; rm a b e l s p*";

fn script(test: &Context<'_>) -> Verdict {
    let folder = test.fresh("work");
    fs::create_dir_all(&folder).map_err(anyhow::Error::from)?;
    let folder = folder.display().to_string();
    let args = ["sh", "-c", SCRIPT, "sh", &folder];
    let alone = test.program(args[0]).args(&args[1..]).run()?.succeeded()?;
    for rate in ["524288", "1"] {
        let recorded = test.record_command(&args).options(&["--alloc", "--alloc-rate", rate]).run()?;
        expect_eq("the status", recorded.finished.code(), 0)?;
        expect_eq("the script's output", recorded.finished.stdout_text(), alone.stdout_text())?;
    }
    Ok(())
}

/// The library is before those that the user preloads, and calls their allocator.
fn other_allocator(test: &Context<'_>) -> Verdict {
    const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    if !Path::new(JEMALLOC).exists() {
        return skip("there is no libjemalloc");
    }
    let preload = format!("LD_PRELOAD={JEMALLOC}");
    let program = test.workload("allocates").display().to_string();
    let recorded =
        test.record_command(&[&preload, &program]).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    let report = report(test, &recorded, "total")?;
    for (function, [sum, ..]) in KNOWN {
        expect_eq(function, total(&report, function), sum)?;
    }
    let is_mapped = recorded.profile.lib("libjemalloc.so.2").is_ok();
    expect(is_mapped, "the program did not use the other allocator")
}

/// Allocates 40,000 blocks of 1,000 bytes in `holds`, and frees them, when it is told to. One more stays.
const HOLDS: &str = "#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
enum { COUNT = 40000 };
static char *blocks[COUNT];
__attribute__((noinline)) void holds(void) {
    for (int i = 0; i < COUNT; i++) { blocks[i] = malloc(1000); *(volatile char *)blocks[i] = 1; }
}
static void waits(const char *file) { while (access(file, F_OK)) usleep(1000); }
int main(int count, char **files) {
    char *volatile stays = malloc(5000);
    close(creat(files[1], 0644));
    waits(files[2]);
    holds();
    for (int i = 0; i < COUNT; i++) free(blocks[i]);
    close(creat(files[3], 0644));
    waits(files[4]);
    return stays == 0 || count != 5;
}
";

/// The number before a word of a sentence, without the commas of its thousands.
fn number_before(text: &str, word: &str) -> Option<f64> {
    text.split(word).next()?.trim_end().rsplit([' ', ':']).next()?.replace(',', "").parse().ok()
}

/// While nothing reads, the ring gets full: first allocations are lost, then the frees of those that were recorded. A
/// block whose free was lost is not live.
fn losses(test: &Context<'_>) -> Verdict {
    let (source, program) = (test.fresh("holds.c"), test.path("holds"));
    fs::write(&source, HOLDS)?;
    let built = Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&program).arg(&source).output();
    expect(built.is_ok_and(|built| built.status.success()), "gcc failed")?;
    let [ready, begin, done, end] = ["ready", "begin", "done", "end"].map(|name| test.fresh(name));
    let files = [&program, &ready, &begin, &done, &end].map(|file| file.display().to_string());
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    // At this distance, each block of this size is sampled.
    let Prepared { call, profile, truth } =
        test.record_command(&words).options(&["--alloc", "--alloc-rate", "2"]).prepare();
    let recorder = call.start()?;
    recorder.wait_for_file(&ready)?;
    recorder.wait_until_recording()?;
    recorder.signal(libc::SIGSTOP)?;
    fs::write(&begin, "")?;
    let was_done = recorder.wait_for_file(&done);
    recorder.signal(libc::SIGCONT)?;
    was_done?;
    fs::write(&end, "")?;
    let recorded = Recorded::read(recorder.wait()?.succeeded()?, &profile, &truth)?;
    let stderr = &recorded.finished.stderr;
    let lost = number_before(stderr, " sampled allocations, because").context("no losses are said")?;
    let late = number_before(stderr, " frees; these blocks").context("no late frees are said")?;
    let allocated = total(&report(test, &recorded, "allocations")?, "holds");
    expect_eq("allocations that were recorded, and those that were lost", allocated + lost, 40_000.0)?;
    expect(
        allocated > 10_000.0 && lost > 10_000.0,
        format_args!("{allocated} were recorded, {lost} were lost"),
    )?;
    // A record of a free is shorter, so a few still fit.
    expect(
        (allocated - 3.0..=allocated).contains(&late),
        format_args!("{late} of {allocated} frees were late"),
    )?;
    let live = report(test, &recorded, "live")?;
    expect_eq("what is live of it", total(&live, "holds"), 0.0)?;
    expect_eq("what is live", total(&live, "main"), 5000.0)
}

/// Runs a program 20 times, and waits until few files of their records are left.
const MANY_RUNS: &str = "set -e; i=0; while [ $i -lt 20 ]; do \"$1\" > \"$2\"; i=$((i+1)); done
i=0; while [ $(ls \"$NYQUIST_ALLOC_DIR\" | wc -l) -gt 5 ]; do i=$((i+1)); [ $i -lt 200 ] || exit 3; sleep 0.1; done";

fn space(test: &Context<'_>) -> Verdict {
    let (program, printed) = (test.workload("allocates").display().to_string(), test.fresh("printed"));
    let words = ["sh", "-c", MANY_RUNS, "sh", &program, &printed.display().to_string()];
    let recorded = test.record_command(&words).options(&["--alloc", "--alloc-rate", "1"]).run()?;
    expect_eq("the status", recorded.finished.code(), 0)?;
    let (live, all) = (report(test, &recorded, "live")?, report(test, &recorded, "total")?);
    for (function, [sum, left, ..]) in KNOWN {
        let found = [&all, &live].map(|report| total(report, function));
        expect_eq(function, found, [20.0 * sum, 20.0 * left])?;
    }
    Ok(())
}

/// Allocates until there is a file, and then writes the milliseconds of the longest pause into another. It ignores
/// SIGTERM.
const NEVER_PAUSES: &str = "#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}
int main(int count, char **files) {
    if (count != 4) return 2;
    signal(SIGTERM, SIG_IGN);
    long last = now(), longest = 0;
    fclose(fopen(files[1], \"w\"));
    while (access(files[2], F_OK)) {
        for (int i = 0; i < 100; i++) { char *volatile block = malloc(100); free(block); }
        long time = now();
        if (time - last > longest) longest = time - last;
        last = time;
    }
    FILE *file = fopen(files[3], \"w\");
    fprintf(file, \"%ld.\", longest);
    return fclose(file);
}
";

/// Without a word of its end, a program takes the recorder to be gone after ten seconds.
fn without_recorder(test: &Context<'_>) -> Verdict {
    let (source, program) = (test.fresh("never_pauses.c"), test.path("never_pauses"));
    fs::write(&source, NEVER_PAUSES)?;
    let built = Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&program).arg(&source).output();
    expect(built.is_ok_and(|built| built.status.success()), "gcc failed")?;
    let [ready, end, longest] = ["ready", "end", "longest"].map(|name| test.fresh(name));
    let to = test.path("profiles").display().to_string();
    let call = test.nyquist(&["agent", "--alloc", "--alloc-rate", "1", "--every", "1", "--to", &to, "--"]);
    let agent = call.path(&program).path(&ready).path(&end).path(&longest).start()?;
    agent.wait_for_file(&ready)?;
    agent.wait_until("a profile", || Path::new(&to).exists())?;
    agent.signal(libc::SIGTERM)?;
    let ended = agent.wait()?;
    expect_eq("the status", ended.code(), 143)?;
    // The subject is a pause: in this time, the program fills its ring many times.
    std::thread::sleep(std::time::Duration::from_secs(2));
    fs::write(&end, "")?;
    let until_written = "until grep -qF . \"$1\" 2> /dev/null; do sleep 0.02; done; cat \"$1\"";
    let printed = test.program("sh").args(&["-c", until_written, "sh"]).path(&longest).run()?.stdout_text();
    let pause: u64 = printed.trim_end_matches('.').parse().context("the program writes no number")?;
    expect(pause < 6000, format_args!("the program paused for {pause} ms"))
}

/// The total of a function of Rust's, whose name has its crate before it.
fn total_of(report: &Value, function: &str) -> f64 {
    let rows = report["functions"].as_array().into_iter().flatten();
    let row = rows
        .into_iter()
        .find(|row| row["function"].as_str().is_some_and(|it| it.ends_with(&format!("::{function}"))));
    row.and_then(|row| row["total"].as_f64()).unwrap_or(0.0)
}
