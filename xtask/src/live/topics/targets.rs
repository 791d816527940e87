//! Targets of recordings: the command in a separate control group, and processes with their descendants.

use std::fs;
use std::path::Path;

use super::by::{BOTH, By};
use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_within, need_root,
};
use super::group_folders::{groups_of, leaves, own_group, processes_of};
use super::invocation::{Finished, Invocation, Running};
use super::profile::{Profile, Thread};
use super::recorded::Truth;
use super::running_targets::{
    OfRunning, WORK, end, expect_due, is_alive, process_cpu_ms, record_working_by, weight_of, working,
};
use super::spare::watched;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("the_commands_control_group_is_gone_afterwards", group_is_removed).quick(),
    Test::new("what_a_command_leaves_running_moves_up", left_running),
    Test::new("what_runs_on_is_named_and_recorded_for_a_time", daemon).in_pairs(SHARES),
    Test::new("an_empty_profile_says_why", empty),
    Test::new("a_crashed_recorders_group_is_removed_later", crashed)
        .exclusive("any other recorder removes what the crashed one has left"),
    Test::new("nobody_elses_stacks_are_recorded", nobody_else).in_pairs(SHARES),
    Test::new("without_control_group_samples_are_picked_out", no_group).in_pairs(SHARES),
    Test::new("several_processes_are_attached_to", several).in_pairs(SHARES),
    Test::new("children_that_run_already_are_attached_to", running_children).in_pairs(SHARES),
    Test::new("a_stopped_process_is_attached_to_and_stays_so", stopped).in_pairs(SHARES),
    Test::new("threads_are_attached_to_as_they_are_born", born_meanwhile).in_pairs(SHARES),
    Test::new("a_thread_ending_while_attaching_is_no_error", ending_threads).in_pairs(SHARES),
    Test::new("a_command_says_how_long_a_process_is_recorded", beside_command).in_pairs(SHARES),
    Test::new("what_cannot_be_recorded_is_a_sentence", refusals),
];

fn group_is_removed(test: &Context<'_>) -> Verdict {
    need_root()?;
    own_group()?;
    let prepared = test.record_command(&["cat", "/proc/self/cgroup"]).prepare();
    let recorder = prepared.call.start()?;
    let pid = recorder.pid();
    let finished = recorder.wait()?.succeeded()?;
    expect_contains("the command's group", &finished.stdout_text(), &format!("/nyquist-{pid}-"))?;
    expect_eq("groups that are left", groups_of(pid)?, Vec::new())
}

