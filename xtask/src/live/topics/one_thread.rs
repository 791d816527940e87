//! Recording, counting and watching one thread of a running process (`-t`).

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::invocation::{Invocation, Running};
use super::profile::{Profile, Thread};
use super::running_targets::{WORK, end, is_alive, working};
use super::targets::expect_refused;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("roots_recording_of_a_thread_is_of_it_alone", |test| alone(test, |call| call)).in_pairs(SHARES),
    Test::new("a_plain_users_thread_is_recorded_alone", |test| alone(test, Invocation::by_plain_user))
        .in_pairs(SHARES),
    Test::new("what_a_recorded_thread_starts_is_not_recorded", starts_others).in_pairs(SHARES),
    Test::new("the_recording_of_a_thread_ends_with_it", ends_first),
    Test::new("a_command_says_how_long_a_thread_is_recorded", beside_command),
    Test::new("a_recorded_threads_waits_are_recorded", waits),
    Test::new("a_thread_not_to_be_recorded_is_a_sentence", refusals),
    Test::new("a_thread_is_counted_alone", |test| counted(test, |call| call)).in_pairs(SHARES),
    Test::new("a_plain_users_thread_is_counted_alone", |test| counted(test, Invocation::by_plain_user))
        .in_pairs(SHARES),
    Test::new("what_a_counted_thread_starts_is_not_counted", starts_uncounted).in_pairs(SHARES),
    Test::new("counting_and_watching_end_with_the_thread", others_end_first),
    Test::new("a_thread_is_watched_alone", watched),
];

/// The number of the thread of a process that has this name.
fn thread_named(pid: u32, name: &str) -> Result<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?.flatten().map(|entry| entry.path());
    let has_name = |task: &std::path::PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|text| text.trim() == name)
    };
    let task = threads.into_iter().find(has_name).with_context(|| format!("no thread is named {name}"))?;
    Ok(task.file_name().unwrap_or_default().to_string_lossy().parse()?)
}

/// Waits until a process has a thread of this name, and returns its number.
fn wait_for_thread(target: &Running<'_>, name: &str) -> Result<u32> {
    target.wait_until("the thread", || thread_named(target.pid(), name).is_ok())?;
    thread_named(target.pid(), name)
}

/// The CPU time of a thread, from the scheduler's sum, in milliseconds.
fn thread_cpu_ms(tid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat"))?;
    Ok(text.split(' ').next().unwrap_or_default().parse::<f64>()? / 1e6)
}

/// Records a thread until it has worked for [`WORK`]. Returns the profile, and its maximum CPU time.
fn record_working<'a>(
    test: &'a Context<'a>,
    tid: u32,
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> Result<(Profile, f64), Stop> {
    let output = test.fresh("profile.json.gz");
    let before = thread_cpu_ms(tid)?;
    let call = test.nyquist(&["record", "-s", "-t", &tid.to_string(), "-o"]).path(&output);
    let recorder = adapt(call).start()?;
    recorder.wait_until_recording()?;
    let begun = thread_cpu_ms(tid)?;
    recorder.wait_until("the thread to work", || thread_cpu_ms(tid).is_ok_and(|now| now - begun > WORK))?;
    recorder.signal(libc::SIGINT)?;
    let printed = recorder.wait()?.succeeded()?.stderr;
    let is_unique = !printed.contains("less than a sampling interval");
    expect(is_unique, format_args!("processes are missed in a recording of one thread: {printed}"))?;
    Ok((Profile::read(&output)?, thread_cpu_ms(tid)? - before))
}

/// Checks that one thread has all samples, in this function.
fn expect_only(profile: &Profile, tid: u32, function: &str) -> Verdict {
    let sampled: Vec<&Thread> = profile.threads.iter().filter(|thread| thread.total() > 0.0).collect();
    let tids: Vec<&str> = sampled.iter().map(|thread| thread.tid.as_str()).collect();
    expect_eq("the threads with samples", tids, vec![tid.to_string().as_str()])?;
    expect(
        profile.share_of_taken(function) > 0.95,
        format_args!("{function} is not all: {:?}", profile.functions()),
    )
}

