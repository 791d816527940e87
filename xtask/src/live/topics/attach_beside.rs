//! Processes that end or may not be recorded, beside other processes and beside a command.

use std::fs;

use super::attach::sleepers;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_eq, expect_measured, need_root};
use super::invocation::{Invocation, Running};
use super::profile::Profile;
use super::running_targets::{WORK, end, expect_due, is_alive, process_cpu_ms, weight_of, working};
use super::targets::expect_not_started;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("one_process_ends_and_the_other_is_recorded_on", one_of_two).in_pairs(SHARES),
    Test::new("a_processes_end_ends_the_command_beside_it", ends_command).in_pairs(SHARES),
    Test::new("a_process_that_ends_early_starts_no_command", ends_while_attached),
    Test::new("another_users_process_starts_no_command", foreign),
];

const BACKENDS: [&str; 2] = ["perf", "ptrace"];

/// Waits until a process has worked for another [`WORK`].
fn let_work(recorder: &Running<'_>, pid: u32) -> Verdict {
    let begun = process_cpu_ms(pid)?;
    let has_worked = || process_cpu_ms(pid).is_ok_and(|now| now > begun + WORK);
    Ok(recorder.wait_until("the process to work", has_worked)?)
}

/// Ends a process and returns its total CPU time in milliseconds. The time can be read until the process is
/// waited for.
fn end_after(target: Running<'_>) -> Result<f64, Stop> {
    target.signal(libc::SIGKILL)?;
    let state = || fs::read_to_string(format!("/proc/{}/stat", target.pid())).unwrap_or_default();
    target.wait_until("the process to end", || state().contains(") Z "))?;
    let used = process_cpu_ms(target.pid())?;
    target.wait()?;
    Ok(used)
}

/// The recording ends by itself when the second process has ended, too. It contains the CPU time of each
/// process.
fn one_of_two(test: &Context<'_>) -> Verdict {
    for backend in BACKENDS {
        let targets = [working(test, &["endless", "1"])?, working(test, &["endless", "1"])?];
        let pids = targets.each_ref().map(Running::pid);
        let before = [process_cpu_ms(pids[0])?, process_cpu_ms(pids[1])?];
        let output = test.fresh("profile.json.gz");
        let list = format!("{},{}", pids[0], pids[1]);
        let call = test.nyquist(&["record", "-s", "--backend", backend, "-p", &list, "-o"]).path(&output);
        let recorder = call.start()?;
        recorder.wait_until_recording()?;
        let_work(&recorder, pids[0])?;
        let [first, second] = targets;
        let first = end_after(first)? - before[0];
        let at_first_end = process_cpu_ms(pids[1])?;
        let_work(&recorder, pids[1])?;
        let second = end_after(second)? - before[1];
        let finished = recorder.wait()?.succeeded()?;
        let profile = Profile::read(&output)?;
        expect_due("the process that ended first", weight_of(&profile, pids[0]), first)?;
        expect_due("the process that ended last", weight_of(&profile, pids[1]), second)?;
        let least = second - (at_first_end - before[1]) - 5.0;
        let after_first = weight_after_end(&profile, pids[0], pids[1]);
        expect_measured(
            after_first > 0.9 * least,
            format_args!("{backend}: {after_first} of {least} samples after the first end"),
        )?;
        expect(!finished.stderr.contains("not in the profile"), &finished.stderr)?;
    }
    Ok(())
}

/// The weight of the samples of a process that come after the last sample of another process.
fn weight_after_end(profile: &Profile, ended: u32, pid: u32) -> f64 {
    let samples = |pid: u32| {
        let of = move |thread: &&super::profile::Thread| thread.pid == pid.to_string();
        profile.threads.iter().filter(of).flat_map(|thread| &thread.samples)
    };
    let last = samples(ended).map(|sample| sample.time).fold(0.0, f64::max);
    samples(pid).filter(|sample| sample.time > last).map(|sample| sample.weight).sum()
}

