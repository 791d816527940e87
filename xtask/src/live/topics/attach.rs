//! Attaching to a running process, and recording for a given time.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip};
use super::invocation::{Invocation, Running};
use super::profile::Profile;
use super::profile::Thread;
use super::targets::expect_refused;
use super::test::{SHARES, Test};
use crate::sys;

pub(super) const TESTS: &[Test] = &[
    Test::new("all_threads_of_a_running_process_are_recorded", all_threads)
        .quick()
        .in_pairs(SHARES)
        .everywhere(),
    Test::new("an_attached_recording_has_whole_named_stacks", attached_stacks).in_pairs(SHARES).everywhere(),
    Test::new("attached_stacks_agree_with_gdb", agrees_with_gdb).in_pairs(SHARES),
    Test::new("ctrl_c_ends_only_the_attached_recording", interrupted).in_pairs(SHARES).everywhere(),
    Test::new("a_wrappers_sigint_ends_an_attached_recording", |test| signalled(test, libc::SIGINT))
        .in_pairs(SHARES),
    Test::new("a_signal_during_the_start_is_not_lost", signal_at_start),
    Test::new("sigterm_ends_an_attached_recording", |test| signalled(test, libc::SIGTERM)).in_pairs(SHARES),
    Test::new("an_attached_recording_ends_with_its_process", process_ends).in_pairs(SHARES),
    Test::new("a_duration_ends_a_commands_recording", duration).in_pairs(SHARES),
    Test::new("a_pid_that_does_not_exist_is_an_error", no_such_pid).quick(),
    Test::new("a_process_that_ends_while_attached_to_is_said", ending),
    Test::new("another_users_process_is_an_error", foreign_pid),
    Test::new("a_plain_user_attaches_to_an_own_process", own_as_plain_user).in_pairs(SHARES),
    Test::new("attached_switching_threads_have_their_time", switching).in_pairs(SHARES),
    Test::new("a_low_limit_of_descriptors_is_raised", raised_descriptors),
    Test::new("attaching_interrupts_nobody", interrupts_nobody).in_pairs(SHARES),
];

/// Starts the endless workload and waits until it works.
fn endless<'a>(
    test: &'a Context<'a>,
    threads: &str,
    adapt: impl FnOnce(Invocation<'a>) -> Invocation<'a>,
) -> Result<Running<'a>, anyhow::Error> {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("endless")).args(&[threads]);
    let running = adapt(call.env("WORKLOAD_READY", ready.display().to_string())).start()?;
    running.wait_for_file(&ready)?;
    Ok(running)
}

fn attach<'a>(
    test: &'a Context<'a>,
    target: &Running<'_>,
    output: &Path,
    options: &[&str],
) -> Invocation<'a> {
    let pid = target.pid().to_string();
    test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(output).args(options)
}

/// Checks that a process is there, and not a zombie.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn end(target: Running<'_>) -> Verdict {
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

fn all_threads(test: &Context<'_>) -> Verdict {
    let target = endless(test, "2", |call| call)?;
    let output = test.path("attached.json.gz");
    let before = process_cpu(target.pid())?;
    let finished = attach(test, &target, &output, &["-d", "1"]).run()?.succeeded()?;
    let used = process_cpu(target.pid())? - before;
    expect(is_alive(target.pid()), "the process did not survive")?;
    end(target)?;
    expect_recorded_for(&finished.stderr, 1.0)?;
    let profile = Profile::read(&output)?;
    expect_within_due(&profile, used)?;
    for (name, function) in [("helper", "helper_loop"), ("endless", "main_loop")] {
        let weight: f64 = profile.threads_named(name).map(Thread::total).sum();
        let names = profile.thread_names();
        expect_measured(
            weight > profile.total() * 0.1,
            format_args!("thread {name} has {weight} samples; threads: {names:?}"),
        )?;
        expect_measured(profile.total_share(function) > 0.1, format_args!("{function} is missing"))?;
    }
    Ok(())
}

/// Checks that a process has samples, but not more than its CPU time allows. `used` is its CPU time in
/// seconds, from before the recording until after it.
fn expect_within_due(profile: &Profile, used: f64) -> Verdict {
    let total = profile.total();
    expect_measured(
        total > 20.0 && total < used * 1050.0,
        format_args!("{total} samples, {used:.2} s of CPU"),
    )
}