fn alone<'a>(test: &'a Context<'a>, by: fn(Invocation<'a>) -> Invocation<'a>) -> Verdict {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("endless")).args(&["2"]);
    let target = by(call.env("WORKLOAD_READY", ready.display().to_string())).start()?;
    let helper = wait_for_thread(&target, "helper")?;
    for (tid, function) in [(helper, "helper_loop"), (target.pid(), "main_loop")] {
        let (profile, used) = record_working(test, tid, by)?;
        expect_only(&profile, tid, function)?;
        // The thread works on while the profile is saved.
        expect_measured(
            (WORK * 0.95..used * 1.05).contains(&profile.total()),
            format_args!("{} samples, {used:.0} ms of CPU time", profile.total()),
        )?;
    }
    expect(is_alive(target.pid()), "the process did not survive")?;
    end(target)
}

/// The main thread makes threads that work, and waits for them.
fn starts_others(test: &Context<'_>) -> Verdict {
    let target = working(test, &["churn", "1000000"])?;
    wait_for_thread(&target, "worker")?;
    let output = test.fresh("profile.json.gz");
    let tid = target.pid().to_string();
    test.nyquist(&["record", "-s", "-d", "1", "-t", &tid, "-o"]).path(&output).run()?.succeeded()?;
    let profile = Profile::read(&output)?;
    end(target)?;
    let with_time = profile.threads.iter().filter(|thread| thread.total() > 0.0);
    expect_eq("the threads with time", with_time.map(|it| it.tid.clone()).collect(), vec![tid])?;
    expect(profile.total_share("short_life") == 0.0, "a started thread was recorded")
}

/// A thread has a third of the CPU time of its process, and ends while the others work.
fn ends_first(test: &Context<'_>) -> Verdict {
    let target = working(test, &["threads", "10000"])?;
    let tid = wait_for_thread(&target, "worker-third")?;
    let output = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-t", &tid.to_string(), "-o"]).path(&output);
    call.run()?.succeeded()?;
    expect(is_alive(target.pid()), "the recording ended with the process, and not with the thread")?;
    end(target)?;
    expect_only(&Profile::read(&output)?, tid, "thread_burn")
}

fn beside_command(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let tid = wait_for_thread(&target, "helper")?;
    let output = test.fresh("profile.json.gz");
    let other = test.workload("shares").display().to_string();
    let call = test.nyquist(&["record", "-s", "-t", &tid.to_string(), "-o"]).path(&output);
    let finished = call.args(&["--", "sh", "-c", &format!("{other} 300; exit 7")]).run()?;
    end(target)?;
    expect_eq("the status", finished.code(), 7)?;
    expect_only(&Profile::read(&output)?, tid, "helper_loop")
}

fn waits(test: &Context<'_>) -> Verdict {
    let target = working(test, &["churn", "1000000"])?;
    let output = test.fresh("profile.json.gz");
    let tid = target.pid().to_string();
    let call = test.nyquist(&["record", "-s", "--off-cpu", "-d", "1", "-t", &tid, "-o"]).path(&output);
    call.run()?.succeeded()?;
    end(target)?;
    let report = test.nyquist(&["report", "--waits"]).path(&output).run()?.succeeded()?.stdout_text();
    expect_contains("the waits", &report, "end of a thread")
}

/// Counts a thread while a command runs: the JSON, and what the command printed is not in it.
fn count_thread<'a>(
    test: &'a Context<'a>,
    tid: u32,
    seconds: &str,
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> Result<Value, anyhow::Error> {
    let call = test.nyquist(&["stat", "--json", "-e", "task-clock", "-t", &tid.to_string(), "-d", seconds]);
    Ok(serde_json::from_slice(&adapt(call).run()?.succeeded()?.stdout)?)
}

/// The counted threads, each with its CPU time in milliseconds.
fn counted_threads(json: &Value) -> Vec<(u64, f64)> {
    let rows = json["events"].as_array().into_iter().flatten();
    rows.filter_map(|row| Some((row["thread"]["tid"].as_u64()?, row["mean"].as_f64()?))).collect()
}

