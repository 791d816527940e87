//! Targets of recordings: the command in a separate control group, processes with their descendants, groups,
//! and the whole machine.

use std::fs;
use std::path::Path;

use super::by::{BOTH, By};
use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_within, need_root, skip,
};
use super::group_folders::{groups, leaves, own_group, processes_of};
use super::harness::Test;
use super::invocation::{Finished, Invocation, Running};
use super::profile::{Frame, Profile, Thread};
use super::recorded::Truth;
use super::running_targets::{
    OfRunning, WORK, end, expect_due, is_alive, process_cpu_ms, process_of, record_working,
    record_working_by, weight_of, working,
};
use super::spare::watched;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_commands_control_group_is_gone_afterwards", group_is_removed).quick(),
    Test::new("what_a_command_leaves_running_moves_up", left_running),
    Test::new("what_runs_on_is_named_and_recorded_for_a_time", daemon),
    Test::new("an_empty_profile_says_why", empty),
    Test::new("a_crashed_recorders_group_is_removed_later", crashed),
    Test::new("nobody_elses_stacks_are_recorded", nobody_else),
    Test::new("without_control_group_samples_are_picked_out", no_group),
    Test::new("several_processes_are_attached_to", several),
    Test::new("children_that_run_already_are_attached_to", running_children),
    Test::new("a_stopped_process_is_attached_to_and_stays_so", stopped),
    Test::new("threads_are_attached_to_as_they_are_born", born_meanwhile),
    Test::new("a_thread_ending_while_attaching_is_no_error", ending_threads),
    Test::new("processes_are_attached_to_by_name", by_name),
    Test::new("the_whole_system_is_recorded_by_process", whole_system),
    Test::new("the_whole_system_is_recorded_by_cpu", system_by_cpu),
    Test::new("system_wide_processes_are_picked_by_name", system_by_name),
    Test::new("a_control_group_is_recorded", named_group),
    Test::new("a_command_says_how_long_a_process_is_recorded", beside_command),
    Test::new("the_system_is_recorded_while_a_command_runs", system_beside_command),
    Test::new("only_the_chosen_cpus_are_sampled", chosen_cpus),
    Test::new("what_cannot_be_recorded_is_a_sentence", refusals).parallel(),
    Test::new("few_descriptors_are_no_obstacle", few_descriptors),
    Test::new("a_plain_user_cannot_record_the_machine", not_permitted),
];

fn group_is_removed(test: &Context<'_>) -> Verdict {
    need_root()?;
    own_group()?;
    let recorded = test.record_command(&["cat", "/proc/self/cgroup"]).run_well()?;
    expect_contains("the command's group", &recorded.finished.stdout_text(), "/nyquist-")?;
    expect_eq("groups that are left", leaves()?, Vec::new())
}