/// Checks that the recorder reports about this duration in seconds. The time to start and to save is not
/// checked.
fn expect_recorded_for(stderr: &str, seconds: f64) -> Verdict {
    let recorded =
        stderr.lines().find_map(|line| line.strip_prefix("Recorded ")?.split_once(" s")?.0.parse().ok());
    let recorded: f64 = recorded.unwrap_or_default();
    let is_near = (0.9 * seconds..1.3 * seconds).contains(&recorded);
    expect_measured(is_near, format_args!("recorded for {recorded} s: {stderr}"))
}

/// The CPU seconds of a process so far, from the scheduler's own sum.
fn process_cpu(pid: u32) -> Result<f64, anyhow::Error> {
    let mut sum = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    Ok(sum / 1e9)
}

fn attached_stacks(test: &Context<'_>) -> Verdict {
    let target = endless(test, "1", |call| call)?;
    let output = test.path("attached.json.gz");
    attach(test, &target, &output, &["-d", "1"]).run()?.succeeded()?;
    end(target)?;
    let profile = Profile::read(&output)?;
    let whole = profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        names.first() == Some(&"_start") && names.contains(&"main") && names.contains(&"main_loop")
    });
    // Time that a plain user may not sample has no stack.
    let sampled = profile.share_of_stacks(|stack| {
        !stack.iter().any(|frame| ["[kernel: not permitted]", "[not sampled]"].contains(&&*frame.function))
    });
    expect_measured(
        whole > 0.99 * sampled && sampled > 0.8,
        format_args!(
            "{whole:.3} of the {sampled:.3} stacks go from _start to main_loop: {:?}",
            profile.roots()
        ),
    )
}

/// The outer frames never change, so they can be compared with another program's view.
fn agrees_with_gdb(test: &Context<'_>) -> Verdict {
    let target = endless(test, "2", |call| call)?;
    let output = test.path("attached.json.gz");
    attach(test, &target, &output, &["-d", "1"]).run()?.succeeded()?;
    let pid = target.pid().to_string();
    let by_gdb = test
        .program("gdb")
        .args(&[
            "-q",
            "-batch",
            "-p",
            &pid,
            "-ex",
            "set backtrace past-main on",
            "-ex",
            "thread apply all backtrace",
        ])
        .run()?;
    end(target)?;
    let profile = Profile::read(&output)?;
    for loop_function in ["main_loop", "helper_loop"] {
        let expected = gdb_callers(&by_gdb.stdout_text(), loop_function);
        expect(
            expected.len() >= 2,
            format_args!("gdb shows no callers of {loop_function}: {}", by_gdb.stdout_text()),
        )?;
        let agreeing = profile.share_of_stacks(|stack| {
            let names: Vec<&str> = stack.iter().rev().map(|frame| plain(&frame.function)).collect();
            let start = names.iter().position(|name| *name == loop_function);
            start.is_some_and(|start| names[start..] == expected)
        });
        let all = profile.total_share(loop_function);
        let found = profile
            .stacks()
            .map(|(stack, _)| stack)
            .find(|stack| stack.iter().any(|frame| frame.function == loop_function));
        let found: Vec<String> =
            found.into_iter().flatten().rev().map(|frame| frame.function.clone()).collect();
        let held = all > 0.0 && agreeing > all * 0.99;
        expect_measured(
            held,
            format_args!("{agreeing:.3} of {all:.3} agree: gdb says {expected:?}, the profile {found:?}"),
        )?;
    }
    Ok(())
}

/// The function and its callers, innermost first, as gdb shows them.
fn gdb_callers(text: &str, function: &str) -> Vec<String> {
    // gdb also prints where it has stopped the program before, but not as a frame.
    let is_frame = |line: &str| line.starts_with('#') && line.contains(&format!("{function} ("));
    let thread = text.split("Thread ").find(|part| part.lines().any(is_frame));
    let frames = thread.unwrap_or_default().lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        let named = line
            .split_once(" in ")
            .map_or_else(|| line.split_once("  ").map(|(_, rest)| rest), |(_, rest)| Some(rest));
        named.and_then(|rest| rest.split(' ').next()).map(|name| plain(name).to_owned())
    };
    let names: Vec<String> = frames.filter_map(name).collect();
    names.into_iter().skip_while(|name| name != function).collect()
}

