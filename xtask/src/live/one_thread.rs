//! Recording one thread of a running process (`record -t`).

use std::fs;

use anyhow::{Context as _, Result};

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
    let said = recorder.wait()?.succeeded()?.stderr;
    let is_of_one = !said.contains("less than a sampling interval");
    expect(is_of_one, format_args!("processes are missed in a recording of one thread: {said}"))?;
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

fn refusals(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let helper = wait_for_thread(&target, "helper")?.to_string();
    let child = test.program("true").start()?;
    let ended = child.pid().to_string();
    child.wait()?;
    let refused = |words: &[&str], says: &[&str]| expect_refused(test, test.nyquist(words), says);
    refused(&["record", "-t", &ended], &[&format!("there is no thread {ended}"), "hint: `ps -eL`"])?;
    refused(&["record", "-p", &helper], &[&format!("-t {helper} records that thread alone")])?;
    refused(&["record", "--backend", "ptrace", "-t", &helper], &["a single thread", "-p"])?;
    need_root()?;
    let call = test.nyquist(&["record", "-t", &helper]).by_plain_user();
    expect_refused(test, call, &["it is another user's", &target.pid().to_string()])?;
    end(target)
}
