//! While no recorded thread runs, the thread that empties the kernel's buffers does not wake up.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Stop, Verdict, expect_measured, need_root, skip};
use super::group_folders::own_group;
use super::invocation::Running;
use super::profile::Profile;
use super::running_targets::end;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_sleeping_process_does_not_wake_the_recorder", process).in_pairs(SHARES),
    Test::new("a_sleeping_group_does_not_wake_the_recorder", group).in_pairs(SHARES),
    Test::new("an_idle_machine_does_not_wake_the_recorder", machine)
        .exclusive("what others run wakes the recorder"),
];

/// How long the recorder is observed.
const OBSERVED: Duration = Duration::from_secs(3);
/// How often it may wake up in that time, for one-time work.
const MAX_WAKES: u64 = 5;

fn process(test: &Context<'_>) -> Verdict {
    let target = test.program("sleep").args(&["1000"]).start()?;
    let (wakes, _) = recorded_while_idle(test, &["-p", &target.pid().to_string()])?;
    end(target)?;
    expect_measured(wakes <= MAX_WAKES, format_args!("the recorder woke {wakes} times"))
}

fn group(test: &Context<'_>) -> Verdict {
    need_root()?;
    let group = own_group()?.join(format!("tests-idle-{}", std::process::id()));
    fs::create_dir(&group)?;
    let target = test.program("sleep").args(&["1000"]).start()?;
    fs::write(group.join("cgroup.procs"), target.pid().to_string())?;
    let recorded = recorded_while_idle(test, &["--cgroup", &group.display().to_string()]);
    end(target)?;
    fs::remove_dir(&group)?;
    let (wakes, _) = recorded?;
    expect_measured(wakes <= MAX_WAKES, format_args!("the recorder woke {wakes} times"))
}

/// Some thread always runs for a moment. For each such moment, the intervals of whole CPUs change twice: once
/// in it and once after it.
fn machine(test: &Context<'_>) -> Verdict {
    /// How long the intervals stay unchanged, in ms.
    const ALIKE: f64 = 50.0;
    need_root()?;
    // Reading deep stacks of other programs would wake the recorder, too.
    let (wakes, profile) = recorded_while_idle(test, &["-a", "--call-graph", "none"])?;
    let samples = profile.threads.iter().flat_map(|thread| &thread.samples);
    let busy: BTreeSet<u64> = samples.map(|sample| (sample.time / ALIKE) as u64).collect();
    let most = MAX_WAKES + 3 * busy.len() as u64;
    println!("        the recorder woke {wakes} times, and a thread ran in {} moments", busy.len());
    if busy.len() as f64 * ALIKE > OBSERVED.as_millis() as f64 / 2.0 {
        return skip("the machine is not idle");
    }
    expect_measured(wakes <= most, format_args!("the recorder woke {wakes} times, not {most}"))
}

/// Records for a while, and returns how often the recorder's reader woke up meanwhile.
fn recorded_while_idle(test: &Context<'_>, options: &[&str]) -> Result<(u64, Profile), Stop> {
    let output = test.fresh("profile.json.gz");
    let recorder = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options).start()?;
    recorder.wait_until_recording()?;
    recorder.wait_until("the kernel's buffers to be read", || wakes(&recorder).is_some())?;
    let before = wakes(&recorder);
    // The number of wakeups in this time is what is tested.
    thread::sleep(OBSERVED);
    let wakes = wakes(&recorder).zip(before).map(|(now, before)| now - before);
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    Ok((wakes.context("no thread reads the kernel's buffers")?, Profile::read(&output)?))
}

/// How often the threads that read the kernel's buffers have gone to sleep; `None` if there is no such
/// thread.
fn wakes(recorder: &Running<'_>) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", recorder.pid())).ok()?.flatten();
    let counts: Vec<u64> = tasks.filter_map(|task| wakes_of_reader(&task.path())).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn wakes_of_reader(task: &Path) -> Option<u64> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let count = value("voluntary_ctxt_switches:")?.parse().ok()?;
    (value("Name:")? == "nyquist-reader").then_some(count)
}