/// A C function's name without the suffixes that only one of two symbol tables adds: `@version` and glibc's
/// `_impl`.
fn plain(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    name.strip_suffix("_impl").unwrap_or(name)
}

fn interrupted(test: &Context<'_>) -> Verdict {
    let target = endless(test, "1", |call| call)?;
    let output = test.path("attached.json.gz");
    let mut recorder = attach(test, &target, &output, &[]).on_terminal().start()?;
    recorder.wait_until_recording()?;
    let before = process_cpu(target.pid())?;
    recorder
        .wait_until("200 ms of work", || process_cpu(target.pid()).is_ok_and(|now| now - before > 0.2))?;
    recorder.press_ctrl_c()?;
    let finished = recorder.wait()?;
    expect_eq("the status", finished.code(), 0)?;
    expect(is_alive(target.pid()), "the process did not survive")?;
    end(target)?;
    expect_measured(Profile::read(&output)?.total() > 150.0, "there are hardly any samples")
}

fn signalled(test: &Context<'_>, signal: i32) -> Verdict {
    let target = endless(test, "1", |call| call)?;
    let output = test.path("attached.json.gz");
    let recorder = attach(test, &target, &output, &[]).start()?;
    recorder.wait_until_recording()?;
    let before = process_cpu(target.pid())?;
    recorder
        .wait_until("200 ms of work", || process_cpu(target.pid()).is_ok_and(|now| now - before > 0.2))?;
    recorder.signal(signal)?;
    let signalled = Instant::now();
    recorder.wait()?;
    expect_measured(signalled.elapsed() < Duration::from_secs(10), "it took long to end")?;
    expect(is_alive(target.pid()), "the process did not survive")?;
    end(target)?;
    expect_measured(Profile::read(&output)?.total() > 150.0, "there are hardly any samples")
}

/// The signal arrives while the recorder still opens its events. The recorder must end then, or right
/// afterwards.
fn signal_at_start(test: &Context<'_>) -> Verdict {
    let target = endless(test, "1", |call| call)?;
    let recorder = attach(test, &target, &test.path("attached.json.gz"), &[]).start()?;
    recorder.wait_until_sampling()?;
    recorder.signal(libc::SIGINT)?;
    let pid = recorder.pid();
    recorder.wait_until("its end", || !is_alive(pid))?;
    recorder.wait()?;
    end(target)
}

/// The process ends after it has been recorded for a while, however late the recording began.
fn process_ends(test: &Context<'_>) -> Verdict {
    let target = endless(test, "1", |call| call)?;
    let output = test.path("attached.json.gz");
    let recorder = attach(test, &target, &output, &[]).start()?;
    recorder.wait_until_recording()?;
    let before = process_cpu(target.pid())?;
    recorder
        .wait_until("200 ms of work", || process_cpu(target.pid()).is_ok_and(|now| now - before > 0.2))?;
    end(target)?;
    expect_eq("the status", recorder.wait()?.code(), 0)?;
    expect_measured(Profile::read(&output)?.total_share("main_loop") > 0.9, "main_loop is missing")
}

fn duration(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["endless", "1"]).options(&["-d", "1"]).run()?;
    expect_recorded_for(&recorded.finished.stderr, 1.0)?;
    // It has no events after its first milliseconds.
    let asleep = test.record_command(&["sleep", "30"]).options(&["-d", "1"]).run()?;
    expect_recorded_for(&asleep.finished.stderr, 1.0)?;
    let used = recorded.profile.total() / 1000.0;
    expect_measured(used > 0.02 && used < 1.3, format_args!("a recording of 1 s has {used:.2} s of samples"))
}

fn no_such_pid(test: &Context<'_>) -> Verdict {
    let child = test.program("true").start()?;
    let pid = child.pid().to_string();
    child.wait()?;
    let output = test.path("nothing.json.gz");
    let finished = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&output).run()?;
    expect(!finished.status.success(), "it was accepted")?;
    expect_contains("stderr", &finished.stderr, &pid)?;
    let text = finished.stderr.to_lowercase();
    let says_why =
        ["no such process", "no process", "not exist", "not running"].iter().any(|part| text.contains(part));
    expect(says_why, format_args!("stderr does not say why: {text:?}"))?;
    expect(!output.exists(), "a profile of nothing was left behind")
}