/// The daemon is moved to the group in which it would have been, and the recorder does not wait for it.
fn left_running(test: &Context<'_>) -> Verdict {
    need_root()?;
    let own = own_group()?;
    let prepared = test.record_command(&["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]).prepare();
    let recorder = prepared.call.start()?;
    let recorders = recorder.pid();
    let finished = recorder.wait()?.succeeded()?;
    let pid: u32 = finished.stdout_text().trim().parse()?;
    expect(is_alive(pid), "the daemon was ended")?;
    expect(processes_of(&own)?.contains(&pid), "the daemon is not in the recorder's group")?;
    expect_eq("groups that are left", groups_of(recorders)?, Vec::new())?;
    expect_contains("stderr", &finished.stderr, "are still running, and are no longer recorded")
}

/// A command that ends at once, and leaves its work to a process that it has started.
fn daemon(test: &Context<'_>) -> Verdict {
    let script = format!("{} 1 >/dev/null 2>&1 & echo $!", test.workload("endless").display());
    for by in BOTH {
        for options in [&[][..], &["-d", "2"]] {
            let recording = test.record_command(&["sh", "-c", &script]).by(by).options(options);
            let recorded = recording.run_well()?;
            let pid: u32 = recorded.finished.stdout_text().trim().parse()?;
            let lives = is_alive(pid);
            crate::sys::signal_process(pid, libc::SIGKILL)?;
            expect(lives, "the daemon was ended")?;
            let stderr = &recorded.finished.stderr;
            if options.is_empty() {
                expect_contains("stderr", stderr, &format!("`nyquist record -p {pid}` records them"))?;
            } else {
                expect_contains("stderr", stderr, &format!("recorded from now on: PIDs {pid}"))?;
                let taken = weight_of(&recorded.profile, pid);
                expect_measured(taken > 50.0, format_args!("{taken} ms of the daemon are in the profile"))?;
            }
        }
    }
    Ok(())
}

/// By ptrace, a profile would not be empty, because it shows where threads wait. So only the other backend is
/// tested.
fn empty(test: &Context<'_>) -> Verdict {
    let stopped = working(test, &["endless", "1"])?;
    stopped.signal(libc::SIGSTOP)?;
    stopped.wait_until("the process to stop", || is_stopped(stopped.pid()))?;
    let asleep = test.program("sleep").args(&["1000"]).start()?;
    asleep.wait_until("the program to sleep", || is_asleep(asleep.pid()))?;
    for (target, reason) in [(&stopped, "is stopped; `kill -CONT "), (&asleep, "it slept all the time")] {
        let output = test.fresh("empty.json.gz");
        let args = ["record", "-s", "-d", "1", "-p", &target.pid().to_string(), "-o"];
        let finished = test.nyquist(&args).path(&output).run()?.succeeded()?;
        expect_contains("stderr", &finished.stderr, "Nothing was sampled: ")?;
        expect_contains("stderr", &finished.stderr, reason)?;
    }
    end(stopped)?;
    end(asleep)
}

/// Whether a process sleeps in its own program, and is not just starting.
fn is_asleep(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    name.trim() == "sleep" && stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

fn crashed(test: &Context<'_>) -> Verdict {
    need_root()?;
    own_group()?;
    let ready = test.fresh("ready");
    let prepared = test.record(&["endless", "1"]).prepare();
    let recorder = prepared.call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    recorder.wait_for_file(&ready)?;
    let own = groups_of(recorder.pid())?;
    let [leaf] = own.as_slice() else { return expect(false, format_args!("its groups are {own:?}")) };
    let command = processes_of(leaf)?;
    end(recorder)?;
    expect(leaf.exists(), "there is nothing to be removed")?;
    test.record(&["shares", "50"]).run_well()?;
    expect_eq("groups that are left", leaves()?, Vec::new())?;
    expect(command.iter().all(|pid| is_alive(*pid)), "the command was ended")
}

fn nobody_else(test: &Context<'_>) -> Verdict {
    need_root()?;
    let other = working(test, &["endless", "2"])?;
    let recorded = test.record(&["storm", "vfork", "800"]).run_well()?;
    end(other)?;
    let names: Vec<_> = recorded.profile.threads.iter().map(|thread| &thread.process).collect();
    expect(names.iter().all(|name| *name == "storm"), format_args!("{names:?}"))?;
    let expected = recorded.truth()?.part("all")? * 1000.0;
    expect_within("its samples", recorded.profile.sampled(), expected, 0.05)
}

/// As in a container, the privilege exists, and the cgroup file systems are read-only.
fn no_group(test: &Context<'_>) -> Verdict {
    need_root()?;
    let own = own_group()?;
    let mount = own.ancestors().filter(|folder| folder.join("cgroup.procs").exists()).last().unwrap_or(&own);
    let script = format!("mount -o remount,bind,ro {} && exec \"$@\"", mount.display());
    let other = working(test, &["endless", "1"])?;
    for (args, part) in [(&["storm", "vfork", "1500"][..], "all"), (&["ticks", "900"], "tick_work")] {
        let under = ["unshare", "-m", "sh", "-c", &script, "sh"];
        let watched = watched(|| test.record(args).with(|call| call.under(&under)).run_well())?;
        let recorded = &watched.result;
        let named = recorded.profile.threads.iter().all(|thread| thread.process == args[0]);
        expect(named, format_args!("others are in it: {:?}", recorded.profile.thread_names()))?;
        watched.expect_samples(recorded.profile.sampled(), recorded.truth()?.part(part)?, 1000.0, 0.08)?;
        expect_contains("stderr", &recorded.finished.stderr, "`nyquist doctor` says what helps")?;
    }
    end(other)
}

fn several(test: &Context<'_>) -> Verdict {
    let targets = [working(test, &["endless", "1"])?, working(test, &["endless", "2"])?];
    let other = working(test, &["endless", "1"])?;
    let pids = targets.each_ref().map(|target| target.pid().to_string());
    for (by, options) in [
        (By::Best, vec!["-p".to_owned(), pids.join(",")]),
        (By::Ptrace, vec!["-p".to_owned(), pids.join(",")]),
        (By::Best, vec!["-p".into(), pids[0].clone(), "-p".into(), pids[1].clone()]),
    ] {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let pids = targets.each_ref().map(Running::pid);
        let OfRunning { profile, used } = record_working_by(by, test, &options, &pids)?;
        for (pid, used) in pids.into_iter().zip(used) {
            expect_due(&format!("process {pid}"), weight_of(&profile, pid), used)?;
        }
        expect(weight_of(&profile, other.pid()) < 1.0, "another process is in it")?;
    }
    for target in targets.into_iter().chain([other]) {
        expect(is_alive(target.pid()), "a process did not survive")?;
        end(target)?;
    }
    Ok(())
}

fn running_children(test: &Context<'_>) -> Verdict {
    let ready = test.fresh("ready");
    let program = test.workload("endless").display().to_string();
    // Processes that are started later are recorded, too. Each of them works for 40 of 50 ms, because its
    // turns are whole milliseconds.
    let (later, worked) = (test.workload("shares"), 40.0);
    let later = later.display();
    let script = format!("({program} 1; true) & while :; do sleep 0.05; {later} 50; done");
    let shell = test.program("bash").args(&["-c", &script]);
    let shell = shell.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    shell.wait_for_file(&ready)?;
    let path = test.workload("endless");
    let grandchild =
        test.process_of(&path).ok_or_else(|| Stop::Failed("the grandchild does not run".into()))?;
    let pid = shell.pid().to_string();
    for by in BOTH {
        let OfRunning { profile, used } = record_working_by(by, test, &["-v", "-p", &pid], &[grandchild])?;
        expect_due("the grandchild", weight_of(&profile, grandchild), used[0])?;
        let share = profile.total_share("main_loop");
        expect_measured(share > 0.5, format_args!("main_loop has a share of {share:.3}"))?;
        let children: Vec<_> = profile.threads.iter().filter(|thread| thread.process == "shares").collect();
        let whole = children.iter().filter(|child| (0.9 * worked..1.3 * worked).contains(&child.total()));
        // One process may have been there before, and one may be there at the end.
        let (whole, all) = (whole.count(), children.len());
        expect_measured(
            all >= 3 && whole + 2 >= all,
            format_args!("{whole} of {all} later children have the expected number of samples"),
        )?;
        // Only ptrace sees waiting threads, including those of processes that are started meanwhile.
        let sleeps = profile.threads.iter().any(|thread| thread.process == "sleep");
        expect(sleeps || by == By::Best, format_args!("no later child: {:?}", profile.thread_names()))?;
    }
    end(shell)
}

/// The recorder attaches to a stopped process, and leaves it stopped.
fn stopped(test: &Context<'_>) -> Verdict {
    for by in BOTH {
        let target = working(test, &["endless", "1"])?;
        let pid = target.pid();
        let stop = || -> Verdict {
            target.signal(libc::SIGSTOP)?;
            Ok(target.wait_until("the process to stop", || is_stopped(pid))?)
        };
        stop()?;
        let output = test.fresh("stopped.json.gz");
        let call = test.nyquist(&["record", "-s", "-p", &pid.to_string(), "-o"]).path(&output);
        let recorder = by.adapt(test, call).start()?;
        recorder.wait_until_recording()?;
        expect(is_stopped(pid), "attaching has let the process go on")?;
        let begun = process_cpu_ms(pid)?;
        let has_worked = |since: f64| process_cpu_ms(pid).is_ok_and(|now| now > since + WORK);
        target.signal(libc::SIGCONT)?;
        recorder.wait_until("the process to go on", || has_worked(begun))?;
        stop()?;
        recorder.signal(libc::SIGINT)?;
        recorder.wait()?.succeeded()?;
        let ended = process_cpu_ms(pid)?;
        expect(is_stopped(pid), "the end of the recording has let the process go on")?;
        target.signal(libc::SIGCONT)?;
        target.wait_until("the process to go on", || has_worked(ended))?;
        end(target)?;
        expect_due("the process", weight_of(&Profile::read(&output)?, pid), ended - begun)?;
    }
    Ok(())
}

/// Whether a process is stopped by a signal, whether or not it is traced.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// The threads are created while the recorder attaches. None of them is missed or sampled twice.
fn born_meanwhile(test: &Context<'_>) -> Verdict {
    let (truth, ready, go_on) = (test.fresh("truth"), test.fresh("ready"), test.fresh("go-on"));
    let call = test.program(test.workload("pool")).args(&["30", "500"]).path(&go_on);
    let call = call.env("WORKLOAD_TRUTH", truth.display().to_string());
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    let output = test.path("attached.json.gz");
    let pid = target.pid().to_string();
    let recorder = test.nyquist(&["record", "-v", "-s", "-p", &pid, "-o"]).path(&output).start()?;
    recorder.wait_until_recording()?;
    fs::write(&go_on, "")?;
    target.wait()?.succeeded()?;
    let finished = recorder.wait()?.succeeded()?;
    expect_contains("stderr", &finished.stderr, "Attached to ")?;
    let profile = Profile::read(&output)?;
    let used = Truth::read(&truth)?.first().map_or(0.0, |truth| truth.cpu) * 1000.0;
    expect_measured(
        profile.total() < used * 1.02,
        format_args!("{} samples for {used:.0} ms", profile.total()),
    )?;
    // Each thread works for 30 ms, and for 15 of them after the recorder has begun. Whether there are samples
    // of the first 15 depends on the machine. Samples are counted, because a sample after the hypervisor has
    // held the CPU includes that time, too.
    let counts = profile.threads.iter().filter(|thread| !thread.is_main).map(|thread| thread.samples.len());
    let most = counts.clone().max().unwrap_or_default();
    expect_measured(most < 45, format_args!("a thread of 30 ms has {most} samples"))?;
    let sampled = counts.filter(|count| *count > 5).count();
    expect_measured(sampled == 500, format_args!("only {sampled} of 500 threads have their samples"))
}

/// The CPU time of the thread with this name in a process.
fn thread_cpu_ms(pid: u32, name: &str) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let named = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let text = tasks.into_iter().find(named).map(|task| fs::read_to_string(task.path().join("schedstat")));
    let text = text.and_then(Result::ok).unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

fn ending_threads(test: &Context<'_>) -> Verdict {
    let target = working(test, &["churn", "1000000"])?;
    for _ in 0..5 {
        let worker = || thread_cpu_ms(target.pid(), "worker");
        let output = test.fresh("profile.json.gz");
        let pid = target.pid().to_string();
        let before = worker();
        let recorder = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&output).start()?;
        recorder.wait_until_recording()?;
        let begun = worker();
        recorder.wait_until("the worker to work", || worker() - begun > WORK)?;
        recorder.signal(libc::SIGINT)?;
        recorder.wait()?.succeeded()?;
        let weight: f64 = Profile::read(&output)?.threads_named("worker").map(Thread::total).sum();
        expect_due("the busy thread", weight, worker() - before)?;
    }
    expect(is_alive(target.pid()), "the process did not survive")?;
    end(target)
}

/// The end of the command ends the recording. The end of the process also does, and ends the command, too.
fn beside_command(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "1"])?;
    let output = test.fresh("profile.json.gz");
    let record = |command: &str| {
        let call = test.nyquist(&["record", "-s", "-o"]).path(&output);
        call.args(&["-p", &target.pid().to_string(), "--", "sh", "-c", command])
    };
    let other = test.workload("shares").display().to_string();
    expect_eq("the status", record(&format!("{other} 300; exit 7")).run()?.code(), 7)?;
    let profile = Profile::read(&output)?;
    let weight = weight_of(&profile, target.pid());
    expect(weight > 0.0, "the process has no samples")?;
    expect_within("all samples", profile.total(), weight, 0.001)?;
    let pid_file = test.fresh("pid");
    let recorder =
        record(&format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", pid_file.display())).start()?;
    recorder.wait_for_file(&pid_file)?;
    recorder.wait_until_recording()?;
    end(target)?;
    recorder.wait()?.succeeded()?;
    let pid = fs::read_to_string(&pid_file)?.trim().parse()?;
    expect(!is_alive(pid), "the command runs on")
}

/// Checks that a call fails with one sentence and the expected parts, and writes no profile.
pub(super) fn expect_refused(test: &Context<'_>, call: Invocation<'_>, says: &[&str]) -> Verdict {
    let output = test.fresh("nothing.json.gz");
    expect_refusal(&call.args(&["-s", "-o"]).path(&output).run()?, &output, says)
}

/// Like [`expect_refused`], for a command beside a target that cannot be recorded. The command must not be
/// started.
pub(super) fn expect_not_started<'a>(
    test: &'a Context<'a>,
    options: &[&str],
    adapt: impl Fn(Invocation<'a>) -> Invocation<'a>,
    says: &[&str],
) -> Verdict {
    let (output, started) = (test.fresh("nothing.json.gz"), test.fresh("started"));
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options);
    expect_refusal(&adapt(call.args(&["--", "touch"]).path(&started)).run()?, &output, says)?;
    expect(!started.exists(), format_args!("the command was started: {options:?}"))
}