/// The command gets SIGTERM. In this case, the recorder's status is not the command's.
fn ends_command(test: &Context<'_>) -> Verdict {
    for backend in BACKENDS {
        let target = working(test, &["endless", "1"])?;
        let (signal_file, ready) = (test.fresh("signal"), test.fresh("ready"));
        let output = test.fresh("profile.json.gz");
        let script = format!(
            "trap 'echo TERM > {}; exit 9' TERM; echo > {}; while :; do sleep 0.01; done",
            signal_file.display(),
            ready.display()
        );
        let pid = target.pid().to_string();
        let call = test.nyquist(&["record", "-s", "--backend", backend, "-p", &pid, "-o"]).path(&output);
        let recorder = call.args(&["--", "sh", "-c", &script]).start()?;
        recorder.wait_until_recording()?;
        recorder.wait_for_file(&ready)?;
        let begun = process_cpu_ms(target.pid())?;
        let_work(&recorder, target.pid())?;
        let pid = target.pid();
        let used = end_after(target)? - begun;
        recorder.wait()?.succeeded()?;
        expect_eq("what the command received", fs::read_to_string(&signal_file)?.as_str(), "TERM\n")?;
        let profile = Profile::read(&output)?;
        let weight = weight_of(&profile, pid);
        expect_measured(weight > 0.9 * used, format_args!("{backend}: {weight} samples of {used} ms"))?;
        let all = profile.total();
        expect(all - weight < 1.0, format_args!("{backend}: the command is in it: {all} of {weight}"))?;
    }
    Ok(())
}

/// The process is killed after attaching has begun, or before. If it cannot be recorded, the command is not
/// started either.
fn ends_while_attached(test: &Context<'_>) -> Verdict {
    for backend in BACKENDS {
        let mut refused = 0;
        for attempt in 0..10 {
            let target = sleepers(test, 300)?;
            let (output, started) = (test.fresh("profile.json.gz"), test.fresh("started"));
            let pid = target.pid().to_string();
            let call = test.nyquist(&["record", "-s", "--backend", backend, "-p", &pid, "-o"]).path(&output);
            let recorder = call.args(&["--", "touch"]).path(&started).start()?;
            // By perf, attaching takes a moment only. So every other process ends before it.
            if backend == "perf" && attempt % 2 == 0 {
                recorder.wait_until_sampling()?;
            }
            target.signal(libc::SIGKILL)?;
            let finished = recorder.wait()?;
            target.wait()?;
            if !finished.status.success() {
                refused += 1;
                let expected = format!("error: there is no process {pid}\n\nhint: `ps -e` lists");
                expect(finished.stderr.starts_with(&expected), &finished.stderr)?;
                expect(!started.exists(), format_args!("{backend}: the command was started"))?;
                expect(!output.exists(), "a profile of nothing was left behind")?;
            }
        }
        expect_measured(refused > 0, format_args!("{backend}: it never ended while it was attached to"))?;
    }
    Ok(())
}

/// Tests one foreign process alone, and together with a process of the user's own.
fn foreign(test: &Context<'_>) -> Verdict {
    need_root()?;
    let theirs = test.program("sleep").args(&["1000"]).start()?;
    let own = test.program("sleep").args(&["1000"]).by_plain_user().start()?;
    let pid = theirs.pid().to_string();
    let both = format!("{},{pid}", own.pid());
    let says = [&format!("process {pid} cannot be attached to: it is another user's"), "hint: root can"];
    for backend in BACKENDS {
        for pids in [&pid, &both] {
            let options = ["--backend", backend, "-p", pids];
            expect_not_started(test, &options, Invocation::by_plain_user, &says)?;
        }
    }
    for target in [theirs, own] {
        expect(is_alive(target.pid()), "a process did not survive")?;
        end(target)?;
    }
    Ok(())
}