/// The process has many threads, so attaching takes a while. It is killed after attaching has begun. Traced
/// threads are recorded to their end, so ptrace refuses only a process that is killed before that. With
/// ptrace, every other process is.
fn ending(test: &Context<'_>) -> Verdict {
    for backend in ["perf", "ptrace"] {
        let mut refused = 0;
        for round in 0..10 {
            let target = sleepers(test, 300)?;
            let output = test.fresh("profile.json.gz");
            let recorder = attach(test, &target, &output, &["--backend", backend]).start()?;
            let pid = target.pid();
            match backend {
                "perf" => recorder.wait_until_sampling()?,
                _ if round % 2 == 0 => {}
                // Attaching takes only a few milliseconds. So the state is polled without a pause, until the
                // recorder's first message.
                _ => while !is_traced(pid) && recorder.stderr_so_far().is_empty() {},
            }
            target.signal(libc::SIGKILL)?;
            let finished = recorder.wait()?;
            target.wait()?;
            if finished.status.success() {
                expect_contains("stderr", &finished.stderr, "Recorded ")?;
                let is_said = finished.stderr.contains("Nothing was sampled");
                expect(is_said || Profile::read(&output)?.total() > 0.0, "nothing, without a word")?;
            } else {
                refused += 1;
                let expected = format!("error: there is no process {pid}\n\nhint: `ps -e` lists");
                expect(finished.stderr.starts_with(&expected), &finished.stderr)?;
                expect_eq("lines", finished.stderr.lines().count(), 3)?;
                expect_eq("the status", finished.code(), 1)?;
                expect(!output.exists(), "a profile of nothing was left behind")?;
            }
        }
        expect_measured(refused > 0, format_args!("{backend}: it never ended while it was attached to"))?;
    }
    Ok(())
}

/// Starts a program with many threads, all of which sleep.
pub(super) fn sleepers<'a>(test: &'a Context<'a>, threads: usize) -> Result<Running<'a>, anyhow::Error> {
    let script = "import sys, threading, time\n\
                  for i in range(int(sys.argv[1])): threading.Thread(target=time.sleep, args=(1000,)).start()\n\
                  open(sys.argv[2], 'w')";
    let ready = test.fresh("ready");
    let running = test.program("python3").args(&["-c", script, &threads.to_string()]).path(&ready).start()?;
    running.wait_for_file(&ready)?;
    Ok(running)
}

fn is_traced(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

fn foreign_pid(test: &Context<'_>) -> Verdict {
    if !sys::is_root() {
        return skip("needs root, to have processes of two users");
    }
    let target = test.program("sleep").args(&["1000"]).start()?;
    let pid = target.pid().to_string();
    let call = test.nyquist(&["record", "-d", "1", "-p", &pid]).by_plain_user();
    let says = [&format!("process {pid} cannot be attached to: it is another user's"), "hint: root can"];
    let verdict = expect_refused(test, call, &says);
    end(target)?;
    verdict
}

fn own_as_plain_user(test: &Context<'_>) -> Verdict {
    let _held = super::permissions::at_paranoid(2)?;
    let target = endless(test, "1", Invocation::by_plain_user)?;
    let output = test.path("attached.json.gz");
    let recorder = attach(test, &target, &output, &[]).by_plain_user().start()?;
    recorder.wait_until_recording()?;
    let before = process_cpu(target.pid())?;
    recorder
        .wait_until("300 ms of work", || process_cpu(target.pid()).is_ok_and(|now| now - before > 0.3))?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    end(target)?;
    let profile = Profile::read(&output)?;
    // The kernel's share of its time is large if many other processes want the CPU.
    let share = profile.total_share("main_loop") / (1.0 - profile.total_share("[kernel: not permitted]"));
    expect_measured(share > 0.9, format_args!("main_loop has {share:.3} of {} samples", profile.total()))
}

/// The events of a thread that is attached to, and those of a thread that it creates, which the kernel exchanges. Most
/// of their time is the kernel's, and known by totals alone. Little of it is in the switches, whose own part that deals
/// with events is in the kernel's account and in no event's: on some virtual machines a sixth of a program that does
/// nothing but switch.
fn switching(test: &Context<'_>) -> Verdict {
    let _held = super::permissions::at_paranoid(2)?;
    let (go, steps) = (test.fresh("begin"), test.workload("steps"));
    let waits =
        format!("while [ ! -e {} ]; do sleep 0.3; done; exec {} blocks 20000", go.display(), steps.display());
    let script = format!("({waits}) & echo $!; wait; times");
    let shell = test.program("sh").args(&["-c", &script]).by_plain_user().start()?;
    shell.wait_until("the number of a process", || shell.stdout_so_far().contains('\n'))?;
    let pid = shell.stdout_so_far().trim().to_owned();
    let output = test.path("attached.json.gz");
    let recorder = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&output).by_plain_user().start()?;
    recorder.wait_until_recording()?;
    fs::write(&go, "")?;
    let printed = shell.wait()?.succeeded()?.stdout_text();
    recorder.wait()?.succeeded()?;
    let used = children_cpu(&printed).context("no times")?;
    let profile = Profile::read(&output)?;
    let steps: f64 = profile.threads_named("steps").map(Thread::total).sum();
    let share = profile.total_share("[kernel: not permitted]");
    let text = format!("{steps} of {} samples for {used:.2} s, {share:.2} not permitted", profile.total());
    println!("        {text}");
    expect_measured((900.0..1050.0).contains(&(steps / used)) && share > 0.5, text)
}