fn expect_refusal(finished: &Finished, output: &Path, says: &[&str]) -> Verdict {
    let text = &finished.stderr;
    expect(!finished.status.success(), format_args!("it was accepted: {text}"))?;
    for part in says {
        expect_contains("stderr", text, part)?;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("hint:")).count();
    expect(lines == 1 && !text.contains("panicked"), format_args!("not one sentence: {text}"))?;
    expect(!output.exists(), "a profile of nothing was left behind")
}

fn refusals(test: &Context<'_>) -> Verdict {
    let ended = test.program("true").start()?;
    let (pid, own) = (ended.pid().to_string(), std::process::id().to_string());
    ended.wait()?;
    let several = format!("{own},{pid}");
    let no_process = ["no process", &pid, "hint: `ps -e` lists"];
    for (options, says) in [
        (&["-p", &pid][..], &no_process[..]),
        (&["-p", &several], &no_process),
        (&["-p", &pid, "--backend", "ptrace"], &no_process),
        (&["--name", "no-such-name*"], &["no-such-name*", "hint: "]),
        (&["--cgroup", "/no/such"], &["control group", "/no/such", "hint: `cat /proc/PID/cgroup`"]),
        (
            &["-a", "--backend", "ptrace"],
            &["ptrace can record a command or processes", "hint: name a command"],
        ),
        (
            &["-p", &own, "--backend", "ptrace", "--call-graph", "fp"],
            &["always found in copies of the stack", "hint: leave out --call-graph"],
        ),
        (&["-p", &own, "--cpu", "4095"], &["no CPU 4095", "online CPUs are 0"]),
    ] {
        expect_refused(test, test.nyquist(&["record"]).args(options), says)?;
        expect_not_started(test, options, |call| call, says)?;
    }
    expect_not_started(test, &["--cpu", "4095"], |call| call, &["no CPU 4095", "online CPUs are 0"])?;
    let target = working(test, &["endless", "2"])?;
    let threads = fs::read_dir(format!("/proc/{}/task", target.pid()))?.flatten();
    let numbers = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let thread = numbers.filter(|number: &u32| *number != target.pid()).max().unwrap_or_default().to_string();
    let of_process = format!("{thread} is a thread of process {}", target.pid());
    let instead = format!("hint: -p {} takes", target.pid());
    expect_not_started(test, &["-p", &thread], |call| call, &[&of_process, &instead])?;
    end(target)?;
    let missing = test.nyquist(&["record", "-s", "-o", "x", "--", "/no/such/command"]).run()?;
    let printed = missing.stderr.lines().count();
    expect_eq("lines about a command that is not there", printed, 1)
}