fn counted<'a>(test: &'a Context<'a>, by: fn(Invocation<'a>) -> Invocation<'a>) -> Verdict {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("endless")).args(&["2"]);
    let target = by(call.env("WORKLOAD_READY", ready.display().to_string())).start()?;
    let helper = wait_for_thread(&target, "helper")?;
    for tid in [helper, target.pid()] {
        let before = thread_cpu_ms(tid)?;
        let json = count_thread(test, tid, "0.5", by)?;
        let used = thread_cpu_ms(tid)? - before;
        let counted = counted_threads(&json);
        expect_eq("the threads", counted.iter().map(|it| it.0).collect(), vec![u64::from(tid)])?;
        // The other thread works as much: with it, it would be twice as much.
        let ms = counted.iter().map(|it| it.1).sum::<f64>() / 1e6;
        // The kernel's clock goes on while a hypervisor holds the CPU, and what the thread has used does not.
        expect_measured(ms <= used, format_args!("{ms:.1} ms are counted, and {used:.1} were used"))?;
        expect_measured(ms > used * 0.5, format_args!("{ms:.1} ms are counted of {used:.1}"))?;
    }
    expect(is_alive(target.pid()), "the process did not survive")?;
    end(target)
}

/// The main thread makes threads that work, and waits for them.
fn starts_uncounted(test: &Context<'_>) -> Verdict {
    let target = working(test, &["churn", "1000000"])?;
    wait_for_thread(&target, "worker")?;
    let before = thread_cpu_ms(target.pid())?;
    let json = count_thread(test, target.pid(), "0.5", |call| call)?;
    let used = thread_cpu_ms(target.pid())? - before;
    end(target)?;
    let ms = counted_threads(&json).iter().map(|it| it.1).sum::<f64>() / 1e6;
    expect_measured(
        ms <= used,
        format_args!("{ms:.1} ms are counted, and the thread itself has used {used:.1}"),
    )
}

/// A thread ends while the others of its process work.
fn others_end_first(test: &Context<'_>) -> Verdict {
    for args in [&["stat", "-t"][..], &["top", "-b", "-t"]] {
        let target = working(test, &["threads", "10000"])?;
        let tid = wait_for_thread(&target, "worker-third")?;
        test.nyquist(args).args(&[&tid.to_string()]).run()?.succeeded()?;
        expect(is_alive(target.pid()), format_args!("{args:?} ended with the process, and not the thread"))?;
        end(target)?;
    }
    Ok(())
}

fn watched(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let helper = wait_for_thread(&target, "helper")?;
    let args = ["top", "-b", "-n", "1", "--interval", "0.5", "-t"];
    let table = test.nyquist(&args).args(&[&helper.to_string()]).run()?.succeeded()?.stdout_text();
    end(target)?;
    expect_contains("the heading", &table, &format!("helper ({helper})"))?;
    expect_contains("the table", &table, "helper_loop")?;
    expect(!table.contains("main_loop"), format_args!("another thread is watched: {table}"))
}

fn refusals(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let helper = wait_for_thread(&target, "helper")?.to_string();
    let child = test.program("true").start()?;
    let ended = child.pid().to_string();
    child.wait()?;
    let refused = |args: &[&str], says: &[&str]| expect_refused(test, test.nyquist(args), says);
    refused(&["record", "-t", &ended], &[&format!("there is no thread {ended}"), "hint: `ps -eL`"])?;
    refused(&["record", "-p", &helper], &[&format!("-t {helper} takes that thread alone")])?;
    for args in [["stat", "-t"], ["top", "-t"], ["stat", "-p"], ["top", "-p"]] {
        let (number, says) = match args[1] {
            "-t" => (&ended, format!("there is no thread {ended}")),
            _ => (&helper, format!("-t {helper} takes that thread alone")),
        };
        let finished = test.nyquist(&args).args(&[number]).run()?;
        expect(finished.code() != 0, format_args!("{args:?} {number} was not refused"))?;
        expect_contains("the refusal", &finished.stderr, &says)?;
        expect_contains("the refusal", &finished.stderr, "\nhint: ")?;
    }
    refused(&["record", "--backend", "ptrace", "-t", &helper], &["a single thread", "-p"])?;
    need_root()?;
    let call = test.nyquist(&["record", "-t", &helper]).by_plain_user();
    expect_refused(test, call, &["it is another user's", &target.pid().to_string()])?;
    end(target)
}