/// The CPU seconds of a shell's children, from the last line that `times` prints.
fn children_cpu(printed: &str) -> Option<f64> {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    printed.lines().last()?.split_whitespace().map(seconds).sum()
}

fn hard_limit_of_descriptors() -> Result<u64, anyhow::Error> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)).context("no limit of open files")?;
    Ok(hard.parse()?)
}

/// All threads have their events although the shell's limit of descriptors is lower than they need, because
/// the recorder can raise it.
fn raised_descriptors(test: &Context<'_>) -> Verdict {
    need_root()?;
    // Each thread and CPU has one event that samples, perhaps a clock beside it, one that counts, and one for
    // mappings and names. Some files are open, too.
    if hard_limit_of_descriptors()? < (4 * 201 * sys::cpu_count() + 1000) as u64 {
        return skip("the limit of descriptors cannot be raised so far");
    }
    let _held = super::permissions::at_paranoid(2)?;
    for adapt in [|call| call, Invocation::by_plain_user] {
        let call = test.program(test.workload("many_threads")).args(&["1000000", "200"]);
        let target = adapt(call.under(&["nice", "-n", "19"])).start()?;
        let threads = || fs::read_dir(format!("/proc/{}/task", target.pid())).map_or(0, Iterator::count);
        target.wait_until("the threads to be born", || threads() == 201)?;
        let (output, pid) = (test.fresh("profile.json.gz"), target.pid().to_string());
        let call = test.nyquist(&["record", "-v", "-s", "-p", &pid, "-o"]).path(&output);
        let recorder = adapt(call.under(&["prlimit", "--nofile=256:"])).start()?;
        recorder.wait_until_recording()?;
        recorder.wait_until("the report of the rings", || recorder.stderr_so_far().contains("Copying"))?;
        let entries = fs::read_dir(format!("/proc/{}/fd", recorder.pid()))?.flatten();
        let is_event = |entry: &fs::DirEntry| {
            fs::read_link(entry.path()).is_ok_and(|link| link.to_string_lossy().contains("[perf_event]"))
        };
        let events = entries.filter(is_event).count();
        recorder.signal(libc::SIGINT)?;
        let finished = recorder.wait()?.succeeded()?;
        end(target)?;
        expect_contains("stderr", &finished.stderr, "Attached to 201 threads of 1 process")?;
        expect_contains("stderr", &finished.stderr, "Each thread has its own clock")?;
        let least = 3 * 201 * sys::cpu_count();
        expect(events >= least, format_args!("{events} events are open, not {least}"))?;
    }
    Ok(())
}

/// A waiting thread keeps waiting while the recorder attaches to it and releases it.
fn interrupts_nobody(test: &Context<'_>) -> Verdict {
    for options in [&[][..], &["--backend", "ptrace"]] {
        let target = super::running_targets::working(test, &["interrupts", "1500"])?;
        let pid = target.pid().to_string();
        while is_alive(target.pid()) {
            let output = test.fresh("profile.json.gz");
            let call = test.nyquist(&["record", "-s", "-d", "0.05", "-p", &pid, "-o"]).path(&output);
            // The process may have ended when the next recorder attaches.
            call.args(options).run()?;
        }
        let output = target.wait()?.succeeded()?.stdout_text();
        expect_contains("what the program says", &output, " 0 interrupted, 0 early")?;
    }
    Ok(())
}
