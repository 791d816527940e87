//! Recordings of all processes, of those that are chosen from all, and of some CPUs.

use std::fs;

use super::by::BOTH;
use super::context::Context;
use super::expect::{
    Verdict, expect, expect_contains, expect_eq, expect_measured, expect_within, need_root, skip,
};
use super::group_folders::own_group;
use super::invocation::{Invocation, Running};
use super::profile::{Frame, Profile, Thread};
use super::recorded::Truth;
use super::running_targets::{
    OfRunning, WORK, end, expect_due, is_alive, process_cpu_ms, record_working, record_working_by, weight_of,
    working, working_copy,
};
use super::targets::{expect_not_started, expect_refused};
use super::test::{SHARES, Test};

/// Why some of these tests run alone.
const WHOLE: &str = "records the whole machine";

pub(super) const TESTS: &[Test] = &[
    Test::new("processes_are_attached_to_by_name", by_name).in_pairs(SHARES),
    Test::new("the_whole_system_is_recorded_by_process", whole_system).exclusive(WHOLE),
    Test::new("the_whole_system_is_recorded_by_cpu", system_by_cpu).exclusive(WHOLE),
    Test::new("system_wide_processes_are_picked_by_name", system_by_name)
        .exclusive("chooses processes by a name that others have"),
    Test::new("a_control_group_is_recorded", named_group).in_pairs(SHARES),
    Test::new("the_system_is_recorded_while_a_command_runs", system_beside_command).exclusive(WHOLE),
    Test::new("only_the_chosen_cpus_are_sampled", chosen_cpus).in_pairs(SHARES),
    Test::new("few_descriptors_are_no_obstacle", few_descriptors)
        .exclusive("two hundred threads take all CPUs"),
    Test::new("a_plain_user_cannot_record_the_machine", not_permitted),
];

/// The pattern fits to a program of this test alone.
fn by_name(test: &Context<'_>) -> Verdict {
    let program = test.path("named-here");
    fs::copy(test.workload("endless"), &program)?;
    let targets = [working_copy(test, &program, &["1"])?, working_copy(test, &program, &["1"])?];
    let pids = targets.each_ref().map(Running::pid);
    for by in BOTH {
        let OfRunning { profile, used } = record_working_by(by, test, &["--name", "named-h*e"], &pids)?;
        for (pid, used) in pids.into_iter().zip(used) {
            expect_due("a process of that name", weight_of(&profile, pid), used)?;
        }
        let others = profile.threads.iter().filter(|thread| thread.process != "named-here").count();
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
        let on = |is_requested: &dyn Fn(&Thread) -> bool| -> f64 {
            rows.iter().filter(|row| is_requested(row)).map(|row| weight_below(row, *pid)).sum()
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
        let expected = part * recorded.truth()?.cpu * 1000.0;
        expect_measured(
            (weight - expected).abs() < 30.0,
            format_args!("{weight} samples on CPU {cpu}, wanted {expected}"),
        )?;
    }
    Ok(())
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
    for (plain, says) in [(false, "whole CPUs are sampled"), (true, "open files, but the limit is lower")] {
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
