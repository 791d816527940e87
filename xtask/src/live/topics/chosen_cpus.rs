//! `--cpu LIST` for running targets: of processes or of a control group, only the time on these CPUs is
//! sampled.

use super::context::Context;
use super::control_groups::Group;
use super::expect::{Verdict, expect, expect_eq, expect_measured, need_root, skip};
use super::invocation::Running;
use super::profile::Thread;
use super::running_targets::{OfRunning, WORK, end, record_working, weight_of};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("the_whole_system_is_sampled_on_chosen_cpus", |test| sampled(test, &["-a"]))
        .exclusive("records the whole machine"),
    Test::new("processes_are_sampled_on_chosen_cpus", of_processes).in_pairs(SHARES),
    Test::new("a_control_group_is_sampled_on_chosen_cpus", of_group).in_pairs(SHARES),
];

/// Starts a program on each of the first two CPUs, to which it is bound.
fn pinned<'a>(test: &'a Context<'a>) -> Result<[Running<'a>; 2], anyhow::Error> {
    let start = |cpu: &str| {
        let ready = test.fresh("ready");
        let call = test.program(test.workload("endless")).args(&["1"]).under(&["taskset", "-c", cpu]);
        let running = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
        running.wait_for_file(&ready).map(|()| running)
    };
    Ok([start("0")?, start("1")?])
}

/// Records two programs with each of two lists of CPUs. A program on a CPU that is not in the list has no
/// samples.
fn expect_sampled(test: &Context<'_>, options: &[&str], targets: &[Running<'_>; 2]) -> Verdict {
    let pids = targets.each_ref().map(Running::pid);
    for (list, sampled) in [("0", [true, false]), ("1", [false, true]), ("0-1", [true, true])] {
        let options = [options, &["--per-cpu-threads", "--cpu", list]].concat();
        let OfRunning { profile, used } = record_working(test, &options, &pids)?;
        for ((pid, used), is_sampled) in pids.into_iter().zip(used).zip(sampled) {
            let (weight, what) = (weight_of(&profile, pid), format!("{options:?}: process {pid}"));
            if is_sampled {
                expect_measured(
                    weight > 0.9 * WORK,
                    format_args!("{what} has {weight} samples of {used} ms"),
                )?;
            } else {
                expect_eq(&what, weight, 0.0)?;
            }
        }
        for (cpu, is_sampled) in ["CPU 0", "CPU 1"].into_iter().zip(sampled) {
            let row = profile.threads.iter().filter(|row| row.process == "CPU" && row.name == cpu);
            let weight: f64 = row.map(Thread::total).sum();
            expect(is_sampled == (weight > 0.0), format_args!("{options:?}: {cpu} has {weight} samples"))?;
        }
    }
    Ok(())
}

fn sampled(test: &Context<'_>, options: &[&str]) -> Verdict {
    need_root()?;
    need_two_cpus()?;
    let targets = pinned(test)?;
    expect_sampled(test, options, &targets)?;
    targets.into_iter().try_for_each(end)
}

fn of_processes(test: &Context<'_>) -> Verdict {
    need_two_cpus()?;
    let targets = pinned(test)?;
    let list = targets.each_ref().map(|target| target.pid().to_string()).join(",");
    expect_sampled(test, &["-p", &list], &targets)?;
    targets.into_iter().try_for_each(end)
}

fn of_group(test: &Context<'_>) -> Verdict {
    need_root()?;
    need_two_cpus()?;
    let group = Group::create("cpus")?;
    let targets = pinned(test)?;
    for target in &targets {
        group.admit(target.pid())?;
    }
    expect_sampled(test, &["--cgroup", &group.path().display().to_string()], &targets)?;
    targets.into_iter().try_for_each(end)
}

fn need_two_cpus() -> Verdict {
    if crate::sys::cpu_count() < 2 { skip("the machine has one CPU") } else { Ok(()) }
}