/// The daemon is moved to the group in which it would have been, and the recorder does not wait for it.
fn left_running(test: &Context<'_>) -> Verdict {
    need_root()?;
    let own = own_group()?;
    let recorded = test.record_command(&["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]).run_well()?;
    let pid: u32 = recorded.finished.stdout_text().trim().parse()?;
    expect(is_alive(pid), "the daemon was ended")?;
    expect(processes_of(&own)?.contains(&pid), "the daemon is not in the recorder's group")?;
    expect_eq("groups that are left", leaves()?, Vec::new())?;
    expect_contains("stderr", &recorded.finished.stderr, "run on")
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
        let words = ["record", "-s", "-d", "1", "-p", &target.pid().to_string(), "-o"];
        let finished = test.nyquist(&words).path(&output).run()?.succeeded()?;
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
    let own = groups()?.into_iter().find(|(_, pid)| *pid == recorder.pid());
    let Some((leaf, _)) = &own else { return expect(false, "there is no group") };
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
    let wanted = recorded.truth()?.part("all")? * 1000.0;
    expect_within("its samples", recorded.profile.sampled(), wanted, 0.05)
}

/// As in a container, the privilege exists, and the cgroup file systems are read-only.
fn no_group(test: &Context<'_>) -> Verdict {
    need_root()?;
    let own = own_group()?;
    let mount = own.ancestors().filter(|folder| folder.join("cgroup.procs").exists()).last().unwrap_or(&own);
    let script = format!("mount -o remount,bind,ro {} && exec \"$@\"", mount.display());
    let other = working(test, &["endless", "1"])?;
    for (words, part) in [(&["storm", "vfork", "1500"][..], "all"), (&["ticks", "900"], "tick_work")] {
        let under = ["unshare", "-m", "sh", "-c", &script, "sh"];
        let watched = watched(|| test.record(words).with(|call| call.under(&under)).run_well())?;
        let recorded = &watched.result;
        let named = recorded.profile.threads.iter().all(|thread| thread.process == words[0]);
        expect(named, format_args!("others are in it: {:?}", recorded.profile.thread_names()))?;
        watched.expect_samples(recorded.profile.sampled(), recorded.truth()?.part(part)?, 1000.0, 0.08)?;
        expect_contains("stderr", &recorded.finished.stderr, "some percent")?;
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
    let grandchild = process_of(&path).ok_or_else(|| Stop::Failed("the grandchild does not run".into()))?;
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

fn by_name(test: &Context<'_>) -> Verdict {
    let targets = [working(test, &["endless", "1"])?, working(test, &["endless", "1"])?];
    let pids = targets.each_ref().map(Running::pid);
    for by in BOTH {
        let OfRunning { profile, used } = record_working_by(by, test, &["--name", "endl*s"], &pids)?;
        for (pid, used) in pids.into_iter().zip(used) {
            expect_due("a process of that name", weight_of(&profile, pid), used)?;
        }
        let others = profile.threads.iter().filter(|thread| thread.process != "endless").count();
        expect_eq("threads of other processes", others, 0)?;
    }
    targets.into_iter().try_for_each(end)
}

fn whole_system(test: &Context<'_>) -> Verdict {
    need_root()?;
    let target = working(test, &["endless", "1"])?;
    let OfRunning { profile, used } = record_working(test, &["-a"], &[target.pid()])?;
    let weight = weight_of(&profile, target.pid());
    end(target)?;
    let lost = profile.json["meta"]["nyquist"]["lostSamples"].as_f64().unwrap_or_default();
    // The interval of a CPU across a context switch counts for the thread at its end.
    let due = WORK * 0.85 - lost..used[0] * 1.15 + 5.0;
    expect_measured(
        due.contains(&weight),
        format_args!("the busy process has {weight} samples, not {due:?}"),
    )?;
    let share = profile.total_share("main_loop") * profile.total();
    expect_measured(share > 0.9 * weight, format_args!("main_loop has {share} of {weight} samples"))?;
    let idle =
        profile.threads.iter().any(|thread| thread.pid == "0" || thread.process.starts_with("swapper"));
    expect(!idle, "the idle CPUs are in it")?;
    // If the record of a name was dropped, the name is not known. The summary reports the loss.
    let nameless = profile.threads.iter().any(|thread| thread.process.starts_with('<'));
    let names = profile.thread_names();
    expect_measured(!nameless || lost > 0.0, format_args!("processes without names: {names:?}"))?;
    let cpus = crate::sys::cpu_count() as f64;
    let times = || profile.threads.iter().flat_map(|thread| thread.samples.iter().map(|sample| sample.time));
    let span = times().fold(0.0, f64::max) - times().fold(f64::INFINITY, f64::min);
    expect_measured(
        profile.total() < (1.02 * span + 10.0) * cpus,
        format_args!("{} samples in {span:.0} ms on {cpus} CPUs", profile.total()),
    )
}

/// Each program is bound to a CPU. Its samples are in the row of that CPU, and in no other.
fn system_by_cpu(test: &Context<'_>) -> Verdict {
    need_root()?;
    let started = |cpu: &str| {
        let ready = test.fresh("ready");
        let call = test.program(test.workload("endless")).args(&["1"]).under(&["taskset", "-c", cpu]);
        let running = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
        running.wait_for_file(&ready).map(|()| running)
    };
    let cpus = if crate::sys::cpu_count() > 1 { &["0", "1"][..] } else { &["0"] };
    let targets: Vec<Running<'_>> = cpus.iter().map(|cpu| started(cpu)).collect::<Result<_, _>>()?;
    let pids: Vec<u32> = targets.iter().map(Running::pid).collect();
    let OfRunning { profile, .. } = record_working(test, &["-a", "--per-cpu-threads"], &pids)?;
    targets.into_iter().try_for_each(end)?;
    let rows: Vec<&Thread> = profile.threads.iter().filter(|thread| thread.process == "CPU").collect();
    for (cpu, pid) in cpus.iter().zip(&pids) {
        let name = format!("CPU {cpu}");
        let on = |is_wanted: &dyn Fn(&Thread) -> bool| -> f64 {
            rows.iter().filter(|row| is_wanted(row)).map(|row| weight_below(row, *pid)).sum()
        };
        let own = on(&|row| row.name == name);
        let elsewhere = on(&|row| row.name != name && !row.is_main);
        expect_within(&format!("on {name}"), own, weight_of(&profile, *pid), 0.02)?;
        expect_measured(elsewhere <= 0.02 * own, format_args!("{elsewhere} of {own} samples on other CPUs"))?;
    }
    Ok(())
}

/// The weight of a process in a CPU's row, by the first frame of each stack.
fn weight_below(row: &Thread, pid: u32) -> f64 {
    let owner = format!("(process {pid}, ");
    let is_own = |stack: &[&Frame]| stack.first().is_some_and(|root| root.function.contains(&owner));
    row.stacks().filter(|(stack, _)| is_own(stack)).map(|(_, weight)| weight).sum()
}

/// A process that starts after the recording has begun is also recorded.
fn system_by_name(test: &Context<'_>) -> Verdict {
    need_root()?;
    let output = test.path("named.json.gz");
    let call = test.nyquist(&["record", "-s", "-a", "--name", "shares", "-o"]).path(&output);
    let recorder = call.start()?;
    recorder.wait_until_recording()?;
    let other = working(test, &["endless", "1"])?;
    let truth = test.fresh("truth");
    let shares = test.program(test.workload("shares")).args(&["200"]);
    shares.env("WORKLOAD_TRUTH", truth.display().to_string()).run()?.succeeded()?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    end(other)?;
    let profile = Profile::read(&output)?;
    let named = profile.threads.iter().all(|thread| thread.process == "shares");
    expect(named, format_args!("others are in it: {:?}", profile.thread_names()))?;
    let used = Truth::read(&truth)?.first().map_or(0.0, |truth| truth.cpu) * 1000.0;
    expect_within("its samples", profile.total(), used, 0.15)
}

fn named_group(test: &Context<'_>) -> Verdict {
    need_root()?;
    let own = own_group()?;
    let group = own.join(format!("tests-{}", std::process::id()));
    fs::create_dir(&group)?;
    let inside = working(test, &["endless", "1"])?;
    let outside = working(test, &["endless", "1"])?;
    fs::write(group.join("cgroup.procs"), inside.pid().to_string())?;
    let name = fs::read_to_string(format!("/proc/{}/cgroup", inside.pid()))?;
    let name = name.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned();
    for path in [name, group.display().to_string()] {
        let OfRunning { profile, used } = record_working(test, &["--cgroup", &path], &[inside.pid()])?;
        let weight = weight_of(&profile, inside.pid());
        expect_due(&format!("the process of the group {path}"), weight, used[0])?;
        expect_within("all samples", profile.total(), weight, 0.001)?;
        let share = profile.total_share("main_loop");
        expect_measured(share > 0.9, format_args!("main_loop has a share of {share:.3}"))?;
    }
    end(inside)?;
    end(outside)?;
    Ok(fs::remove_dir(&group)?)
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

fn system_beside_command(test: &Context<'_>) -> Verdict {
    need_root()?;
    let target = working(test, &["endless", "1"])?;
    let (output, truth) = (test.fresh("profile.json.gz"), test.fresh("truth"));
    let call = test
        .nyquist(&["record", "-s", "-a", "-o"])
        .path(&output)
        .env("WORKLOAD_TRUTH", truth.display().to_string());
    call.args(&[&test.workload("shares").display().to_string(), "300"]).run()?.succeeded()?;
    let profile = Profile::read(&output)?;
    let weight = weight_of(&profile, target.pid());
    end(target)?;
    expect(weight > 0.0, "the process that runs already has no samples")?;
    let command = profile.threads.iter().filter(|thread| thread.process == "shares").map(Thread::total).sum();
    let used = Truth::read(&truth)?.first().map_or(0.0, |truth| truth.cpu) * 1000.0;
    expect_within("the command's samples", command, used, 0.15)
}

fn chosen_cpus(test: &Context<'_>) -> Verdict {
    if crate::sys::cpu_count() < 2 {
        return skip("the machine has one CPU");
    }
    let program = test.workload("shares").display().to_string();
    for (cpu, part) in [("0", 1.0), ("1", 0.0), ("0-1", 1.0), ("1,0", 1.0), ("0,0", 1.0)] {
        let command = ["taskset", "-c", "0", &program, "300"];
        let recorded = test.record_command(&command).options(&["--cpu", cpu]).run_well()?;
        let own = recorded.profile.threads.iter().filter(|thread| thread.process == "shares");
        let weight: f64 = own.map(Thread::total).sum();
        let wanted = part * recorded.truth()?.cpu * 1000.0;
        expect_measured(
            (weight - wanted).abs() < 30.0,
            format_args!("{weight} samples on CPU {cpu}, wanted {wanted}"),
        )?;
    }
    Ok(())
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
        (&["-p", &own, "--cpu", "4095"], &["no CPU 4095", "online are 0"]),
    ] {
        expect_refused(test, test.nyquist(&["record"]).args(options), says)?;
        expect_not_started(test, options, |call| call, says)?;
    }
    expect_not_started(test, &["--cpu", "4095"], |call| call, &["no CPU 4095", "online are 0"])?;
    let target = working(test, &["endless", "2"])?;
    let threads = fs::read_dir(format!("/proc/{}/task", target.pid()))?.flatten();
    let numbers = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let thread = numbers.filter(|number: &u32| *number != target.pid()).max().unwrap_or_default().to_string();
    let of_process = format!("{thread} is a thread of process {}", target.pid());
    let instead = format!("hint: -p {} records", target.pid());
    expect_not_started(test, &["-p", &thread], |call| call, &[&of_process, &instead])?;
    end(target)?;
    let missing = test.nyquist(&["record", "-s", "-o", "x", "--", "/no/such/command"]).run()?;
    let said = missing.stderr.lines().count();
    expect_eq("lines about a command that is not there", said, 1)
}

fn not_permitted(test: &Context<'_>) -> Verdict {
    let _held = super::permissions::at_paranoid(2)?;
    own_group()?;
    for options in [&["-a"][..], &["-a", "--name", "sh"], &["--cgroup", "/"]] {
        let says = ["not permitted", "hint: root can", "CAP_PERFMON"];
        expect_refused(test, test.nyquist(&["record"]).args(options).by_plain_user(), &says)?;
        expect_not_started(test, options, Invocation::by_plain_user, &says)?;
    }
    Ok(())
}

/// The limit is far below one event for each thread. With the privilege, whole CPUs are sampled. Without it,
/// the program is traced, however many descriptors that needs.
fn few_descriptors(test: &Context<'_>) -> Verdict {
    need_root()?;
    let _held = super::permissions::at_paranoid(2)?;
    for (plain, says) in [(false, "whole CPUs are sampled"), (true, "open files, and fewer are allowed")] {
        let call = test.program(test.workload("many_threads")).args(&["1000000", "200"]);
        // Otherwise, a plain user's recorder would get only a two-hundredth of the CPU time.
        let target = if plain { call.under(&["nice", "-n", "19"]).by_plain_user() } else { call }.start()?;
        let threads = || fs::read_dir(format!("/proc/{}/task", target.pid())).map_or(0, Iterator::count);
        target.wait_until("the threads to be born", || threads() == 201)?;
        let (output, pid) = (test.fresh("profile.json.gz"), target.pid().to_string());
        let call = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&output);
        let call = call.under(&["prlimit", "--nofile=300:300"]);
        let recorder = if plain { call.by_plain_user() } else { call }.start()?;
        recorder.wait_until_recording()?;
        let begun = process_cpu_ms(target.pid())?;
        let works = || process_cpu_ms(target.pid()).is_ok_and(|now| now > begun + WORK);
        recorder.wait_until("the threads to work", works)?;
        recorder.signal(libc::SIGINT)?;
        let finished = recorder.wait()?.succeeded()?;
        expect_contains("stderr", &finished.stderr, says)?;
        expect(is_alive(target.pid()), "the program did not survive")?;
        end(target)?;
        // Sampling by the wall clock hardly ever sees a process that runs for a millisecond at a time. Its
        // time is known, though.
        let profile = Profile::read(&output)?;
        let lost = profile.json["meta"]["nyquist"]["lostSamples"].as_f64().unwrap_or_default();
        let total = profile.total();
        let is_there = total + lost > WORK * 0.8;
        expect_measured(is_there, format_args!("{says}: {total} samples for {WORK} ms and more"))?;
    }
    Ok(())
}
